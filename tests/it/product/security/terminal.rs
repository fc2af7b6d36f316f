//! Text that tries to control the terminal, on stdout and stderr, with and without a terminal.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use serde_json::json;

use crate::support::program::{TestDir, calls, example, text_reply};

/// Text that changes colours, conceals text, sets the title, creates a link, erases a line, moves up and reverses text.
const CONTROL_SEQUENCES: &str = "\u{1b}[8mX\u{1b}]0;title\u{7}\u{1b}]8;;http://evil.example.org\u{1b}\\Y\r\u{1b}[2K\u{9b}1A\u{8}\u{7f}\u{202e}\u{200b}Z";

/// Checks that output contains no control characters. Without a terminal, the program adds no styles either.
#[track_caller]
fn is_plain(bytes: &[u8], what: &str) {
    let text = String::from_utf8_lossy(bytes);
    let hidden = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}')
    };
    let hidden_char = text.chars().find(|c| hidden(*c));
    assert_eq!(hidden_char, None, "{what}: {text:?}");
}

#[track_caller]
fn both_plain(output: &Output, what: &str) {
    is_plain(&output.stdout, what);
    is_plain(&output.stderr, what);
}

fn shows(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[test]
fn settings_are_escaped() {
    let escape = "\\u001b[31m\\u0007\\u009b2K\\u202e";
    for text in [
        format!("[run]\n\"{escape}\" = 1\n"),
        format!("\"{escape}\" = 1\n"),
        format!("[run]\nsandbox = \"{escape}\"\n"),
        format!("[limits]\nmemory = \"{escape}\"\n"),
        format!("[prices.\"{escape}\"]\nprompt = 1\ncompletion = 1\n"),
        format!("[environment]\npython = \"{escape}\"\n"),
        format!("[environment.env]\n\"{escape}\" = 1\n"),
        "[run]\nx = \u{1b}[31m\n".to_owned(),
    ] {
        let place = TestDir::new();
        let folder = place.path("stranger");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("testwright.toml"), &text).unwrap();
        std::fs::write(folder.join("a.py"), "a = 1\n").unwrap();
        for arguments in [
            ["doctor", "--settings"].as_slice(),
            &[
                "run",
                &example("issue.md"),
                "--out",
                "out",
                "--max-minutes",
                "0.01",
            ],
            &["doctor", "--json"],
        ] {
            let output = place
                .testwright()
                .args(arguments)
                .current_dir(&folder)
                .output()
                .unwrap();
            both_plain(&output, &format!("{text:?} {arguments:?}"));
        }
    }
}

