use super::*;

#[test]
fn removed_features_need_older_version() {
    let versions = ["3.12", "3.11", "3.10", "3.9", "3.8"].map(str::to_owned);
    let newest = |error| newest_with(error, &versions);
    assert_eq!(
        newest("E   ModuleNotFoundError: No module named 'cgi'").as_deref(),
        Some("3.12")
    );
    assert_eq!(
        newest("No module named 'imp'\ncannot import name 'Mapping' from 'collections' (/x.py)")
            .as_deref(),
        Some("3.9")
    );
    assert_eq!(newest("E   ModuleNotFoundError: No module named 'x'"), None);
}

#[test]
fn failed_pins_are_found() {
    let lines = [
        "pytest",
        "greenlet==3.0.1 ; python_version > '3'",
        "old<2",
        "free",
    ]
    .map(str::to_owned);
    let pin = |output| failed_pin(output, lines.iter());
    assert_eq!(
        pin("  × Failed to build `greenlet==3.0.1`").as_deref(),
        Some("greenlet==3.0.1")
    );
    assert_eq!(
        pin("Because old==1.9 depends on Python<3.12 and").as_deref(),
        Some("old<2")
    );
    assert_eq!(pin("  × Failed to build `free==9`"), None);
    assert_eq!(pin("error: x"), None);
}
