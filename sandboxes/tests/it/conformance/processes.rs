//! Checks of processes, their streams and their ends.

use std::time::Duration;

use futures::FutureExt;
use testwright_sandboxes::sandbox::{Process, output};
use testwright_sandboxes::{Command, Sandbox};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{CHECK_TIMEOUT, Check, CheckFn, Fault, Verdict, ensure, expect, noise, python, sh};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check {
            name: "streams carry any bytes both ways",
            what: CheckFn::Running(|s| binary(s).boxed()),
            fault: Fault::TextStreams,
        },
        Check {
            name: "a conversation goes back and forth",
            what: CheckFn::Running(|s| conversation(s).boxed()),
            fault: Fault::HoldOutput,
        },
        Check {
            name: "large outputs do not stall",
            what: CheckFn::Running(|s| large(s).boxed()),
            fault: Fault::CutStreams,
        },
        Check {
            name: "standard output and standard error stay apart",
            what: CheckFn::Running(|s| apart(s).boxed()),
            fault: Fault::MixStreams,
        },
        Check {
            name: "the end of standard input arrives",
            what: CheckFn::Running(|s| end_of_input(s).boxed()),
            fault: Fault::HoldInput,
        },
        Check {
            name: "exit codes and signals are reported",
            what: CheckFn::Running(|s| codes(s).boxed()),
            fault: Fault::AlwaysZero,
        },
        Check {
            name: "a missing program does not run",
            what: CheckFn::Running(|s| no_program(s).boxed()),
            fault: Fault::AlwaysZero,
        },
        Check {
            name: "variables of the sandbox and of the command are set",
            what: CheckFn::Running(|s| variables(s).boxed()),
            fault: Fault::DropVariables,
        },
        Check {
            name: "the working folder is as requested, by default the workspace",
            what: CheckFn::Running(|s| folder(s).boxed()),
            fault: Fault::DropDirectory,
        },
        Check {
            name: "arguments arrive as they are",
            what: CheckFn::Running(|s| arguments(s).boxed()),
            fault: Fault::JoinArguments,
        },
        Check {
            name: "processes run side by side",
            what: CheckFn::Running(|s| together(s).boxed()),
            fault: Fault::OneAtATime,
        },
        Check {
            name: "temporary files and Python work",
            what: CheckFn::Running(|s| everyday(s).boxed()),
            fault: Fault::DropVariables,
        },
    ]
}

async fn spawn(sandbox: &dyn Sandbox, command: Command) -> Result<Process, String> {
    sandbox
        .spawn(&command)
        .await
        .map_err(|e| format!("spawn: {e}"))
}

/// Sends `input` to a process and returns its output.
async fn through(
    sandbox: &dyn Sandbox,
    command: Command,
    input: &[u8],
) -> Result<(Vec<u8>, i32), String> {
    let mut process = spawn(sandbox, command).await?;
    let mut out = Vec::new();
    let write = async {
        let sent = process.stdin.write_all(input).await;
        let closed = process.stdin.shutdown().await;
        drop(process.stdin);
        sent.and(closed)
    };
    let (sent, read) = tokio::join!(write, process.stdout.read_to_end(&mut out));
    sent.map_err(|e| format!("write: {e}"))?;
    read.map_err(|e| format!("read: {e}"))?;
    let code = process.exit.await.map_err(|e| e.to_string())?;
    Ok((out, code))
}

async fn binary(sandbox: &dyn Sandbox) -> Verdict {
    let input = noise(1 << 20);
    let (out, code) = through(sandbox, Command::new(["cat"]), &input).await?;
    expect("exit code", code, 0)?;
    ensure(out == input, format!("{} other bytes came back", out.len()))
}

async fn conversation(sandbox: &dyn Sandbox) -> Verdict {
    let mut process = spawn(sandbox, Command::new(["cat"])).await?;
    for round in 0..20u8 {
        let word = [round, b'\n', 0xff, round];
        let sent = process.stdin.write_all(&word).await;
        let flushed = process.stdin.flush().await;
        sent.and(flushed).map_err(|e| format!("write: {e}"))?;
        let mut back = [0; 4];
        let read =
            tokio::time::timeout(Duration::from_secs(5), process.stdout.read_exact(&mut back))
                .await;
        read.map_err(|_| "no answer while the input is open")?
            .map_err(|e| format!("read: {e}"))?;
        expect("answer", back, word)?;
    }
    drop(process.stdin);
    let code = tokio::time::timeout(CHECK_TIMEOUT, process.exit).await;
    let code = code
        .map_err(|_| "it continues without input")?
        .map_err(|e| e.to_string())?;
    expect("exit code", code, 0)
}

async fn large(sandbox: &dyn Sandbox) -> Verdict {
    let script = "head -c 8000000 /dev/zero; head -c 4000000 /dev/zero >&2; echo end";
    let out = output(sandbox, &Command::shell(script), CHECK_TIMEOUT).await;
    let out = out.map_err(|e| e.to_string())?;
    expect(
        "bytes",
        (out.stdout.len(), out.stderr.len()),
        (8_000_004, 4_000_000),
    )
}

