//! Checks of isolation in both directions.

use std::io::Read;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::time::Duration;

use futures::FutureExt;
use testwright_sandboxes::Sandbox;
use testwright_sandboxes::sandbox::output;

use super::{
    CHECK_TIMEOUT, Check, CheckFn, Command, Fault, Fixture, Verdict, ensure, expect, python, sh,
    stop,
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check {
            name: "no TCP to the host",
            what: CheckFn::Making(|g| no_tcp(g).boxed()),
            fault: Fault::NoIsolation,
        },
        Check {
            name: "no datagrams to the host",
            what: CheckFn::Making(|g| no_udp(g).boxed()),
            fault: Fault::NoIsolation,
        },
        Check {
            name: "loopback inside",
            what: CheckFn::Running(|s| loopback(s).boxed()),
            fault: Fault::NoLoopback,
        },
        Check {
            name: "the host's files cannot be written",
            what: CheckFn::Making(|g| no_host_writes(g).boxed()),
            fault: Fault::NoIsolation,
        },
        Check {
            name: "system files cannot be written",
            what: CheckFn::Running(|s| no_system_writes(s).boxed()),
            fault: Fault::NoIsolation,
        },
        Check {
            name: "the host's secrets cannot be read",
            what: CheckFn::Making(|g| no_secrets(g).boxed()),
            fault: Fault::ExposeHost,
        },
        Check {
            name: "the host's variables are not visible",
            what: CheckFn::Running(|s| no_variables(s).boxed()),
            fault: Fault::LeakVariables,
        },
        Check {
            name: "the host's processes cannot be ended",
            what: CheckFn::Running(|s| no_kills(s).boxed()),
            fault: Fault::NoIsolation,
        },
        Check {
            name: "the store and the environment cannot be written by tools",
            what: CheckFn::Running(|s| no_store_writes(s).boxed()),
            fault: Fault::Root,
        },
        Check {
            name: "the store can be written while an environment is built",
            what: CheckFn::Making(|g| store_writes_when_building(g).boxed()),
            fault: Fault::NotRoot,
        },
        Check {
            name: "tools have no power of root",
            what: CheckFn::Running(|s| no_power(s).boxed()),
            fault: Fault::NoIsolation,
        },
        Check {
            name: "dangerous system calls are refused",
            what: CheckFn::Running(|s| no_dangerous_calls(s).boxed()),
            fault: Fault::NoIsolation,
        },
    ]
}

/// Returns the addresses under which the host can be reached.
fn host_addresses() -> Vec<IpAddr> {
    let mut all = vec![IpAddr::from([127, 0, 0, 1])];
    // Connecting a datagram socket sends nothing. It only reveals the local address.
    if let Ok(socket) = UdpSocket::bind("0.0.0.0:0")
        && socket.connect("192.0.2.1:9").is_ok()
        && let Ok(address) = socket.local_addr()
    {
        all.push(address.ip());
    }
    all.push(IpAddr::from([172, 17, 0, 1]));
    all
}

fn connect_script(addresses: &[IpAddr], port: u16) -> String {
    format!(
        "import socket
for host in {:?}:
    try:
        socket.create_connection((host, {port}), 3).close(); print('connected', host)
    except OSError as e: pass
print('tried')",
        addresses
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    )
}

async fn no_tcp(ground: Fixture<'_>) -> Verdict {
    let listener = TcpListener::bind("0.0.0.0:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let sandbox = ground.sandbox(&ground.spec()).await?;
    let (_, text) = python(sandbox.as_ref(), &connect_script(&host_addresses(), port)).await?;
    stop(sandbox).await?;
    expect("what the sandbox saw", text.as_str(), "tried")?;
    listener.set_nonblocking(true).unwrap();
    ensure(listener.accept().is_err(), "the host was reached")
}

async fn no_udp(ground: Fixture<'_>) -> Verdict {
    let receiver = UdpSocket::bind("0.0.0.0:0").unwrap();
    let port = receiver.local_addr().unwrap().port();
    let sandbox = ground.sandbox(&ground.spec()).await?;
    let script = format!(
        "import socket
for host in {:?}:
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'out', (host, {port}))
    except OSError as e: pass
print('tried')",
        host_addresses()
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    );
    let (_, text) = python(sandbox.as_ref(), &script).await?;
    stop(sandbox).await?;
    expect("what the sandbox saw", text.as_str(), "tried")?;
    receiver
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    ensure(receiver.recv(&mut [0; 8]).is_err(), "a datagram came out")
}

async fn loopback(sandbox: &dyn Sandbox) -> Verdict {
    let script = "import socket
s = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname(), 5)
a, _ = s.accept(); c.sendall(b'in'); print(a.recv(2).decode())";
    let (_, text) = python(sandbox, script).await?;
    expect("what came", text.as_str(), "in")
}

/// Returns a folder in the host's home that only faulty sandboxes can reach. It stays for later runs.
pub(super) fn host_folder() -> std::path::PathBuf {
    let folder = std::env::home_dir()
        .unwrap()
        .join(".cache/testwright-check");
    std::fs::create_dir_all(&folder).unwrap();
    let secret = folder.join("secret");
    if !secret.exists() {
        // Renamed into place, because other tests may be reading it.
        let aside = folder.join(super::states::mark());
        std::fs::write(&aside, "the host's secret").unwrap();
        std::fs::rename(aside, secret).unwrap();
    }
    folder
}

