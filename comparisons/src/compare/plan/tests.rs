#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn changed_system_is_named_with_difference() {
    let plan = |system: System| {
        let settings = Settings::default();
        Plan::new(&Dataset::default(), vec![system], 1, &settings)
    };
    let program = |command: &str| System {
        approach: format!("command(mine):{command}"),
        model: "m".to_owned(),
        predictions: None,
        ..System::of_predictions("", "")
    };
    let given = |sha256: &str| System::of_predictions("foreign", sha256);
    let error = |earlier: System, now: System| {
        let extended = plan(now).check_extends(&plan(earlier), Path::new("out"));
        extended.unwrap_err().render()
    };
    let changed = error(given("a"), given("b"));
    assert!(
        changed.contains("the file with the predictions of foreign has changed"),
        "{changed}"
    );
    let changed = error(program("python a.py"), program("python b.py"));
    assert!(
        changed.contains(
            "mine@m was `command(mine):python a.py`, and this command requests \
             `command(mine):python b.py`"
        ),
        "{changed}"
    );
    let removed = error(given("a"), System::of_predictions("other", "a"));
    assert!(
        removed.contains("it includes foreign, which this command does not request"),
        "{removed}"
    );
}
