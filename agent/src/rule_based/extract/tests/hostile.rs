//! Issues made to break what reads them. Each of these took hours, or all memory, where work is not bounded by the
//! length of the text.

use super::*;
use crate::rule_based::extract::claims;

const LARGE: usize = 1 << 20;

fn heading_bytes(issue: &Issue) -> usize {
    issue.parts.iter().map(|part| part.heading.len()).sum()
}

#[test]
fn marks_that_the_issue_brings_itself_do_not_stand_for_code() {
    let text = format!("`{}` gives `2` {}", "x".repeat(2_000), "⟦0⟧".repeat(2_000));
    let length: usize = claims(&text).iter().map(|claim| claim.sentence.len()).sum();
    assert!(length <= 2 * text.len(), "{length} bytes of {}", text.len());
}

#[test]
fn a_heading_without_end_is_not_copied_into_every_part() {
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
fn brackets_prompts_and_indents_without_end_are_read_once() {
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
