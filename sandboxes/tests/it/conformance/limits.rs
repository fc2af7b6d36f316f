//! Checks that limits hold, and that a process that reaches one does not end the sandbox.

use futures::FutureExt;
use testwright_sandboxes::Sandbox;

use super::{Check, CheckFn, Fault, Verdict, ensure, expect, python};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check {
            name: "memory is limited",
            what: CheckFn::Running(|s| memory(s).boxed()),
            fault: Fault::NoLimits,
        },
        Check {
            name: "shared memory is limited",
            what: CheckFn::Running(|s| shared_memory(s).boxed()),
            fault: Fault::NoLimits,
        },
        Check {
            name: "processes are limited",
            what: CheckFn::Running(|s| processes(s).boxed()),
            fault: Fault::NoLimits,
        },
        Check {
            name: "the size of a file is limited",
            what: CheckFn::Running(|s| file_size(s).boxed()),
            fault: Fault::NoLimits,
        },
    ]
}

async fn alive(sandbox: &dyn Sandbox) -> Verdict {
    sandbox
        .health()
        .await
        .map_err(|e| format!("afterwards: {e}"))?;
    let (code, text) = python(sandbox, "print('alive')").await?;
    expect("afterwards", (code, text.as_str()), (0, "alive"))
}

/// Exceeds the memory limit of 512 MiB.
async fn memory(sandbox: &dyn Sandbox) -> Verdict {
    let (code, text) = python(sandbox, "x = b'x' * (3 << 28); print('had', len(x))").await?;
    ensure(code != 0 && !text.contains("had"), "768 MiB were had")?;
    alive(sandbox).await
}

/// Exceeds the memory limit with shared memory, which is counted separately: at most four times the limit.
async fn shared_memory(sandbox: &dyn Sandbox) -> Verdict {
    let script = "import mmap
m = mmap.mmap(-1, 9 << 28)
for at in range(0, 9 << 28, 1 << 12): m[at] = 1
print('had')";
    let (code, text) = python(sandbox, script).await?;
    ensure(code != 0 && !text.contains("had"), "2.25 GiB were had")?;
    alive(sandbox).await
}

/// Exceeds the limit of 64 processes.
async fn processes(sandbox: &dyn Sandbox) -> Verdict {
    let script = "import os, signal, sys
children = []
try:
    for _ in range(200):
        pid = os.fork()
        if pid == 0:
            signal.pause(); os._exit(0)
        children.append(pid)
    print('had')
except OSError: print('refused')
for pid in children: os.kill(pid, signal.SIGKILL)
for pid in children: os.waitpid(pid, 0)
print(len(children) > 20)";
    let (_, text) = python(sandbox, script).await?;
    expect("200 processes", text.as_str(), "refused\nTrue")?;
    alive(sandbox).await
}

/// Exceeds the file size limit of 64 MiB.
async fn file_size(sandbox: &dyn Sandbox) -> Verdict {
    let script = "import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open('large', 'wb') as f:
        for _ in range(100): f.write(bytes(1 << 20))
    print('had')
except OSError: print('refused')
os.remove('large')";
    let (_, text) = python(sandbox, script).await?;
    expect("100 MiB", text.as_str(), "refused")?;
    alive(sandbox).await
}
