#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn command_lines_split_like_a_shell() {
    let command = CommandLine::parse("command: python 'my agent.py' --x=\"a b\"").unwrap();
    assert_eq!(command.program(), "python");
    assert_eq!(command.arguments(), ["my agent.py", "--x=a b"]);
    let named = CommandLine::parse("command(mine):python a.py").unwrap();
    assert_eq!(named.approach(), "command(mine):python a.py");
    assert_eq!(report_name(&named.approach()), "mine");
    assert_eq!(report_name("command:python a.py"), "command:python a.py");
    assert_eq!(report_name("otter:planner=off"), "otter:planner=off");
}

#[test]
fn invalid_command_lines_are_rejected() {
    for text in [
        "command",
        "command:",
        "command:''",
        "command:python 'a",
        "command(mine",
        "command(a/b):python a.py",
        "command(otter):python a.py",
    ] {
        assert!(CommandLine::is_command(text), "{text}");
        assert!(CommandLine::parse(text).is_err(), "{text}");
    }
    assert!(!CommandLine::is_command("commander"));
}

#[test]
fn missing_programs_are_rejected() {
    let check = |text| CommandLine::parse(text).unwrap().check_program();
    for text in ["command:sh -c x", "command:/bin/sh"] {
        assert_eq!(check(text), Ok(()), "{text}");
    }
    for text in ["command:nosuchprog x", "command:/bin/nosuchprog"] {
        assert!(check(text).is_err(), "{text}");
    }
}

#[test]
fn quoted_commas_do_not_separate_approaches() {
    assert_eq!(
        split_list("command:python a.py, otter:planner=off"),
        ["command:python a.py", "otter:planner=off"]
    );
    assert_eq!(
        split_list("command:python a.py --only 'x,y' \"a\\\",b\" c\\,d,otter"),
        [
            "command:python a.py --only 'x,y' \"a\\\",b\" c\\,d",
            "otter"
        ]
    );
}
