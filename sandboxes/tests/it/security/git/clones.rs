//! Tests of hostile URLs and servers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use testwright_sandboxes::error::ErrorKind;

use super::*;

/// A server on the loopback that records the head of every request.
struct Server {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

/// A function that responds to a request's head.
type Respond = Box<dyn Fn(&str) -> String + Send + Sync>;

impl Server {
    fn new(respond: Respond) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heads = Arc::new(Mutex::new(Vec::new()));
        let received_heads = heads.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = serve(stream.unwrap(), &received_heads, &respond);
            }
        });
        Server { port, heads }
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }

    /// Returns the number of requests, and of those with credentials.
    fn count(&self) -> (usize, usize) {
        let heads = self.heads();
        let with = heads
            .iter()
            .filter(|h| h.to_lowercase().contains("\nauthorization:"));
        (heads.len(), with.count())
    }
}

fn serve(stream: TcpStream, heads: &Mutex<Vec<String>>, respond: &Respond) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut head = String::new();
    while reader.read_line(&mut head)? > 2 && !head.ends_with("\r\n\r\n") {}
    let length = head.lines().find_map(|l| {
        let (name, value) = l.split_once(':')?;
        name.eq_ignore_ascii_case("content-length")
            .then(|| value.trim().parse::<u64>().ok())?
    });
    std::io::copy(&mut reader.take(length.unwrap_or(0)), &mut std::io::sink())?;
    heads.lock().unwrap().push(head.clone());
    let mut stream = stream;
    stream.write_all(respond(&head).as_bytes())
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// Returns an advertisement of one branch, so that git requests it next.
fn advertisement() -> String {
    let line = |text: &str| format!("{:04x}{text}", text.len() + 4);
    let hash = "1".repeat(40);
    let capabilities =
        "multi_ack_detailed no-done side-band-64k ofs-delta allow-reachable-sha1-in-want filter";
    let body = [
        line("# service=git-upload-pack\n"),
        "0000".to_owned(),
        line(&format!("{hash} HEAD\0{capabilities}\n")),
        line(&format!("{hash} refs/heads/main\n")),
        "0000".to_owned(),
    ];
    let kind = "Content-Type: application/x-git-upload-pack-advertisement\r\n";
    answer("200 OK", kind, &body.concat())
}

const LOGIN: &str = "WWW-Authenticate: Basic realm=\"git\"\r\n";

fn authorized(head: &str) -> bool {
    head.to_lowercase().contains("\nauthorization:")
}

#[test]
fn login_is_not_sent_to_other_server() {
    // The first server redirects before or after it asks for the login. The other one asks for the login too, or just
    // listens.
    for (asks, greedy) in [(false, false), (false, true), (true, false), (true, true)] {
        let other = Server::new(Box::new(move |head| {
            if greedy && !authorized(head) {
                return answer("401 Unauthorized", LOGIN, "");
            }
            if head.starts_with("GET") {
                return advertisement();
            }
            answer("500 Enough", "", "")
        }));
        let port = other.port;
        let first = Server::new(Box::new(move |head| {
            if asks && !authorized(head) {
                return answer("401 Unauthorized", LOGIN, "");
            }
            let path = head.split(' ').nth(1).unwrap_or("/");
            let to = format!("Location: http://127.0.0.1:{port}{path}\r\n");
            answer("302 Found", &to, "")
        }));
        let scene = Scene::new();
        let url = format!("http://me:secret@127.0.0.1:{}/a/b.git", first.port);
        scene.open_url(&url, None).unwrap_err();
        // The right server gets the login if it asks.
        assert_eq!(first.count().1 > 0, asks, "{:?}", first.heads());
        let reached = |head: &String| asks || greedy || head.starts_with("POST");
        assert!(other.heads().iter().any(reached), "{:?}", other.heads());
        assert_eq!(other.count().1, 0, "{:?}", other.heads());
    }
}

#[test]
fn late_redirect_is_not_followed() {
    let other = Server::new(Box::new(|_| answer("500 Enough", "", "")));
    let port = other.port;
    let first = Server::new(Box::new(move |head| {
        if !authorized(head) {
            return answer("401 Unauthorized", LOGIN, "");
        }
        if head.starts_with("GET") {
            return advertisement();
        }
        let to = format!("Location: http://127.0.0.1:{port}/a/b.git/git-upload-pack\r\n");
        answer("307 Temporary Redirect", &to, "")
    }));
    let scene = Scene::new();
    let url = format!("http://me:secret@127.0.0.1:{}/a/b.git", first.port);
    scene.open_url(&url, None).unwrap_err();
    assert!(first.count().0 > 1, "{:?}", first.heads());
    assert_eq!(other.count(), (0, 0), "{:?}", other.heads());
}

