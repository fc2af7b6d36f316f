//! Checks that completions and manual pages, which are generated from the commands, cover all of them.

use std::process::Command;

use crate::support::program::{TestDir, code};

/// Returns the commands that `--help` lists.
fn commands(place: &TestDir) -> Vec<String> {
    let help = place.testwright().arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, list) = help.split_once("Write tests:\n").unwrap();
    let (list, _) = list.split_once("Options:\n").unwrap();
    let entries = list.lines().filter_map(|line| line.strip_prefix("  "));
    // Names are not indented further than that.
    entries
        .filter(|entry| !entry.starts_with(' '))
        .filter_map(|entry| entry.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn completions_offer_every_command() {
    let place = TestDir::new();
    let output = place
        .testwright()
        .args(["completions", "bash"])
        .output()
        .unwrap();
    assert_eq!(code(&output), 0);
    let script = String::from_utf8(output.stdout).unwrap();
    let file = place.path("completions.bash");
    std::fs::write(&file, &script).unwrap();
    let line = format!(
        "source {} && COMP_WORDS=(testwright '') COMP_CWORD=1 && _testwright testwright '' testwright && printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let shell = Command::new("bash").args(["-c", &line]).output().unwrap();
    let offered = String::from_utf8(shell.stdout).unwrap();
    let commands = commands(&place);
    assert!(commands.len() >= 8, "{commands:?}");
    for command in commands {
        assert!(
            offered.lines().any(|word| word == command),
            "{command}: {offered}"
        );
    }
}

#[test]
fn commands_have_manual_pages() {
    let place = TestDir::new();
    let folder = place.path("man1");
    let output = place.testwright().arg("man").arg(&folder).output().unwrap();
    assert_eq!(code(&output), 0);
    for command in commands(&place) {
        let page = std::fs::read_to_string(folder.join(format!("testwright-{command}.1"))).unwrap();
        assert!(page.contains(r"\fB\-\-config\fR \fI"), "{command}: {page}");
    }
    let printed = place.testwright().arg("man").output().unwrap();
    assert_eq!(code(&printed), 0);
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(
        printed.starts_with(".ie") && printed.contains(".SH SYNOPSIS"),
        "{printed}"
    );
    let file = place.path("a-file");
    std::fs::write(&file, "").unwrap();
    let refused = place.testwright().arg("man").arg(&file).output().unwrap();
    assert_eq!(code(&refused), 3);
}
