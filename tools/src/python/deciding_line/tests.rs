#![allow(clippy::unwrap_used)]

use super::*;

const FILE: &str = "\
def f(x):
    if x > 1:
        return 'many'
    elif x == 1:
        return 'one'
    else:
        y = 0
    for item in y:
        g(item)
    try:
        h()
    except ValueError:
        return None
    while x:
        x -= 1
    return x


def g(item):
    return item
";

fn decided(line: usize, executed: &[usize]) -> Option<(usize, String)> {
    let module = Module::parse(FILE);
    let executed = executed.iter().copied().collect();
    let decision = module.deciding_line(line, &executed)?;
    Some((
        decision.line,
        format!("{} {}", decision.code, decision.what),
    ))
}

#[test]
fn deciding_line_is_named() {
    let one = |line: usize, text: &str| Some((line, text.to_owned()));
    // The lines that f(1) runs.
    let ran = [1, 2, 4, 5, 19];
    assert_eq!(decided(3, &ran), one(2, "if x > 1 was never true"));
    assert_eq!(decided(7, &ran), one(4, "elif x == 1 was always true"));
    assert_eq!(decided(8, &ran), one(2, "if x > 1 went no further"));
    assert_eq!(decided(20, &ran), one(19, "def g(item) was never called"));
    // The lines that f(0) runs if nothing is raised.
    let ran = [1, 2, 4, 7, 8, 10, 11, 14, 16, 19];
    assert_eq!(
        decided(9, &ran),
        one(8, "for item in y had nothing to go through")
    );
    assert_eq!(decided(13, &ran), one(10, "try raised nothing"));
    assert_eq!(decided(15, &ran), one(14, "while x was never true"));
    // The lines that f(0) runs if another exception is raised.
    let ran = [1, 2, 4, 7, 8, 10, 11, 12, 19];
    assert_eq!(
        decided(13, &ran),
        one(12, "except ValueError did not catch what was raised")
    );
    assert_eq!(decided(16, &ran), one(10, "try went no further"));
    assert_eq!(decided(3, &[]), None);
}