/// A server must not redirect git to a local file.
#[test]
fn redirect_cannot_change_protocol() {
    let scene = Scene::new();
    let work = scene.repository();
    for to in [
        format!("file://{}", work.display()),
        "ext::sh -c date".to_owned(),
        "ftp://127.0.0.1/x".to_owned(),
    ] {
        let server = Server::new(Box::new(move |_| {
            answer(
                "302 Found",
                &format!("Location: {to}/info/refs?service=git-upload-pack\r\n"),
                "",
            )
        }));
        let url = format!("http://127.0.0.1:{}/a/b.git", server.port);
        scene.open_url(&url, None).unwrap_err();
        assert!(server.count().0 > 0);
    }
}

#[test]
fn urls_run_nothing() {
    let scene = Scene::new();
    let trap = scene.trap("address");
    let trap = trap.display();
    let helper = scene.path("git-remote-evil");
    std::fs::copy(scene.path("trap-address"), &helper).unwrap();
    for url in [
        format!("ext::{trap}"),
        format!("ext::{trap} ://x"),
        format!("ext::sh% -c% {trap}% ://"),
        format!("ssh://-oProxyCommand={trap}/a/b"),
        format!("ssh://-oProxyCommand={trap}@127.0.0.1/a/b"),
        format!("-oProxyCommand={trap}@127.0.0.1:a/b").replace('/', "%2f"),
        format!("--upload-pack={trap}://x"),
        format!("-u{trap}://"),
        format!("git-remote-evil://{trap}"),
        "evil://x/y".to_owned(),
        "fd::17://".to_owned(),
        format!("ssh://git@127.0.0.1:1/-oProxyCommand={trap}"),
        "https://example.org/a\nb".to_owned(),
    ] {
        for revision in [None, Some("--upload-pack=touch x"), Some("refs/heads/x:y")] {
            let error = scene.open_url(&url, revision).unwrap_err();
            assert!(
                matches!(error.kind, ErrorKind::Input | ErrorKind::Unavailable),
                "{url}: {}",
                error.message
            );
        }
    }
    assert_eq!(scene.marks(), [""; 0]);
}

/// Protocols other than git's own would start a program of that name.
#[test]
fn unknown_protocols_are_rejected() {
    let scene = Scene::new();
    for url in [
        "evil://x/y",
        "ext::sh -c x://",
        "-x://y",
        "ftp://127.0.0.1/x",
    ] {
        let error = scene.open_url(url, None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{url}: {}", error.message);
        assert!(error.hint.is_some(), "{url}");
    }
}

/// A repository at a `file:` URL is as untrusted as any other.
#[test]
fn file_url_runs_nothing() {
    let scene = Scene::new();
    let work = scene.repository();
    let trap = scene.trap("file");
    let object = git(&work, &["rev-parse", "HEAD:a.py"]);
    for (key, value) in [
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.url", work.to_str().unwrap()),
        ("remote.origin.uploadpack", trap.to_str().unwrap()),
        ("uploadpack.packObjectsHook", trap.to_str().unwrap()),
        ("core.alternateRefsCommand", trap.to_str().unwrap()),
        ("core.fsmonitor", trap.to_str().unwrap()),
    ] {
        git(&work, &["config", key, value]);
    }
    let (folder, file_name) = object.split_at(2);
    std::fs::remove_file(work.join(".git/objects").join(folder).join(file_name)).unwrap();
    let _ = scene.open_url(&format!("file://{}", work.display()), None);
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn pipes_behind_file_url_cannot_hang() {
    for file in ["HEAD", "config", "packed-refs", "objects/info/alternates"] {
        let scene = Scene::new();
        let work = scene.repository();
        std::fs::create_dir_all(work.join(".git/objects/info")).unwrap();
        fifo(&work.join(".git").join(file));
        let (url, cache) = (format!("file://{}", work.display()), scene.cache());
        let _ = in_time(file, move || {
            open(&url, None, &cache, &OpenOptions::default()).map(|r| r.source())
        });
    }
}
