use super::*;

#[test]
fn forbidden_names_in_code_are_refused() {
    let golden = "import os\ndef test_x():\n    pass\n";
    let first_forbidden = |answer: &str| forbidden(answer, golden);
    assert_eq!(
        first_forbidden("import sys\ndef test_x():\n    sys.settrace(None)\n"),
        Some("settrace")
    );
    assert_eq!(
        first_forbidden("from coverage import Coverage\n"),
        Some("coverage")
    );
    assert_eq!(first_forbidden("x = 'coverage'  # settrace\n"), None);
    assert_eq!(forbidden("import os\nos._exit(0)\n", "os._exit(1)\n"), None);
}
