#![allow(clippy::unwrap_used)]

use super::*;

fn shell(script: &str) -> Command {
    let mut command = programs::program("sh");
    command.args(["-c", script]);
    command
}

/// Returns whether a process exists and has not ended.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn child_processes_end_with_program() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pid");
    let script = format!("sleep 1000 & echo $! > '{}'; yes", file.display());
    let bounds = ProcessLimits {
        output: 1000,
        ..ProcessLimits::default()
    };
    let refused = run(shell(&script), b"", &bounds).err().unwrap();
    assert!(refused.to_string().contains("printed more"), "{refused}");
    let pid = std::fs::read_to_string(file).unwrap();
    for _ in 0..100 {
        if !is_alive(pid.trim()) {
            return;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    panic!("process {pid} still runs");
}

#[test]
fn closed_output_does_not_prevent_timeout() {
    let bounds = ProcessLimits {
        time: Duration::from_millis(300),
        ..ProcessLimits::default()
    };
    let closed = shell("exec >&- 2>&-; sleep 1000");
    let refused = run(closed, b"", &bounds).err().unwrap();
    assert!(refused.to_string().contains("longer"), "{refused}");
}
