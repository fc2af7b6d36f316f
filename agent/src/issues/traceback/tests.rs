use super::*;

#[test]
fn long_tracebacks_keep_their_ends() {
    let calls = |count: usize| -> String {
        (0..count)
            .map(|n| format!("  File \"a.py\", line {n}, in f{n}\n    g({n})\n      ^\n"))
            .collect()
    };
    let long = format!(
        "It fails:\nTraceback (most recent call last):\n{}ValueError: no\n\nbye",
        calls(20)
    );
    let folded_text = without_middles(&long);
    assert!(
            folded_text.contains("in f1\n    g(1)\n      ^\n[… 13 calls of the traceback folded]\n  File \"a.py\", line 15, in f15\n"),
            "{folded_text}"
        );
    assert!(
        folded_text.starts_with("It fails:\nTraceback"),
        "{folded_text}"
    );
    assert!(
        folded_text.ends_with("in f19\n    g(19)\n      ^\nValueError: no\n\nbye"),
        "{folded_text}"
    );
    let short = format!(
        "Traceback (most recent call last):\n{}ValueError: no",
        calls(10)
    );
    assert_eq!(without_middles(&short), short);
}

#[test]
fn pytest_tracebacks_are_folded() {
    let calls: String = (0..12)
        .map(|n| format!("src/_pytest/a.py:{n}: in f\n    g({n})\n"))
        .collect();
    let folded_text = without_middles(&format!("{calls}E   ValueError\n"));
    assert_eq!(folded_text.matches(": in f").count(), 7);
    assert!(
        folded_text.contains("[… 5 calls of the traceback folded]\nsrc/_pytest/a.py:7: in f"),
        "{folded_text}"
    );
    let listing = "a.py:1: in f\n    x\n\nb.py:2: in g\n    y";
    assert_eq!(without_middles(listing), listing);
}
