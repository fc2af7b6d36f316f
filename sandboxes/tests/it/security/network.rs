//! Tests of code that runs while an environment is built. It reaches only the package index, finds no credentials, and
//! changes nothing that other builds use.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use testwright_sandboxes::docker::{Docker, DockerSettings, Pull};
use testwright_sandboxes::environment::{BuildSettings, Environment, prepare};
use testwright_sandboxes::local::Isolation;
use testwright_sandboxes::{Backend, SandboxError};

use crate::index_server::{Answer, Server};
use crate::place::{BUILD_BACKEND, LOGIN, TestDir, recipe, shell};

/// Code that runs when the repository is installed. `attempt` records the results.
const TOOLS: &str = r#"
import base64, glob, json, os, socket, subprocess, urllib.request
found = {}
def attempt(name, work):
    try:
        found[name] = work()
    except Exception as error:
        found[name] = "failed: %r" % (error,)
    with open("found.json", "w") as file:
        json.dump(found, file)
def direct(address):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open(address, timeout=5).read().decode()
def by_proxy(address):
    return urllib.request.urlopen(address, timeout=10).read().decode()
def tunnel(host, port):
    proxy = os.environ.get("https_proxy", "")
    login, _, at = proxy.split("://")[1].rpartition("@")
    name, _, number = at.rpartition(":")
    stream = socket.create_connection((name, int(number)), 10)
    login = base64.b64encode(login.encode()).decode()
    stream.sendall(("CONNECT %s:%d HTTP/1.1\r\nProxy-Authorization: Basic %s\r\n\r\n" % (host, port, login)).encode())
    said = b""
    while b"\r\n\r\n" not in said:
        more = stream.recv(4096)
        if not more:
            raise OSError("closed: %r" % said)
        said += more
    if b" 200" not in said.split(b"\r\n")[0]:
        raise OSError(said.decode())
    stream.sendall(b"GET /secret HTTP/1.0\r\n\r\n")
    return stream.makefile("rb").read().decode()
"#;

pub(super) async fn docker() -> Option<Docker> {
    crate::docker::engine().await
}

/// Writes a repository whose build runs this code first.
pub(super) fn hostile(place: &TestDir, attack: &str) {
    place.write("backend.py", &format!("{TOOLS}{attack}{BUILD_BACKEND}"));
}

pub(super) fn recipe_here() -> testwright_sandboxes::recipe::Recipe {
    let mut recipe = recipe();
    // Later changes of the code must not change the requirements.
    recipe.python = Some("3.11".to_owned());
    // Tests that run meanwhile must not share images with this one, because each removes its own.
    let process = std::process::id().to_string();
    recipe.env.insert("TEST_PROCESS".to_owned(), process);
    recipe
}

pub(super) async fn read_findings(place: &TestDir, built: &Environment) -> serde_json::Value {
    let sandbox = place.sandbox(built).await;
    let output = shell(sandbox.as_ref(), "cat found.json").await;
    sandbox.stop().await.unwrap();
    serde_json::from_str(&output).unwrap_or_else(|e| panic!("{e}: {output}"))
}

pub(super) async fn tidy(place: &TestDir, built: &Environment) {
    place.backend.remove_saved(&built.saved).await.unwrap();
    place
        .backend
        .remove_saved(&built.dependencies)
        .await
        .unwrap();
}

/// Starts a service on the host's loopback that counts its requests.
fn secret_service() -> (Server, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let server = Server::start(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        Answer::text("the host's secret")
    });
    (server, count)
}

