//! Evidence as table rows, for people.

use testwright_tools::coverage::ranges;
use testwright_tools::outcomes::report::Outcome as TestOutcome;
use testwright_tools::tools::count;

use super::{Evidence, FixTrial, Review, ReviewVerdict};

/// Returns names and texts, in the order in which they are shown. A text may have several lines.
pub fn evidence_rows(evidence: &Evidence) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    let mut row = |name: &'static str, value: &str| rows.push((name, value.to_owned()));
    for test in &evidence.tests {
        row("test", &test.id);
        row("fails", &format!("{}{}", test.line(), test.limits()));
        if let Some(test_double) = &test.test_double {
            let stand_in = format!("{test_double}, the test's own stand-in");
            row("through", &stand_in);
        }
    }
    let is_for_lines = !evidence.covered.is_empty();
    for id in &evidence.passing {
        match is_for_lines {
            true => row("passes", id),
            false => row("passes", &format!("{id} (on the old code already)")),
        }
    }
    for (path, lines) in &evidence.covered {
        let lines = ranges(lines.iter().copied()).join(", ");
        row("runs", &format!("{path}, lines {lines}"));
    }
    if let Some(sentence) = &evidence.issue_sentence {
        row("issue", &format!("“{sentence}”"));
    }
    if let Some(reason) = &evidence.reason {
        row("reason", reason);
    }
    if !is_for_lines {
        row("reruns", &evidence.reruns.join("\n"));
    }
    for fix in &evidence.fixes {
        row("fix tried", &fix_tried(fix));
    }
    if let Some(review) = &evidence.review {
        row("reviewer", &opinion(review));
    }
    // Show the version only if it differs from the one that the issue names.
    let python = evidence.python.as_ref();
    if let Some(python) = python.filter(|python| python.contains('(')) {
        row("python", python);
    }
    for input in &evidence.extra_inputs {
        row("given", input);
    }
    for dropped in &evidence.dropped {
        row("left out", dropped);
    }
    if !is_for_lines {
        row("confidence", &confidence(evidence));
    }
    row("spent", &spent(evidence));
    rows
}

fn confidence(evidence: &Evidence) -> String {
    match (evidence.confidence(), evidence.is_checked()) {
        (Some(confidence), true) => format!("{confidence:.2}"),
        (Some(confidence), false) => {
            format!("{confidence:.2}, unchecked: no fix was tried, and no reviewer read it")
        }
        (None, _) => "unchecked".to_owned(),
    }
}

/// Describes the effect of a candidate fix in one line.
pub fn fix_tried(fix: &FixTrial) -> String {
    if let Some((clause, details)) = fix.crash_text() {
        return format!("{clause}: {details}");
    }
    let is_passed = |(_, outcome): &&(String, TestOutcome)| *outcome == TestOutcome::Passed;
    let passed = fix.outcomes.iter().filter(is_passed).count();
    let tests = match fix.on_submitted_tests {
        true => "submitted tests",
        false => "tests of an earlier form",
    };
    let breaks = match fix.breaks.len() {
        0 => String::new(),
        broken => format!("; it breaks {}", count(broken, "existing test")),
    };
    let all = fix.outcomes.len();
    format!("{passed} of {all} {tests} pass with it{breaks}")
}

/// Returns the reviewer's opinion, with the reasons if there are doubts.
pub fn opinion(review: &Review) -> String {
    let mut text = match review.verdict {
        ReviewVerdict::Yes => "fails for the issue's reason".to_owned(),
        ReviewVerdict::No => format!("doubts it: {}", review.reason),
        ReviewVerdict::Unsure => format!("unsure: {}", review.reason),
        ReviewVerdict::Unreadable => "gave an answer that cannot be read".to_owned(),
    };
    for beyond in &review.extra_requirements {
        text.push_str(&format!("\nbeyond the issue: {beyond}"));
    }
    text
}

fn spent(evidence: &Evidence) -> String {
    // Reviews are no steps, but their tokens count. Old records lack their number.
    let reviews = match evidence.reviews.max(usize::from(evidence.review.is_some())) {
        0 => String::new(),
        1 => " and a review".to_owned(),
        many => format!(" and {many} reviews"),
    };
    let mut parts = vec![count(evidence.steps, "step") + &reviews];
    let (prompt, cached) = (evidence.prompt_tokens, evidence.cached_tokens);
    let tokens = prompt.saturating_add(evidence.completion_tokens);
    if tokens > 0 {
        parts.push(format!("{tokens} tokens ({cached} cached)"));
    }
    if let Some(dollars) = evidence.dollars {
        parts.push(format!("${dollars:.3}"));
    }
    parts.push(format!("{:.1} s", evidence.seconds));
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_reviews_are_counted() {
        let spent_with = |reviews, review| {
            spent(&Evidence {
                steps: 2,
                reviews,
                review,
                ..Evidence::default()
            })
        };
        let review = Review {
            verdict: ReviewVerdict::Yes,
            reason: String::new(),
            extra_requirements: Vec::new(),
        };
        assert_eq!(spent_with(0, None), "2 steps, 0.0 s");
        assert_eq!(spent_with(0, Some(review)), "2 steps and a review, 0.0 s");
        assert_eq!(spent_with(1, None), "2 steps and a review, 0.0 s");
        assert_eq!(spent_with(2, None), "2 steps and 2 reviews, 0.0 s");
    }
}
