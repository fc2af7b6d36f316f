use super::*;

#[test]
fn dollars_outside_runs_are_reported() {
    assert_eq!(unassigned_dollars(Some(0.75), Some(0.5)), Some(0.25));
    assert_eq!(unassigned_dollars(Some(0.50001), Some(0.5)), None);
    assert_eq!(unassigned_dollars(None, Some(0.5)), None);
}

#[test]
fn systems_without_ended_runs_cost_nothing() {
    let cost = |runs, dollars| CostSummary {
        runs,
        dollars,
        ..CostSummary::default()
    };
    let all = [cost(2, Some(0.25)), cost(0, None)];
    assert_eq!(dollars_of_runs(all.iter()), Some(0.5));
    assert_eq!(dollars_of_runs([cost(2, None)].iter()), None);
}

#[test]
fn length_groups_are_sorted_by_length() {
    let groups = |names: &[&str]| -> Vec<Group> {
        let group = |name: &&str| Group {
            name: (*name).to_owned(),
            fail_to_pass: Rate::new(1, 1),
        };
        names.iter().map(group).collect()
    };
    let all = [groups(&["≤ 200", "> 500"]), groups(&["≤ 100", "≤ 500"])];
    let names = group_names(all.iter().map(Vec::as_slice));
    assert_eq!(names, ["≤ 100", "≤ 200", "≤ 500", "> 500"]);
    let all = [groups(&["b/b"]), groups(&["a/a", "b/b"])];
    assert_eq!(group_names(all.iter().map(Vec::as_slice)), ["a/a", "b/b"]);
}