async fn reaches_nothing_else(place: TestDir) {
    let (server, count) = secret_service();
    let port = server.port;
    hostile(
        &place,
        &format!(
            r#"
attempt("loopback", lambda: direct("http://127.0.0.1:{port}/secret"))
attempt("loopback by name", lambda: direct("http://localhost:{port}/secret"))
attempt("loopback by proxy", lambda: by_proxy("http://127.0.0.1.:{port}/secret"))
attempt("loopback by tunnel", lambda: tunnel("127.0.0.1", {port}))
attempt("loopback by tunnel, IPv6", lambda: tunnel("[::ffff:127.0.0.1]", {port}))
attempt("index host, other port", lambda: tunnel("pypi.org", 22))
attempt("metadata", lambda: direct("http://169.254.169.254/"))
attempt("metadata by tunnel", lambda: tunnel("169.254.169.254", 80))
def routes():
    with open("/proc/net/route") as file:
        return "".join(file.readlines()[1:]) or "failed: none"
def udp():
    stream = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stream.connect(("8.8.8.8", 53))
    return "connected"
attempt("udp", udp)
def unlike_tcp():
    stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    stream.settimeout(5)
    stream.connect(("127.0.0.1", {port}))
    return "connected"
attempt("MPTCP", unlike_tcp)
def fast_open():
    stream = socket.socket()
    stream.settimeout(5)
    stream.sendto(b"GET /secret HTTP/1.0\r\n\r\n", 0x20000000, ("127.0.0.1", {port}))
    return stream.recv(100).decode()
attempt("TCP fast open", fast_open)
def abstract():
    stream = socket.socket(socket.AF_UNIX)
    stream.connect("\0testwright-hostile-{port}")
    return "connected"
attempt("abstract socket", abstract)
def relay():
    for process in glob.glob("/proc/[0-9]*"):
        with open(process + "/cmdline", "rb") as file:
            is_relay = b"only connection to the network" in file.read()
        if is_relay:
            os.close(os.open(process + "/fd/1", os.O_WRONLY | os.O_NONBLOCK))
            return "opened"
    raise OSError("the relay was not found")
attempt("the relay's output", relay)
"#
        ),
    );
    let abstract_name = format!("testwright-hostile-{port}");
    use std::os::linux::net::SocketAddrExt;
    let address = std::os::unix::net::SocketAddr::from_abstract_name(abstract_name).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind_addr(&address).unwrap();
    let built = place.build(&place.source(), &recipe_here()).await.unwrap();
    let findings = read_findings(&place, &built).await;
    for (name, output) in findings.as_object().unwrap() {
        let output = output.as_str().unwrap();
        assert!(output.starts_with("failed: "), "{name}: {output}");
    }
    assert_eq!(findings.as_object().unwrap().len(), 13, "{findings}");
    assert_eq!(count.load(Ordering::SeqCst), 0, "{findings}");
    // The index itself was reached with its password.
    assert!(built.packages.contains(&"extra==1.0".to_owned()));
    let log = std::fs::read_to_string(&built.log).unwrap();
    assert!(
        log.contains("network: 169.254.169.254:80 was refused")
            && log.contains("build.allowed-hosts"),
        "{log}"
    );
    tidy(&place, &built).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn build_reaches_only_index() {
    let Some(place) = TestDir::new() else { return };
    reaches_nothing_else(place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn landlock_build_reaches_only_index() {
    let Some(place) = TestDir::with_isolation(Some(Isolation::Landlock)) else {
        return;
    };
    reaches_nothing_else(place).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_build_reaches_only_index() {
    let Some(engine) = docker().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = TestDir::on(Box::new(engine), folder) else {
        return;
    };
    reaches_nothing_else(place).await;
}

const LOOK_FOR_CREDENTIALS: &str = r#"
def everything():
    texts = ["%s=%s" % pair for pair in os.environ.items()]
    for path in glob.glob("/proc/[0-9]*/environ") + glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                texts.append(file.read().decode("latin-1"))
        except OSError:
            pass
    home = os.path.expanduser("~")
    for path in [home + "/.netrc", home + "/.config/pip/pip.conf", home + "/.pip/pip.conf", home + "/.config/uv/uv.toml", "/etc/pip.conf", "/etc/uv/uv.toml"]:
        try:
            with open(path) as file:
                texts.append(file.read())
        except OSError:
            pass
    for folder, _, names in os.walk(os.environ["UV_CACHE_DIR"]):
        for name in names:
            with open(os.path.join(folder, name), "rb") as file:
                texts.append(file.read().decode("latin-1"))
    try:
        texts.append(by_proxy(os.environ["UV_DEFAULT_INDEX"] + "extra/"))
    except OSError:
        pass
    return "\n".join(texts)
def credentials():
    text = everything()
    coded = base64.b64encode(b"reader:hunter2-secret").decode()
    signs = [sign for sign in ("hunter2", "proxy-secret", coded) if sign in text]
    return " ".join(signs) or "failed: none"
attempt("credentials", credentials)
"#;

async fn finds_no_credentials(place: TestDir) {
    hostile(&place, LOOK_FOR_CREDENTIALS);
    let proxy = "http://user:proxy-secret@127.0.0.1:9";
    let settings = BuildSettings {
        extra_index_urls: vec![format!(
            "more=http://{LOGIN}@127.0.0.1:{}/simple",
            place.index.port
        )],
        proxies: [("https_proxy".to_owned(), proxy.to_owned())].into(),
        ..place.settings()
    };
    let source = place.source();
    let backend = place.backend.as_ref();
    let built = prepare(
        backend,
        &source,
        &recipe_here(),
        "a test",
        &settings,
        &|_| (),
    )
    .await
    .unwrap();
    assert_eq!(
        read_findings(&place, &built).await["credentials"],
        "failed: none"
    );
    let requests = place.index.requests();
    assert!(
        !requests.is_empty()
            && requests
                .iter()
                .all(|request| request.authorization.is_some())
    );
    let log = std::fs::read_to_string(&built.log).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
    tidy(&place, &built).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn build_finds_no_credentials() {
    for isolation in [None, Some(Isolation::Landlock)] {
        let Some(place) = TestDir::with_isolation(isolation) else {
            continue;
        };
        finds_no_credentials(place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_build_finds_no_credentials() {
    let Some(engine) = docker().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = TestDir::on(Box::new(engine), folder) else {
        return;
    };
    finds_no_credentials(place).await;
}

/// A script that puts a poisoned package and a setuid file into every place that a build can write to and that may
/// outlast it.
const POISON: &str = r##"
def poison():
    count = 0
    caches = [os.environ["UV_CACHE_DIR"], "/opt/testwright-packages", "/opt/testwright-uv"]
    roots = list(caches)
    for line in open("/proc/self/mountinfo"):
        roots.append(line.split()[4])
    for root in roots:
        if root.split("/")[1] in ("proc", "sys", "dev"):
            continue
        try:
            path = os.path.join(root, "left-by-a-build")
            with open(path, "w") as file:
                file.write("#!/bin/sh\nid\n")
            os.chmod(path, 0o6777)
            os.mknod(os.path.join(root, "device-left-by-a-build"), 0o20666, os.makedev(1, 3))
        except OSError:
            pass
        if root not in caches:
            continue
        for path in glob.glob(root + "/**/extra.py", recursive=True):
            try:
                with open(path, "a") as file:
                    file.write("poisoned = True\n")
                count += 1
            except OSError:
                pass
        for path in glob.glob(root + "/**/extra-*.whl", recursive=True):
            try:
                os.rename(path, path + ".old")
                count += 1
            except OSError:
                pass
    return str(count)
attempt("poison", poison)
"##;

async fn leaves_nothing_for_others(place: TestDir) {
    hostile(&place, POISON);
    let first = place.build(&place.source(), &recipe_here()).await.unwrap();
    // Another repository has other requirements, including the package that the first one modified.
    place.write("backend.py", BUILD_BACKEND);
    let mut other = recipe_here();
    other.requirements.push("more".to_owned());
    let second = place.build(&place.source(), &other).await.unwrap();
    assert!(!second.cached && second.packages.contains(&"more==1.0".to_owned()));
    let sandbox = place.sandbox(&second).await;
    let python = second
        .python_in(&sandbox.info().paths)
        .display()
        .to_string();
    let script = format!("cd / && {python} -c 'import extra; print(hasattr(extra, \"poisoned\"))'");
    assert_eq!(shell(sandbox.as_ref(), &script).await, "False\n");
    sandbox.stop().await.unwrap();
    // Apart from the backend's states, a build wrote nothing on the host.
    let cache = place.folder.path().join("cache");
    for path in everything_below(&cache) {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let name = path.display();
        assert_eq!(metadata.permissions().mode() & 0o6000, 0, "{name}");
        assert!(metadata.is_dir() || metadata.is_file(), "{name}");
        assert!(!name.to_string().contains("left-by-a-build"), "{name}");
    }
    tidy(&place, &first).await;
    tidy(&place, &second).await;
}

fn everything_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            all.extend(everything_below(&entry.path()));
        }
        all.push(entry.path());
    }
    all
}

fn with_more(place: Option<TestDir>) -> Option<TestDir> {
    let place = place?;
    place.wheel("more", "1.0", "");
    Some(place)
}

#[tokio::test(flavor = "multi_thread")]
async fn build_leaves_nothing_behind() {
    for isolation in [None, Some(Isolation::Landlock)] {
        let Some(place) = with_more(TestDir::with_isolation(isolation)) else {
            continue;
        };
        leaves_nothing_for_others(place).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_build_leaves_nothing_behind() {
    let Some(engine) = docker().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = with_more(TestDir::on(Box::new(engine), folder)) else {
        return;
    };
    leaves_nothing_for_others(place).await;
}

/// Allowed hosts are reached through TLS tunnels and without TLS.
#[tokio::test(flavor = "multi_thread")]
async fn build_reaches_allowed_hosts() {
    for isolation in [None, Some(Isolation::Landlock)] {
        let Some(place) = TestDir::with_isolation(isolation) else {
            continue;
        };
        let (server, count) = secret_service();
        let port = server.port;
        hostile(
            &place,
            &format!(
                r#"
attempt("tunnel", lambda: tunnel("127.0.0.1", {port}).split("\r\n\r\n")[1])
os.environ["no_proxy"] = os.environ["NO_PROXY"] = ""
attempt("plain", lambda: by_proxy("http://127.0.0.1:{port}/"))
attempt("another port", lambda: tunnel("127.0.0.1", {port} + 1))
"#
            ),
        );
        let settings = BuildSettings {
            allowed_hosts: vec![format!("127.0.0.1:{port}")],
            ..place.settings()
        };
        let source = place.source();
        let backend = place.backend.as_ref();
        let built = prepare(
            backend,
            &source,
            &recipe_here(),
            "a test",
            &settings,
            &|_| (),
        )
        .await
        .unwrap();
        let findings = read_findings(&place, &built).await;
        assert_eq!(findings["tunnel"], "the host's secret", "{findings}");
        assert_eq!(findings["plain"], "the host's secret", "{findings}");
        assert!(
            findings["another port"].as_str().unwrap().contains("403"),
            "{findings}"
        );
        assert!(count.load(Ordering::SeqCst) >= 2);
        let wrong = BuildSettings {
            allowed_hosts: vec!["https://github.com/".to_owned()],
            rebuild: true,
            ..place.settings()
        };
        let error: SandboxError =
            prepare(backend, &source, &recipe_here(), "a test", &wrong, &|_| ())
                .await
                .unwrap_err();
        assert!(
            error.hint.unwrap().contains("github.com"),
            "{}",
            error.message
        );
    }
}

/// The error says how to allow it.
#[tokio::test(flavor = "multi_thread")]
async fn requirement_outside_index_gives_hint() {
    let Some(place) = TestDir::new() else { return };
    let mut elsewhere = recipe_here();
    elsewhere
        .requirements
        .push("thing @ https://files.example.org/thing-1.0-py3-none-any.whl".to_owned());
    let error = place.build(&place.source(), &elsewhere).await.unwrap_err();
    assert!(
        error
            .message
            .contains("network: files.example.org:443 was refused"),
        "{error}"
    );
    assert!(error.hint.unwrap().contains("build.allowed-hosts"));
}

/// Debian packages are installed while Debian's servers are reachable, and only in that step.
#[tokio::test(flavor = "multi_thread")]
async fn docker_system_packages_come_from_debian() {
    let settings = DockerSettings {
        pull: Pull::Never,
        ..DockerSettings::default()
    };
    let Ok(engine) = Docker::connect(settings).await else {
        assert!(docker().await.is_none());
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = TestDir::on(Box::new(engine) as Box<dyn Backend>, folder) else {
        return;
    };
    hostile(
        &place,
        "attempt('debian', lambda: by_proxy('http://deb.debian.org/debian/'))\n",
    );
    let mut recipe = recipe_here();
    recipe.system_packages = vec!["hello".to_owned()];
    let built = match place.build(&place.source(), &recipe).await {
        Ok(built) => built,
        Err(error) if error.message.contains("Temporary failure") => {
            eprintln!("skipped: no Debian server is reachable: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let sandbox = place.sandbox(&built).await;
    let output = shell(sandbox.as_ref(), "hello").await;
    assert_eq!(output, "Hello, world!\n");
    sandbox.stop().await.unwrap();
    let findings = read_findings(&place, &built).await;
    assert!(
        findings["debian"].as_str().unwrap().contains("403"),
        "{findings}"
    );
    tidy(&place, &built).await;
}
