use super::folded;

#[test]
fn older_library_warnings_are_counted() {
    let mut printed = "start\n".to_owned();
    for n in 0..9 {
        printed.push_str(&format!(
            "lib/a.py:{n}: DeprecationWarning: old {n}\n  import imp\n"
        ));
    }
    printed.push_str("snippet.py:1: UserWarning: own\n");
    printed.push_str("pkg/b.py:7: FutureWarning: told\nTraceback\n");
    assert_eq!(
        folded(&printed, "import lib"),
        "start\n[... 7 warnings left out: 7 DeprecationWarning; mention `warnings` in the snippet to \
             see all ...]\nlib/a.py:7: DeprecationWarning: old 7\n  import imp\nlib/a.py:8: DeprecationWarning: old 8\n  import imp\n\
             snippet.py:1: UserWarning: own\npkg/b.py:7: FutureWarning: told\nTraceback\n"
    );
    assert_eq!(folded(&printed, "import warnings"), printed);
    let libraries = "/l/a.py:1: DeprecationWarning: old\n/l/b.py:2: UserWarning: odd\nok\n";
    assert_eq!(
        folded(libraries, ""),
        "[... 2 warnings left out: 1 DeprecationWarning, 1 UserWarning; mention `warnings` in the snippet to see all ...]\nok\n"
    );
    let few: String = printed.lines().skip(13).map(|l| format!("{l}\n")).collect();
    assert_eq!(folded(&few, ""), few);
}

#[test]
fn repeated_warnings_are_shown_once() {
    let printed = "a\npkg/a.py:1: DeprecationWarning: old\n  x()\nb\npkg/b.py:7: DeprecationWarning: old\n  y()\n\
                       pkg/a.py:1: DeprecationWarning: old\n  x()\nsnippet.py:2: DeprecationWarning: old\nc\n";
    assert_eq!(
        folded(printed, "x()"),
        "a\npkg/a.py:1: DeprecationWarning: old\n  x()\n[... the same warning 2 more times ...]\nb\n\
             snippet.py:2: DeprecationWarning: old\nc\n"
    );
    assert_eq!(
        folded(printed, "import warnings"),
        "a\npkg/a.py:1: DeprecationWarning: old\n  x()\n[... the same warning once more ...]\nb\n\
             pkg/b.py:7: DeprecationWarning: old\n  y()\nsnippet.py:2: DeprecationWarning: old\nc\n"
    );
}
