use super::*;

#[test]
fn unparsable_test_files_are_removed_entirely() {
    let text = "import a\n\n\ndef test_a():\n    assert a\n\n\ndef helper():\n    return a\n";
    assert_eq!(
        stripped(text, &Layout::default()).as_deref(),
        Some("import a\n\n\ndef helper():\n    return a\n")
    );
    assert_eq!(
        stripped("def test_a():\n    x = = 1\n", &Layout::default()),
        None
    );
    let none = "def helper():\n    pass\n";
    assert_eq!(stripped(none, &Layout::default()).as_deref(), Some(none));
}
