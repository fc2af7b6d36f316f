use super::requires_reinstallation;

#[test]
fn packaging_and_compiled_code_need_reinstallation() {
    for (path, anew) in [
        ("setup.cfg", true),
        ("requirements-dev.txt", true),
        ("astropy/table/_np_utils.pyx", true),
        ("docs/requirements.txt", false),
        ("src/flask/app.py", false),
        ("tests/setup.cfg", false),
    ] {
        assert_eq!(requires_reinstallation(path), anew, "{path}");
    }
}
