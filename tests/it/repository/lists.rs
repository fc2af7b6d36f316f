//! Checks that help, completions and the guide name all approaches and sandboxes.

use std::process::Command;

use testwright_agent::{approaches, backends};

use crate::repository::architecture::root;
use crate::support::program::{TestDir, assert_exit_code};

fn printed(arguments: &[&str]) -> String {
    let output = TestDir::new()
        .testwright()
        .args(arguments)
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn help_for_missing_subcommand_is_wrapped() {
    let output = TestDir::new().testwright().arg("cache").output().unwrap();
    assert_exit_code(&output, 2);
    let help = String::from_utf8(output.stderr).unwrap();
    assert!(help.contains("Usage: testwright cache "), "{help}");
    assert!(
        help.lines().all(|line| line.chars().count() <= 100),
        "{help}"
    );
}

#[test]
fn help_describes_approaches_and_sandboxes() {
    let help = printed(&["run", "--help"]);
    assert!(
        help.lines().all(|line| line.chars().count() <= 100),
        "{help}"
    );
    // Descriptions are wrapped.
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = |name: &str, what: &str| {
        let described = words(&format!("{name} {what}"));
        assert!(words(&help).contains(&described), "{name}: {help}");
    };
    for approach in approaches::ALL {
        line(approach.name, approach.description);
    }
    for kind in backends::ALL {
        line(kind.name(), kind.description());
    }
}

#[test]
fn completions_offer_approaches_and_sandboxes() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("completions.bash");
    std::fs::write(&script, printed(&["completions", "bash"])).unwrap();
    let offered = |flag: &str| {
        let line = format!(
            "source {} && COMP_WORDS=(testwright run {flag} '') COMP_CWORD=3 && \
             _testwright testwright '' {flag} && printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            script.display()
        );
        let shell = Command::new("bash").args(["-c", &line]).output().unwrap();
        let offered = String::from_utf8(shell.stdout).unwrap();
        offered.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let all: Vec<&str> = approaches::ALL
        .iter()
        .map(|approach| approach.name)
        .collect();
    assert_eq!(offered("--approach"), all);
    let all: Vec<&str> = backends::ALL.iter().map(|kind| kind.name()).collect();
    assert_eq!(offered("--sandbox"), all);
}

/// Returns the names that the page describes: first cells of tables, and starts of list items, that begin with inline code.
fn described(page: &str) -> Vec<&str> {
    let names = page.lines().flat_map(|line| {
        let row = line.strip_prefix("| `");
        let items = line.strip_prefix("- `").into_iter();
        let all = items.flat_map(|item| item.split(" and `"));
        row.into_iter().chain(all)
    });
    names
        .filter_map(|rest| Some(rest.split_once('`')?.0))
        .collect()
}

#[test]
fn guide_describes_every_approach() {
    let page = std::fs::read_to_string(root().join("docs/src/approaches.md")).unwrap();
    for approach in approaches::ALL {
        let name = approach.name;
        assert!(described(&page).contains(&name), "{name}");
        let without = page.replace(&format!("`{name}`"), "");
        assert!(!described(&without).contains(&name), "{name}");
    }
}
