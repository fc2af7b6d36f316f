use super::CostSummary;

#[test]
fn cost_without_ended_runs_is_unknown() {
    assert_eq!(CostSummary::default().mean(|cost| cost.tokens), None);
    let free = CostSummary {
        runs: 2,
        ..CostSummary::default()
    };
    assert_eq!(free.mean(|cost| cost.tokens), Some(0.0));
}
