#![allow(clippy::unwrap_used)]
use super::*;

fn judgement(problem: usize, system: &str, budget: Budget, success: bool) -> Grade {
    Grade {
        problem: format!("p{problem}"),
        task: Task::Assertion,
        system: system.to_owned(),
        budget,
        form: Form::Assertion,
        class: if success {
            AnswerClass::Run
        } else {
            AnswerClass::Gibberish
        },
        exact: success && problem == 0,
        executed: success,
        success,
        reason: String::new(),
    }
}

/// Answers of a system that solves two of ten problems without context, six with 4k and one with 8k.
fn judgements() -> Vec<Grade> {
    let budgets = [
        (Budget::ProblemOnly, 2),
        (Budget::Tokens(4), 6),
        (Budget::Tokens(8), 1),
    ];
    let of = |(budget, solved): (Budget, usize)| {
        (0..10).map(move |at| judgement(at, "<b>m</b>", budget, at < solved))
    };
    let mut all: Vec<Grade> = budgets.into_iter().flat_map(of).collect();
    all.extend((0..10).map(|at| judgement(at, "other", Budget::ProblemOnly, at >= 5)));
    all
}

/// Costs of the other system's first two answers, which took two and four calls.
fn costs() -> BTreeMap<AnswerKey, AnswerCost> {
    let cost = |at: u32| {
        let judged = judgement(at as usize, "other", Budget::ProblemOnly, true);
        let cost = AnswerCost {
            calls: 2 * (at + 1),
            tokens: 1_000,
            dollars: Some(0.5),
        };
        (judged.key(), cost)
    };
    [0, 1].map(cost).into()
}

#[test]
fn mean_costs_appear_in_rows() {
    let row = |costs: &BTreeMap<AnswerKey, AnswerCost>| {
        let report = CloverReport::from_grades(&judgements(), costs, Vec::new());
        report
            .rows
            .into_iter()
            .find(|row| row.system == "other")
            .unwrap()
    };
    let mean = row(&costs()).cost.unwrap();
    assert_eq!((mean.answers, mean.calls, mean.tokens), (2, 3.0, 1_000.0));
    assert_eq!(mean.dollars, Some(0.5));
    let mut unpriced = costs();
    unpriced.values_mut().next().unwrap().dollars = None;
    assert_eq!(row(&unpriced).cost.unwrap().dollars, None);
    assert_eq!(row(&BTreeMap::new()).cost, None);
    let text =
        CloverReport::from_grades(&judgements(), &costs(), Vec::new()).markdown("report.json");
    assert!(text.contains("3.0"), "{text}");
}

#[test]
fn rates_and_context_effect_are_computed() {
    let report = CloverReport::from_grades(&judgements(), &BTreeMap::new(), Vec::new());
    let row = &report.rows[0];
    assert_eq!(
        (
            row.exact.numerator,
            row.success.numerator,
            row.success.denominator
        ),
        (1, 2, 10)
    );
    assert_eq!(row.classes[&AnswerClass::Gibberish], 8);
    let of = &report.utilisation[..];
    assert_eq!(of.len(), 1, "the other system has no context");
    assert!((of[0].maximum - 0.4).abs() < 1e-9 && (of[0].minimum + 0.1).abs() < 1e-9);
    let [low, high] = of[0].maximum_interval.unwrap();
    assert!(low < 0.4 && 0.4 < high && low > 0.0);
    let compared = &report.pairs[0].compared;
    assert_eq!(
        (compared.only_first, compared.only_second, compared.neither),
        (2, 5, 3)
    );
    let [low, high] = report.pairs[0].interval.unwrap();
    assert!(low < -0.3 && -0.3 < high, "{low} to {high}");
}

#[test]
fn answer_graded_twice_counts_once() {
    let earlier = judgements().into_iter().map(|j| Grade {
        success: false,
        ..j
    });
    let twice: Vec<Grade> = earlier.chain(judgements()).collect();
    let report = |grades: &[Grade]| CloverReport::from_grades(grades, &BTreeMap::new(), Vec::new());
    assert_eq!(report(&twice), report(&judgements()));
}

#[test]
fn utilisation_needs_every_context() {
    let mut all = judgements();
    all.retain(|j| !(j.problem == "p9" && j.budget == Budget::Tokens(8)));
    assert_eq!(
        CloverReport::from_grades(&all, &BTreeMap::new(), Vec::new()).utilisation[0].problems,
        9
    );
}

#[test]
fn report_renders_as_text_and_page() {
    let facts = vec![("Problems".to_owned(), "10".to_owned())];
    let report = CloverReport::from_grades(&judgements(), &costs(), facts);
    let text = report.markdown("report.json");
    assert!(
        text.contains("- Problems: 10") && text.contains("Δmax"),
        "{text}"
    );
    assert!(text.contains("20.0 % (2/10"), "{text}");
    let page = page(&report).unwrap();
    assert!(
        page.contains("&lt;b&gt;m&lt;") && !page.contains("<b>m<"),
        "{page}"
    );
}
