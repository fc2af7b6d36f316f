#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn all_patterns_compile() {
    assert_eq!(MISSING_NAME_PATTERNS.len(), 7);
}

#[test]
fn missing_names_are_extracted_across_python_versions() {
    for (kind, message, name) in [
        ("ImportError", "cannot import name 'third'", "third"),
        (
            "ImportError",
            "cannot import name 'third' from 'pkg' (/w/pkg/__init__.py)",
            "third",
        ),
        ("ImportError", "No module named 'pkg.sub'", "pkg.sub"),
        (
            "AttributeError",
            "module 'pkg' has no attribute 'quarter'",
            "quarter",
        ),
        (
            "AttributeError",
            "<module 'pkg' from '/w/pkg/__init__.py'> does not have the attribute 'eighth'",
            "eighth",
        ),
        ("NameError", "name 'half' is not defined", "half"),
        (
            "TypeError",
            "half() got an unexpected keyword argument 'up'",
            "up",
        ),
        (
            "TypeError",
            "half() missing 1 required positional argument: 'n'",
            "n",
        ),
    ] {
        let raw = RawFailure {
            kinds: vec![kind.to_owned()],
            message: message.to_owned(),
            ..RawFailure::default()
        };
        assert_eq!(missing_name(&raw).as_deref(), Some(name), "{message}");
    }
}

#[test]
fn pytest_advice_is_removed() {
    let message = "assert [1] == [2]\n  At index 0 diff: 1 != 2\n  \n  Use -v to get more diff";
    assert_eq!(
        without_hints(message),
        "assert [1] == [2]\n  At index 0 diff: 1 != 2"
    );
    let cut = "...Full output truncated (3 lines hidden), use '-vv' to show";
    assert_eq!(
        without_hints(cut),
        "...Full output truncated (3 lines hidden)"
    );
}
