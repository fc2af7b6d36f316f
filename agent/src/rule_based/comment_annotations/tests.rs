use super::*;

fn only(source: &str) -> Vec<(String, Role)> {
    let outputs = pieces(source).remove(0).outputs;
    outputs.into_iter().map(|s| (s.text, s.role)).collect()
}

#[test]
fn comments_state_results_of_calls() {
    assert_eq!(only("low(5)  # gives 3"), [("3".into(), Role::Shown)]);
    assert_eq!(
        only("low(5)\n# -> 3, which is wrong"),
        [("3".into(), Role::Wrong)]
    );
    assert_eq!(
        only("print(low(5))  # 3, should be 4"),
        [("4".into(), Role::Right), ("3".into(), Role::Wrong)]
    );
    assert_eq!(
        only("low(5)  # returns 3, as expected"),
        [("3".into(), Role::Fine)]
    );
}

#[test]
fn code_is_split_after_comments() {
    let all = pieces("import shop\nshop.low(5)  # 3\nbox = shop.low(6)\nbox  # 4\nend()");
    let sources: Vec<&str> = all.iter().map(|p| p.source.as_str()).collect();
    assert_eq!(
        sources,
        [
            "import shop\nshop.low(5)",
            "box = shop.low(6)\nbox",
            "end()"
        ]
    );
}

#[test]
fn other_comments_do_not_split() {
    for source in [
        "x = 3  # gives 3\nlow(x)",
        "low(5)  # the lowest of all\nlow(6)",
        "for n in (1, 2):\n    low(n)  # 3\n",
        "low(\n    5  # 3\n)\nlow(6)",
    ] {
        let all = pieces(source);
        assert_eq!(all.len(), 1, "{source}");
        assert!(all[0].outputs.is_empty(), "{source}");
    }
}
