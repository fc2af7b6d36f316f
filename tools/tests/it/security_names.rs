//! Names, sources and output with terminal control characters or bidirectional marks reach a model as escapes.

use serde_json::json;

use crate::project::Project;
use crate::toolbox::Client;

const NAME: &str = "pkg/\u{1b}[2Jred\u{202e}.py";
const SHOWN: &str = "pkg/\\u{1b}[2Jred\\u{202e}.py";
const SOURCE: &str = "red = '\u{1b}[31m'  # \u{2066}if admin\r\n\tx = 'ä\u{200d}\u{feff}'\u{c}\n";

/// Checks that an answer contains no such character.
fn check(text: &str) {
    let steers =
        |c: char| (c.is_control() && !"\n\t\u{c}".contains(c)) || "\u{202e}\u{2066}".contains(c);
    let unescaped = text.replace("\r\n", "\n").chars().find(|c| steers(*c));
    assert_eq!(unescaped, None, "{text:?}");
}

#[test]
fn hostile_names_and_lines_are_escaped() {
    let project = Project::new(&[(NAME, SOURCE)]);
    let mut client = Client::start(&project);
    for (tool, arguments, expected) in [
        ("find_file", json!({"name": "red"}), SHOWN),
        ("search", json!({"pattern": "admin"}), SHOWN),
        (
            "open_file",
            json!({"path": NAME}),
            "red = '\\u{1b}[31m'  # \\u{2066}if admin\n",
        ),
        ("open_file", json!({"path": NAME}), "ä\u{200d}\u{feff}"),
        (
            "shell",
            json!({"command": "printf '\\033[1mbold\\r50%%\\r\\n\\tx'"}),
            "\\u{1b}[1mbold\\r50%\n\tx",
        ),
    ] {
        let (text, _) = client.call(tool, &arguments);
        assert!(text.contains(expected), "{tool}: {text:?}");
        check(&text);
    }
    for (tool, arguments) in [
        ("open_file", json!({"path": "red\u{1b}]0;x\u{7}.py"})),
        ("no\u{9b}31m_tool", json!({})),
    ] {
        let text = client.refused(tool, &arguments);
        assert!(text.contains("\\u{"), "{text:?}");
        check(&text);
    }
    // Data for programs stays unchanged.
    client.call("shell", &json!({"command": "echo >> pkg/*.py"}));
    let (_, data) = client.call("changes", &json!({}));
    assert_eq!(data["files"][0]["path"], NAME);
}
