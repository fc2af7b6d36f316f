use super::*;
use crate::testing::Fixture;
use serde_json::json;

#[test]
fn long_output_shows_both_ends() {
    let line = |n: usize| format!("line {n} {}", "x".repeat(90));
    let many: Vec<String> = (0..500).map(line).collect();
    let text = fitted(&many.join("\n"));
    assert!(
        text.chars().count() < MAX_SHOWN_CHARS + 200,
        "{}",
        text.len()
    );
    assert!(text.starts_with(&line(0)) && text.ends_with(&line(499)));
    assert!(text.contains("\n[... 440 lines left out;"), "{text}");
    assert_eq!(fitted("a\n\nb"), "a\n\nb");
    let wide = fitted(&format!("a\n{}", "y".repeat(9000)));
    assert!(wide.ends_with("… (8000 more characters)"), "{wide}");
}

#[test]
fn repeated_lines_are_counted() {
    let mut f = Fixture::new(&[("a.txt", b"x\n")]);
    let text = f.text(
        "shell",
        json!({"command": "for i in 1 2 3 4 5; do echo same; done; pwd; echo $PWD/a.txt"}),
    );
    assert_eq!(
        text.lines().take(2).collect::<Vec<_>>(),
        ["same", "[... the line above 4 more times ...]"]
    );
    assert!(text.ends_with("\na.txt"), "{text}");
    assert_eq!(
        f.text(
            "shell",
            json!({"command": "echo x; sleep 100", "timeout": 1})
        ),
        "x\n(ended by the deadline after 1 s; this is what it had printed by then; give a longer `timeout` if it needs more)"
    );
    let longest = json!({"command": "echo y", "timeout": u64::MAX});
    assert_eq!(f.text("shell", longest), "y");
    let long = f.text("shell", json!({"command": "seq 1 100000"}));
    assert!(
        long.contains("[... more than ") && long.ends_with("\n100000"),
        "{long}"
    );
    assert!(long.len() < 7000);
}