async fn apart(sandbox: &dyn Sandbox) -> Verdict {
    let out = output(
        sandbox,
        &Command::shell("echo out; echo err >&2"),
        CHECK_TIMEOUT,
    )
    .await;
    let out = out.map_err(|e| e.to_string())?;
    expect("output", out.stdout.as_slice(), b"out\n".as_slice())?;
    expect("error output", out.stderr.as_slice(), b"err\n".as_slice())
}

async fn end_of_input(sandbox: &dyn Sandbox) -> Verdict {
    let (out, _) = tokio::time::timeout(
        Duration::from_secs(8),
        through(sandbox, Command::new(["wc", "-c"]), b"12345"),
    )
    .await
    .map_err(|_| "the process waits for more input")??;
    expect("count", String::from_utf8_lossy(&out).trim(), "5")
}

async fn codes(sandbox: &dyn Sandbox) -> Verdict {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 7", 7),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -15 $$", 143),
    ] {
        expect(script, sh(sandbox, script).await?.0, code)?;
    }
    Ok(())
}

async fn no_program(sandbox: &dyn Sandbox) -> Verdict {
    let command = Command::new(["no-such-program-here"]);
    match output(sandbox, &command, CHECK_TIMEOUT).await {
        Ok(out) => ensure(
            matches!(out.code, 126 | 127),
            format!("it ended with {}", out.code),
        ),
        Err(_) => Ok(()),
    }
}

async fn variables(sandbox: &dyn Sandbox) -> Verdict {
    let mut command = Command::shell("printf '%s|' \"$FROM_SPEC\" \"$OWN\"");
    command
        .env
        .insert("OWN".to_owned(), "a b=c\n'\"".to_owned());
    let out = output(sandbox, &command, CHECK_TIMEOUT)
        .await
        .map_err(|e| e.to_string())?;
    expect(
        "values",
        String::from_utf8_lossy(&out.stdout).as_ref(),
        "spec|a b=c\n'\"|",
    )
}

async fn folder(sandbox: &dyn Sandbox) -> Verdict {
    let paths = sandbox.info().paths.clone();
    expect(
        "default",
        sh(sandbox, "pwd -P").await?.1.trim(),
        &*paths.workspace.to_string_lossy(),
    )?;
    let mut command = Command::shell("pwd -P");
    command.directory = Some(paths.temporary.clone());
    let out = output(sandbox, &command, CHECK_TIMEOUT)
        .await
        .map_err(|e| e.to_string())?;
    expect(
        "as asked",
        String::from_utf8_lossy(&out.stdout).trim(),
        &*paths.temporary.to_string_lossy(),
    )
}

async fn arguments(sandbox: &dyn Sandbox) -> Verdict {
    let words = ["a b", "", "*", "$HOME", "'", "ü", "\n"];
    let all = ["printf", "%s|"].into_iter().chain(words);
    let out = output(sandbox, &Command::new(all), CHECK_TIMEOUT)
        .await
        .map_err(|e| e.to_string())?;
    let expected: String = words.iter().map(|word| format!("{word}|")).collect();
    expect(
        "arguments",
        String::from_utf8_lossy(&out.stdout).as_ref(),
        expected.as_str(),
    )
}

async fn together(sandbox: &dyn Sandbox) -> Verdict {
    // Each process waits for the other.
    let temporary = sandbox.info().paths.temporary.display().to_string();
    let script = |mine: &str, other: &str| {
        format!(
            "cd '{temporary}' && rm -f side-{other}.old; touch side-{mine}; for i in $(seq 100); do [ -e side-{other} ] && exit 0; sleep 0.1; done; exit 1"
        )
    };
    let (first, second) = (script("a", "b"), script("b", "a"));
    let both = async { tokio::join!(sh(sandbox, &first), sh(sandbox, &second)) };
    let (a, b) = tokio::time::timeout(Duration::from_secs(8), both)
        .await
        .map_err(|_| "they wait for each other")?;
    expect("exit codes", (a?.0, b?.0), (0, 0))
}

async fn everyday(sandbox: &dyn Sandbox) -> Verdict {
    let script = "import os, tempfile, subprocess, sys, threading
assert os.environ['FROM_SPEC'] == 'spec'
with tempfile.TemporaryDirectory() as d: open(os.path.join(d, 'f'), 'w').write('x')
home = os.path.expanduser('~'); open(os.path.join(home, 'f'), 'w').write('x')
t = threading.Thread(target=lambda: None); t.start(); t.join()
assert subprocess.check_output([sys.executable, '-c', 'print(6*7)']) == b'42\\n'
import asyncio; asyncio.new_event_loop().close()
import ssl, sqlite3, hashlib, ctypes, zlib
open('/dev/null', 'w').write('x'); open('/dev/urandom', 'rb').read(4)
print('fine')";
    let (code, text) = python(sandbox, script).await?;
    expect("what Python says", (code, text.as_str()), (0, "fine"))
}