async fn no_host_writes(ground: Fixture<'_>) -> Verdict {
    let target = host_folder().join(format!("written-{}", super::states::mark()));
    let sandbox = ground.sandbox(&ground.spec()).await?;
    let (_, text) = sh(
        sandbox.as_ref(),
        &format!("echo x > '{}'", target.display()),
    )
    .await?;
    stop(sandbox).await?;
    ensure(
        std::fs::remove_file(&target).is_err(),
        format!("a file of the host was written: {text}"),
    )
}

async fn no_system_writes(sandbox: &dyn Sandbox) -> Verdict {
    // The script only opens the files for writing, so that a faulty sandbox breaks nothing.
    let script = "import os
for path in ['/usr/bin/env', '/etc/passwd']:
    try: os.close(os.open(path, os.O_WRONLY)); print('opened', path)
    except OSError: pass
print('tried')";
    let (_, text) = python(sandbox, script).await?;
    expect("what the sandbox saw", text.as_str(), "tried")
}

async fn no_secrets(ground: Fixture<'_>) -> Verdict {
    let sandbox = ground.sandbox(&ground.spec()).await?;
    let secret = host_folder().join("secret");
    let script = format!(
        "cat '{}' /proc/1/root'{}' /etc/shadow",
        secret.display(),
        secret.display()
    );
    let (_, text) = sh(sandbox.as_ref(), &script).await?;
    let link = sandbox.info().paths.workspace.join("link");
    sh(
        sandbox.as_ref(),
        &format!("ln -s '{}' '{}'", secret.display(), link.display()),
    )
    .await?;
    let through = sandbox.download(&link).await;
    stop(sandbox).await?;
    ensure(
        !text.contains("the host's secret"),
        "a file in the host's home was read",
    )?;
    ensure(!text.contains("root:"), "/etc/shadow was read")?;
    ensure(
        through.is_err(),
        "a download follows a link out of the sandbox",
    )
}

async fn no_variables(sandbox: &dyn Sandbox) -> Verdict {
    // Set whenever these tests run.
    const NAME: &str = "CARGO_MANIFEST_DIR";
    ensure(
        std::env::var_os(NAME).is_some(),
        "the check needs a variable of the host",
    )?;
    let (_, text) = sh(
        sandbox,
        "env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'",
    )
    .await?;
    ensure(text.contains("FROM_SPEC"), "no variables at all")?;
    ensure(!text.contains(NAME), format!("{NAME} is there"))
}

async fn no_kills(sandbox: &dyn Sandbox) -> Verdict {
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let script = format!(
        "import os, signal
try: os.kill({}, signal.SIGKILL)
except OSError: pass
print('tried')",
        child.id()
    );
    let tried = python(sandbox, &script).await;
    let lives = child.try_wait().unwrap().is_none() && {
        // A killed process may not be reaped at once.
        std::thread::sleep(Duration::from_millis(50));
        child.try_wait().unwrap().is_none()
    };
    let _ = child.kill();
    let _ = child.wait();
    let _ = child.stdout.take().map(|mut out| out.read(&mut [0]));
    expect("what the sandbox saw", tried?.1.as_str(), "tried")?;
    ensure(lives, "a process of the host was killed")
}

async fn no_store_writes(sandbox: &dyn Sandbox) -> Verdict {
    let paths = &sandbox.info().paths;
    for folder in [&paths.store, &paths.environment] {
        let script = format!("mkdir -p '{0}' && touch '{0}/written'", folder.display());
        ensure(
            sh(sandbox, &script).await?.0 != 0,
            format!("{} was written", folder.display()),
        )?;
    }
    Ok(())
}

async fn store_writes_when_building(ground: Fixture<'_>) -> Verdict {
    let mut spec = ground.spec();
    spec.root = true;
    let sandbox = ground.sandbox(&spec).await?;
    let environment = sandbox.info().paths.environment.display().to_string();
    let script = format!(
        "python3 -m venv --without-pip '{environment}' && '{environment}/bin/python' -c 'print(42)'"
    );
    let out = output(sandbox.as_ref(), &Command::shell(script), CHECK_TIMEOUT).await;
    stop(sandbox).await?;
    let out = out.map_err(|e| e.to_string())?;
    let text =
        String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    expect(
        "what a virtual environment says",
        (out.code, text.as_str()),
        (0, "42\n"),
    )
}

async fn no_power(sandbox: &dyn Sandbox) -> Verdict {
    let script = "import os
open('owned', 'w').close()
for name, attempt in [('chown', lambda: os.chown('owned', 4321, 4321)), ('chroot', lambda: os.chroot('/')),
                      ('setgroups', lambda: os.setgroups([4321]))]:
    try: attempt(); print(name)
    except OSError: pass
print('tried')";
    let (_, text) = python(sandbox, script).await?;
    expect("what the sandbox can do", text.as_str(), "tried")
}

async fn no_dangerous_calls(sandbox: &dyn Sandbox) -> Verdict {
    let script = "import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
libc.unshare.argtypes = [ctypes.c_int]
if libc.unshare(0x10000000) == 0: print('unshare')
libc.mount.argtypes = [ctypes.c_char_p] * 3 + [ctypes.c_ulong, ctypes.c_void_p]
if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0: print('mount')
print('tried')";
    let (_, text) = python(sandbox, script).await?;
    expect("what the sandbox can do", text.as_str(), "tried")
}
