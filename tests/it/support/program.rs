//! The program itself, as a user runs it: on the example, in the local sandbox, with recorded replies for a model.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

/// What stands between the code of others and the host.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Boundary {
    Namespaces,
    /// Namespaces that an ordinary user makes.
    UserNamespaces,
    /// For an ordinary user who may make no namespaces.
    Landlock,
    Docker,
}

impl Boundary {
    /// Those that this machine has.
    pub fn all() -> Vec<Boundary> {
        use Boundary::*;
        [Namespaces, UserNamespaces, Landlock, Docker]
            .into_iter()
            .filter(|boundary| boundary.is_here())
            .collect()
    }

    fn is_here(self) -> bool {
        match self {
            Boundary::Namespaces => true,
            Boundary::Docker => crate::support::base_image::is_there(),
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

    pub fn sandbox(self) -> &'static str {
        match self {
            Boundary::Docker => "docker",
            Boundary::Landlock => "landlock",
            _ => "local",
        }
    }

    /// How a program is started in it. The user is another one only as far as programs can see: files stay those of
    /// whoever runs the tests.
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

/// A folder for one test, and the program with settings of its own.
pub struct Place {
    pub folder: tempfile::TempDir,
    boundary: Boundary,
}

impl Place {
    pub fn new() -> Self {
        Place::within(Boundary::Namespaces)
    }

    pub fn within(boundary: Boundary) -> Self {
        Place {
            folder: tempfile::tempdir().unwrap(),
            boundary,
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, with no settings of whoever runs the tests, and one cache for all tests within the same boundary.
    pub fn testwright(&self) -> Command {
        self.command(Path::new(env!("CARGO_BIN_EXE_testwright")))
    }

    /// The same for another build of the program.
    pub fn command(&self, program: &Path) -> Command {
        let words = self.boundary.command(program.to_str().unwrap());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if name.starts_with("OPENAI_")
                || name.starts_with("AZURE_")
                || name.starts_with("TESTWRIGHT_")
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

    /// `testwright run` on the example.
    pub fn run_example(&self, arguments: &[&str]) -> Command {
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

    /// Goes on with the run in `out`.
    pub fn resume(&self) -> Output {
        let mut command = self.testwright();
        command.args(["run", "--resume"]).arg(self.path("out"));
        command.output().unwrap()
    }

    /// A recording whose replies are played in this order; `{"error": …}` is a call that fails.
    pub fn recording(&self, replies: &[Value]) -> String {
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

    pub fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("out").join(name)).unwrap()).unwrap()
    }

    pub fn events(&self) -> Vec<Value> {
        std::fs::read_to_string(self.path("out/trajectory.jsonl"))
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// What the tools answered in the run, in order.
    pub fn answers(&self) -> Vec<String> {
        let events = self.events().into_iter();
        events
            .filter(|event| event["event"] == "answer")
            .map(|event| event["result"]["content"].as_str().unwrap().to_owned())
            .collect()
    }
}

pub fn example(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A reply that calls tools.
pub fn calls(calls: &[(&str, Value)]) -> Value {
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

pub fn says(content: &str) -> Value {
    json!({
        "content": content, "calls": [], "malformed": [], "finish": "stop",
        "usage": {"prompt_tokens": 1000, "cached_tokens": 0, "completion_tokens": 50, "dollars": null},
    })
}

pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or(-1)
}

/// Fails with what was printed unless the program ended with this code.
#[track_caller]
pub fn assert_exit_code(output: &Output, wanted: i32) {
    assert_eq!(
        code(output),
        wanted,
        "stdout:\n{}\nstderr:\n{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
