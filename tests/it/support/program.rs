//! Runs the program as a user does: on the example, in the local sandbox, with recorded replies.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A boundary between untrusted code and the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Boundary {
    Namespaces,
    /// Namespaces created by an unprivileged user.
    UserNamespaces,
    /// Landlock, for an unprivileged user who cannot create namespaces.
    Landlock,
    Docker,
}

impl Boundary {
    /// Returns the boundaries available on this machine.
    pub(crate) fn all() -> Vec<Boundary> {
        use Boundary::*;
        [Namespaces, UserNamespaces, Landlock, Docker]
            .into_iter()
            .filter(|boundary| boundary.is_here())
            .collect()
    }

    fn is_here(self) -> bool {
        match self {
            Boundary::Namespaces => true,
            Boundary::Docker => crate::support::base_image::is_available(),
            Boundary::UserNamespaces | Boundary::Landlock => {
                let words = self.command("true");
                let ended = Command::new(&words[0]).args(&words[1..]).status();
                let here = ended.is_ok_and(|status| status.success());
                if !here {
                    eprintln!("skipped: no user namespaces to try {self:?} in");
                }
                here
            }
        }
    }

    pub(crate) fn sandbox(self) -> &'static str {
        match self {
            Boundary::Docker => "docker",
            Boundary::Landlock => "landlock",
            _ => "local",
        }
    }

    /// Returns the command line that starts a program within the boundary.
    ///
    /// The program sees another user ID, but files still belong to the user who runs the tests.
    fn command(self, program: &str) -> Vec<String> {
        const USER: [&str; 4] = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];
        const FORBID: &str = "for kind in user mnt pid; do echo 0 >/proc/sys/user/max_${kind}_namespaces || exit; done; \
                              exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"";
        let words: Vec<&str> = match self {
            Boundary::Namespaces | Boundary::Docker => Vec::new(),
            Boundary::UserNamespaces => USER.to_vec(),
            Boundary::Landlock => [&USER[..], &["--keep-caps", "sh", "-c", FORBID, "sh"]].concat(),
        };
        let words = words.into_iter().chain([program]);
        words.map(str::to_owned).collect()
    }
}

/// A temporary folder for one test, and the program with its own settings.
pub(crate) struct TestDir {
    pub folder: tempfile::TempDir,
    boundary: Boundary,
}

impl TestDir {
    pub(crate) fn new() -> Self {
        TestDir::within(Boundary::Namespaces)
    }

    pub(crate) fn within(boundary: Boundary) -> Self {
        TestDir {
            folder: tempfile::tempdir().unwrap(),
            boundary,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command for the program. It ignores the developer's settings, and shares one cache with all tests
    /// within the same boundary.
    pub(crate) fn testwright(&self) -> Command {
        self.command(Path::new(env!("CARGO_BIN_EXE_testwright")))
    }

    /// Returns a command for another build of the program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let words = self.boundary.command(program.to_str().unwrap());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("OPENAI_")
                || name.starts_with("AZURE_")
                || name.starts_with("TESTWRIGHT_")
                || name == "GITHUB_ACTIONS"
                || name == "FORCE_COLOR"
            {
                command.env_remove(name.as_ref());
            }
        }
        let cache = match self.boundary {
            Boundary::Namespaces | Boundary::Docker => "cache".to_owned(),
            other => format!("cache-{other:?}"),
        };
        command
            .env(
                "TESTWRIGHT_CACHE",
                Path::new(env!("CARGO_TARGET_TMPDIR")).join(cache),
            )
            .env("XDG_CONFIG_HOME", self.path("config"))
            .stdin(Stdio::null());
        command
    }

    /// Returns the command `testwright run` on the example.
    pub(crate) fn run_example(&self, arguments: &[&str]) -> Command {
        let mut command = self.testwright();
        command
            .args([
                "run",
                &example("issue.md"),
                "--repo",
                &example("slugs"),
                "--out",
            ])
            .arg(self.path("out"))
            .args(arguments);
        command
    }

    /// Resumes the run in `out`.
    pub(crate) fn resume(&self) -> Output {
        let mut command = self.testwright();
        command.args(["run", "--resume"]).arg(self.path("out"));
        command.output().unwrap()
    }

    /// Writes a recording that replays these replies in order; `{"error": …}` is a failing call.
    pub(crate) fn recording(&self, replies: &[Value]) -> String {
        let lines: Vec<String> = replies
            .iter()
            .map(|reply| {
                let mut line = json!({
                    "model": "recorded", "digest": "", "kept": 0, "messages": [],
                    "setting": {"tools": [], "parallel_calls": true}, "seconds": 0.0,
                });
                match reply.get("error") {
                    Some(error) => line["error"] = error.clone(),
                    None => line["reply"] = reply.clone(),
                }
                line.to_string()
            })
            .collect();
        let file = self.path("replies.jsonl");
        std::fs::write(&file, lines.join("\n") + "\n").unwrap();
        format!("replay-by-order:{}", file.display())
    }

    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("out").join(name)).unwrap()).unwrap()
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        std::fs::read_to_string(self.path("out/trajectory.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// Returns the results of the tool calls in the run, in order.
    pub(crate) fn answers(&self) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter(|event| event["event"] == "answer")
            .map(|event| event["result"]["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

pub(crate) fn example(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// Returns a reply that calls tools.
pub(crate) fn calls(calls: &[(&str, Value)]) -> Value {
    static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    let calls: Vec<Value> = calls
        .iter()
        .map(|(name, arguments)| {
            let id = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            json!({"id": format!("call{id}"), "name": name, "arguments": arguments})
        })
        .collect();
    json!({
        "content": "", "calls": calls, "malformed": [], "finish": "tool_calls",
        "usage": {"prompt_tokens": 1000, "cached_tokens": 500, "completion_tokens": 50, "dollars": null},
    })
}

pub(crate) fn text_reply(content: &str) -> Value {
    json!({
        "content": content, "calls": [], "malformed": [], "finish": "stop",
        "usage": {"prompt_tokens": 1000, "cached_tokens": 0, "completion_tokens": 50, "dollars": null},
    })
}

pub(crate) fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Asserts the exit code, and shows the output if it differs.
#[track_caller]
pub(crate) fn assert_exit_code(output: &Output, expected_code: i32) {
    assert_eq!(
        code(output),
        expected_code,
        "stdout:\n{}\nstderr:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

pub(crate) fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Interrupts a process, as Ctrl-C does.
#[track_caller]
pub(crate) fn interrupt(process: &Child) {
    let id = process.id().to_string();
    let status = Command::new("kill").args(["-INT", &id]).status();
    assert!(status.unwrap().success());
}
