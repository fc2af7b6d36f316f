#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn sh(script: &str) -> Command {
    Command {
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        directory: std::env::temp_dir(),
        env: BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]),
        stdin: Vec::new(),
        merge: false,
        max_output_bytes: 4096,
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(300)
}

fn late() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

fn alive(pid: &str) -> bool {
    Path::new("/proc").join(pid.trim()).exists()
}

#[test]
fn output_streams_are_separate() {
    let result = run(&sh("echo out; echo err >&2; exit 3"), late()).unwrap();
    assert_eq!(result.ended, ExitReason::Exit(3));
    assert_eq!(
        (result.stdout.text().as_str(), result.stderr.text().as_str()),
        ("out\n", "err\n")
    );
}

#[test]
fn merged_streams_keep_write_order() {
    let mut command = sh("echo 1; echo 2 >&2; echo 3");
    command.merge = true;
    assert_eq!(run(&command, late()).unwrap().stdout.text(), "1\n2\n3\n");
}

#[test]
fn stdin_is_written_and_closed() {
    let mut command = sh("cat; echo end");
    assert_eq!(run(&command, late()).unwrap().stdout.text(), "end\n");
    command.stdin = b"given\n".to_vec();
    assert_eq!(run(&command, late()).unwrap().stdout.text(), "given\nend\n");
}

#[test]
fn environment_is_not_inherited() {
    let result = run(&sh("env | cut -d= -f1 | sort | tr '\\n' ' '"), late()).unwrap();
    assert_eq!(result.stdout.text(), "PATH PWD ");
}

#[test]
fn signals_are_not_exit_codes() {
    let result = run(&sh("kill -SEGV $$"), late()).unwrap();
    assert_eq!(
        (result.ended, result.exit_code()),
        (ExitReason::Signal(11), None)
    );
}

#[test]
fn missing_program_is_broken() {
    let mut command = sh("");
    command.program = "/nowhere/at/all".into();
    let error = run(&command, late()).unwrap_err();
    assert!(matches!(error, ToolError::Broken(text) if text.contains("/nowhere/at/all")));
}

#[test]
fn deadline_ends_children_in_other_sessions() {
    adopt_orphans().unwrap();
    let script = "setsid sleep 1000 & echo $!; (setsid sh -c 'echo $$; sleep 1000' &) ; sleep 1000";
    let result = run(&sh(script), soon()).unwrap();
    assert!(result.timed_out());
    let printed = result.stdout.text();
    let pids: Vec<&str> = printed.lines().collect();
    assert_eq!(pids.len(), 2, "{printed}");
    for pid in pids {
        assert!(!alive(pid), "{pid} lives on, or is a zombie");
    }
}

#[test]
fn background_children_end_with_program() {
    adopt_orphans().unwrap();
    let result = run(&sh("(setsid sleep 1000 & echo $!) ; exit 0"), late()).unwrap();
    assert_eq!(result.ended, ExitReason::Exit(0));
    assert!(!alive(&result.stdout.text()));
    assert!(result.took < Duration::from_secs(30));
}

#[test]
fn output_until_deadline_is_capped() {
    let result = run(&sh("echo first; while :; do echo more; done"), soon()).unwrap();
    assert!(result.timed_out());
    let text = result.stdout.text();
    assert!(
        text.starts_with("first\nmore") && text.len() < 5000,
        "{}",
        text.len()
    );
    assert!(text.contains("bytes left out"));
}
