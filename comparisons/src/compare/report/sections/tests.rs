use super::*;

#[test]
fn lengths_stand_by_length_whichever_system_has_them() {
    let groups = |names: &[&str]| -> Vec<Group> {
        let group = |name: &&str| Group {
            name: (*name).to_owned(),
            fail_to_pass: Rate::of(1, 1),
        };
        names.iter().map(group).collect()
    };
    let all = [groups(&["≤ 200", "> 500"]), groups(&["≤ 100", "≤ 500"])];
    let names = group_names(all.iter().map(Vec::as_slice));
    assert_eq!(names, ["≤ 100", "≤ 200", "≤ 500", "> 500"]);
    let all = [groups(&["b/b"]), groups(&["a/a", "b/b"])];
    assert_eq!(group_names(all.iter().map(Vec::as_slice)), ["a/a", "b/b"]);
}
