use super::*;
use crate::clover::problem::tests::{passing_test, problem};
use crate::clover::problem::{Block, ContextFile, Question};

/// Tokenizer that counts each character as a token.
pub(crate) struct Characters;

impl Tokenizer for Characters {
    fn name(&self) -> &str {
        "characters"
    }

    fn count(&self, text: &str) -> usize {
        text.chars().count()
    }

    fn first<'t>(&self, text: &'t str, most: usize) -> &'t str {
        let cut = &text[..text.floor_char_boundary(most)];
        &cut[..cut.rfind('\n').map_or(0, |end| end + 1)]
    }
}

impl Prompts for Characters {
    fn instructions(&self, _: &Problem) -> usize {
        100
    }
}

#[test]
fn context_fills_but_never_exceeds_budget() {
    let text = passing_test();
    let blocks = vec![Block {
        path: "a.py".to_owned(),
        first: 1,
        last: 5,
        lines: vec![1, 2, 3, 4, 5],
        source: String::new(),
    }];
    let mut of = problem("test_a.py", "test_x", text, Question::Blocks { blocks });
    // Files for which there is no room take none.
    let others = (0..1_000).map(|number| format!("other_{number}.py"));
    let paths = ["a.py", "b.py", "gone.py"].map(str::to_owned);
    let context_file = |path| ContextFile {
        path,
        class: Some(ContextClass::Other),
        sha256: String::new(),
    };
    of.context = paths.into_iter().chain(others).map(context_file).collect();
    let (a, b) = ("x = 1\n".repeat(100), "y = 2\n".repeat(100_000));
    let text = |path: &str| match path {
        "a.py" => Some(a.as_str()),
        "b.py" => Some(b.as_str()),
        "gone.py" => None,
        _ => Some("z = 3\n"),
    };
    assert_eq!(context(&of, Budget::ProblemOnly, &Characters, &text), None);
    for budget in [Budget::Tokens(64), Budget::Tokens(128)] {
        let context_text = context(&of, budget, &Characters, &text).unwrap_or_default();
        let room = budget.tokens().unwrap_or_default() - 4_000 - 100;
        assert!(
            (room - 40..=room).contains(&context_text.len()),
            "{}",
            context_text.len()
        );
        assert!(context_text.starts_with("### a.py\nx = 1\n"));
        let cut = context_text.lines().filter(|line| *line == "y = 2").count();
        assert!(context_text.contains(&format!("### b.py, the first {cut} lines\ny = 2\n")));
        assert!(context_text.ends_with("y = 2\n\n"));
    }
    assert_eq!(hashes(&of, &Characters, &text).len(), 2);
}
