use super::*;

fn codes(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let run = run(&lines);
    is_code(run).then_some(run.len())
}

#[test]
fn statements_in_a_row_are_code() {
    for (text, count) in [
        ("from shop import low, high\nlow(3)\nIt fails.", 2),
        ("index = Index(\n\tfields=['a'],\n)\nWill do:", 3),
        ("def f():\n\treturn 1\n# Then:\nf()\n# Title", 4),
        ("if x:\n\tf(1).g()\nelse:\n\tprint(x)", 4),
        ("box = shop.Box(3)\nbox.items[0] = 4\nbox.total()  # 3", 3),
    ] {
        assert_eq!(codes(text), Some(count), "{text}");
    }
}

#[test]
fn sentences_are_not_code() {
    for text in [
        "low(3) gives 4\nlow(4) gives 5",
        "from the start it fails\nimport it again",
        "with these lines:\nlow(3)\n",
        "low(3)\nIt fails.",
        "models.py:\nx = f(\n\t3,\n",
        "Try f(x)\nprint the result",
    ] {
        assert_eq!(codes(text), None, "{text}");
    }
}
