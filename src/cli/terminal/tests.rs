use super::*;

#[test]
fn totals_omit_unknown_values() {
    let mut spent = RunUsage::default();
    assert_eq!(totals(&spent, Some(0.5)), "");
    spent.prompt_tokens = 12_000;
    spent.cached_tokens = 6_000;
    spent.completion_tokens = 345;
    spent.dollars = Some(0.021);
    assert_eq!(
        totals(&spent, Some(0.5)),
        "12.3k tokens (50 % cached) · $0.02 of $0.50"
    );
    assert_eq!(totals(&spent, None), "12.3k tokens (50 % cached) · $0.02");
}

#[test]
fn live_line_describes_calls_in_words() {
    let spent = RunUsage::default();
    let describe = |action, detail| {
        let view = StepView {
            step: 7,
            action,
            detail,
            spent: &spent,
            seconds: 0.0,
        };
        describe_action(&view, "asking gpt-5-mini")
    };
    assert_eq!(describe("model", ""), "asking gpt-5-mini");
    assert_eq!(
        describe("search", r#"{"pattern": "slug"}"#),
        "searching for \"slug\""
    );
    assert_eq!(describe("submit", "not JSON"), "checking the submission");
}

#[test]
fn calls_before_first_step_have_no_number() {
    let progress = RunProgress::new(true);
    assert_eq!([0, 1].map(|step| progress.step(step)), ["", "step 1"]);
}

#[test]
fn sandbox_is_described_in_few_words() {
    assert_eq!(
        describe_sandbox(
            "local",
            "namespaces (user), seccomp, no network; programs kept"
        ),
        "local (isolated, no network)"
    );
    assert_eq!(describe_sandbox("local", "none"), "local (not isolated)");
}
