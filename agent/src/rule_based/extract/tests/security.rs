//! Malicious issues. Each of these took hours, or all memory, when the work was not bounded by the length of
//! the text.

use super::*;
use crate::rule_based::extract::claims;

const LARGE: usize = 1 << 20;

fn heading_bytes(issue: &Issue) -> usize {
    issue.parts.iter().map(|part| part.heading.len()).sum()
}

#[test]
fn own_marks_are_not_code() {
    let text = format!("`{}` gives `2` {}", "x".repeat(2_000), "⟦0⟧".repeat(2_000));
    let length: usize = claims(&text).iter().map(|claim| claim.sentence.len()).sum();
    assert!(length <= 2 * text.len(), "{length} bytes of {}", text.len());
}

#[test]
fn long_heading_is_truncated() {
    let text = format!(
        "T\n\n# {}\n\n{}",
        "h".repeat(LARGE / 2),
        ">>> a\n\nx\n\n".repeat(20_000)
    );
    let issue = extract(&text);
    assert!(issue.parts.len() > 10_000);
    assert!(
        heading_bytes(&issue) < 10 * LARGE,
        "{} bytes",
        heading_bytes(&issue)
    );
}

#[test]
fn unbounded_nesting_is_read_once() {
    let texts = [
        format!("T\n\nf(x {}", "()".repeat(LARGE / 8)),
        format!("T\n\n{}", "f(x) ".repeat(LARGE / 80)),
        format!("T\n\n>>> f(\n{}", "... f(\n".repeat(LARGE / 28)),
        format!("T\n\n```python\nf\n{}```\n", " x\n".repeat(LARGE / 24)),
        format!("T\n\n{}", "```\nx\n".repeat(LARGE / 80)),
        format!("T\n\n{}", "<!--".repeat(LARGE / 16)),
        format!("T\n\n{}", "`` ".repeat(LARGE / 80)),
    ];
    for text in texts {
        let issue = extract(&text);
        claims(&issue.prose());
        crate::rule_based::steps::steps(&issue);
    }
}