#[test]
fn names_are_escaped() {
    let place = TestDir::new();
    let folder = place.path(&format!("code{}", CONTROL_SEQUENCES.replace('/', "")));
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(
        folder.join(format!("{}.py", CONTROL_SEQUENCES.replace('/', ""))),
        "a = 1\n",
    )
    .unwrap();
    let git = |arguments: &[&str]| {
        let done = Command::new("git")
            .args(["-c", "user.name=n", "-c", "user.email=e@example.org"])
            .args(arguments)
            .current_dir(&folder)
            .output()
            .unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", CONTROL_SEQUENCES]);
    git(&[
        "config",
        "remote.origin.url",
        &format!("https://github.com/own{CONTROL_SEQUENCES}er/name"),
    ]);
    for more in [
        ["--commit", "HEAD"],
        ["--commit", CONTROL_SEQUENCES],
        ["--python", CONTROL_SEQUENCES],
    ] {
        let output = place
            .testwright()
            .args(["run", &example("issue.md"), "--repo"])
            .arg(&folder)
            .arg("--out")
            .arg(place.path("out"))
            .args(["--max-minutes", "0.01"])
            .args(more)
            .output()
            .unwrap();
        both_plain(&output, &format!("{more:?}"));
    }
    let issue = example("issue.md");
    for arguments in [
        vec!["run", "--repo", CONTROL_SEQUENCES, &issue],
        vec!["run", CONTROL_SEQUENCES],
        vec!["replay", CONTROL_SEQUENCES],
        vec!["tools", "--approach", CONTROL_SEQUENCES],
        vec!["doctor", CONTROL_SEQUENCES],
        vec![CONTROL_SEQUENCES],
        vec!["--config", CONTROL_SEQUENCES, "doctor"],
        vec![
            "eval",
            "--dataset",
            CONTROL_SEQUENCES,
            "--predictions",
            CONTROL_SEQUENCES,
            "--out",
            "x",
        ],
    ] {
        let output = place.testwright().args(&arguments).output().unwrap();
        both_plain(&output, &format!("{arguments:?}"));
        let output_text = shows(&output);
        assert!(output_text.contains("\\u{"), "{arguments:?}: {output_text}");
    }
}

#[test]
fn replies_and_titles_are_escaped() {
    let place = TestDir::new();
    let issue = place.path("issue.md");
    let text = std::fs::read_to_string(example("issue.md")).unwrap();
    std::fs::write(
        &issue,
        format!("# {CONTROL_SEQUENCES}\n\n{text}\n\n{CONTROL_SEQUENCES}\n"),
    )
    .unwrap();
    let test = format!(
        "def test_cut():\n    \"\"\"{CONTROL_SEQUENCES}\"\"\"\n    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\", {CONTROL_SEQUENCES:?}\n"
    )
    .replace('\r', "");
    let model = place.recording(&[
        calls(&[
            ("search", json!({"pattern": CONTROL_SEQUENCES})),
            (
                CONTROL_SEQUENCES,
                json!({CONTROL_SEQUENCES: CONTROL_SEQUENCES}),
            ),
        ]),
        calls(&[(
            "insert_function",
            json!({"path": "tests/test_slug.py", "code": test}),
        )]),
        text_reply(CONTROL_SEQUENCES),
        calls(&[("submit", json!({"reason": CONTROL_SEQUENCES}))]),
        calls(&[("submit", json!({"reason": CONTROL_SEQUENCES}))]),
        text_reply(&format!("YES\n{CONTROL_SEQUENCES}")),
    ]);
    let output = place
        .testwright()
        .arg("run")
        .arg(&issue)
        .args([
            "--repo",
            &example("slugs"),
            "--approach",
            "testwright",
            "--model",
            &model,
            "--out",
        ])
        .arg(place.path("out"))
        .output()
        .unwrap();
    both_plain(&output, "run");
    let output_text = shows(&output);
    assert!(output_text.contains("\\u{1b}[8m"), "{output_text}");
    let output = place
        .testwright()
        .arg("replay")
        .arg(place.path("out"))
        .output()
        .unwrap();
    both_plain(&output, "replay");
}

/// The output of a program from the repository is untrusted too.
#[test]
fn program_output_is_escaped() {
    let place = TestDir::new();
    let programs = place.path("programs");
    std::fs::create_dir(&programs).unwrap();
    let script = "#!/bin/sh\nprintf 'git version \\033[31m1\\007\\302\\233\\r'\n";
    std::fs::write(programs.join("git"), script).unwrap();
    std::fs::set_permissions(programs.join("git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for more in [[].as_slice(), &["--json"]] {
        let output = place
            .testwright()
            .arg("doctor")
            .args(more)
            .env("PATH", &path)
            .output()
            .unwrap();
        both_plain(&output, "doctor");
    }
}

/// A terminal shows only testwright's own styles and live line.
#[test]
fn terminal_shows_only_own_styles() {
    let place = TestDir::new();
    let issue = place.path("issue.md");
    let text = std::fs::read_to_string(example("issue.md")).unwrap();
    std::fs::write(&issue, format!("# {CONTROL_SEQUENCES}\n\n{text}\n")).unwrap();
    let model = place.recording(&[
        calls(&[("search", json!({"pattern": CONTROL_SEQUENCES}))]),
        text_reply(CONTROL_SEQUENCES),
        text_reply(CONTROL_SEQUENCES),
        text_reply(CONTROL_SEQUENCES),
    ]);
    let program = place.testwright();
    let line = format!(
        "{} run {} --repo {} --approach testwright --model {model} --out {}",
        program.get_program().to_str().unwrap(),
        issue.display(),
        example("slugs"),
        place.path("out").display()
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &line, "/dev/null"]);
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    script
        .env("TERM", "xterm-256color")
        .stdin(std::process::Stdio::null());
    let Ok(output) = script.output() else {
        panic!("this test needs `script` (bsdutils) to provide a terminal");
    };
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(stdout.contains("\\u{1b}[8m"), "{stdout:?}");
    for steering in [
        "\u{1b}[8m",
        "\u{1b}]",
        "\u{9b}",
        "\u{7}",
        "\u{202e}",
        "\u{200b}",
        "\u{1b}\\",
    ] {
        assert!(!stdout.contains(steering), "{steering:?} in {stdout:?}");
    }
}

/// Arguments cannot contain commands for the runner of GitHub Actions.
#[test]
fn workflow_commands_are_escaped() {
    let place = TestDir::new();
    let argument = "a\n::add-mask::b\n ::stop-commands::c";
    for command in ["show", "list", "help"] {
        let output = place
            .testwright()
            .args([command, argument])
            .env("GITHUB_ACTIONS", "true")
            .output()
            .unwrap();
        let text = shows(&output);
        let is_command = |line: &&str| line.trim_start().starts_with("::");
        let commands: Vec<&str> = text.lines().filter(is_command).collect();
        assert_eq!(commands.len(), 1, "{text}");
        assert!(commands[0].starts_with("::error::"), "{text}");
    }
}

#[test]
fn colour_follows_option_and_variable() {
    let place = TestDir::new();
    for (option, forced, expected) in [
        ("auto", "", false),
        ("auto", "1", true),
        ("always", "", true),
        ("never", "1", false),
    ] {
        let output = place
            .testwright()
            .args(["show", "missing", "--color", option])
            .env("FORCE_COLOR", forced)
            .env_remove("NO_COLOR")
            .env_remove("CLICOLOR_FORCE")
            .output()
            .unwrap();
        let has_style = shows(&output).contains("\u{1b}[");
        assert_eq!(has_style, expected, "{option} {forced}");
    }
}
