use super::*;

#[test]
fn prediction_files_are_plain_and_distinct() {
    let names = [
        "libro@auto.sample-2",
        "otter:planner=off@a/b",
        "otter-planner=off@a/b",
        "..x",
    ];
    let set = |name: &str| Predictions {
        model: name.to_owned(),
        ..Predictions::default()
    };
    assert_eq!(
        prediction_files(&names.map(set)),
        [
            "libro@auto.sample-2.jsonl",
            "otter-planner=off@a-b.jsonl",
            "otter-planner=off@a-b-2.jsonl",
            "x.jsonl"
        ]
    );
}
