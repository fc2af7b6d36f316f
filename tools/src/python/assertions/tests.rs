#![allow(clippy::unwrap_used)]
use super::*;

fn read(text: &str) -> Vec<String> {
    let module = Module::parse(text);
    let source = |operand: &Operand| {
        let constant = if operand.is_constant { "!" } else { "" };
        format!("{}{constant}", &text[operand.bytes.clone()])
    };
    let describe = |assertion: Assertion| match &assertion.comparison {
        Comparison::Unary { negated, operand } => format!("{negated} {}", source(operand)),
        Comparison::Binary {
            left,
            operator,
            right,
        } => format!("{} [{operator}] {}", source(left), source(right)),
        Comparison::Chain => "chain".to_owned(),
    };
    let parsed_assertions = assertions(&module, &(0..text.len()));
    parsed_assertions.into_iter().map(describe).collect()
}

#[test]
fn assertions_are_parsed() {
    let text = "\
def test():
    assert a
    assert not (b)
    assert a.b() == -1, 'why'
    assert (x is  not None)
    assert 'k' not in d[
        'x'
    ]
    assert 1 < x < 2
    assert a and b
    assert f'{x}' == 'a' 'b'
    assert (
        x  # why
        == 1
    )
";
    assert_eq!(
        read(text),
        [
            "false a",
            "true (b)",
            "a.b() [==] -1!",
            "x [is not] None!",
            "'k'! [not in] d[\n        'x'\n    ]",
            "chain",
            "false a and b",
            "f'{x}' [==] 'a' 'b'!",
            "x [==] 1!",
        ]
    );
}

#[test]
fn parentheses_and_quotes_are_ignored() {
    let text =
        "def test():\n    assert ('a') == x\n    def f():\n        assert \"a\" == x, 'no'\n";
    let module = Module::parse(text);
    let parsed_assertions = assertions(&module, &(0..text.len()));
    let left_operand = |at: usize| {
        parsed_assertions[at].comparison.operands()[0]
            .tokens
            .clone()
    };
    assert_eq!(left_operand(0), left_operand(1));
    assert_eq!(
        [
            parsed_assertions[0].is_nested,
            parsed_assertions[1].is_nested
        ],
        [false, true]
    );
    let all = all_assertions("assert x == 1, 'a'\nassert (x) == 1\n");
    assert_eq!(all[0], all[1]);
}
