#![allow(clippy::unwrap_used)]
use super::*;

fn resumed(at: &str) -> Event {
    Event::Resumed { at: at.into() }
}

#[test]
fn incomplete_last_line_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunFolder::create(folder.path()).unwrap();
    run.append(&resumed("one")).unwrap();
    run.append(&resumed("two")).unwrap();
    drop(run);
    let file = folder.path().join(TRAJECTORY);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes.truncate(bytes.len() - 5);
    std::fs::write(&file, bytes).unwrap();

    let (mut run, events) = RunFolder::reopen(folder.path()).unwrap();
    assert_eq!(events, [resumed("one")]);
    run.append(&resumed("three")).unwrap();
    drop(run);
    assert_eq!(
        RunFolder::read(folder.path()).unwrap(),
        [resumed("one"), resumed("three")]
    );
}

#[test]
fn damaged_line_is_a_numbered_error() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunFolder::create(folder.path()).unwrap();
    run.append(&resumed("one")).unwrap();
    drop(run);
    let file = folder.path().join(TRAJECTORY);
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("not json\n");
    std::fs::write(&file, text).unwrap();
    let error = RunFolder::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn planted_links_are_not_followed() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let link = |name: &str| {
        let path = folder.path().join(name);
        std::os::unix::fs::symlink(other.path(), &path).unwrap();
        path
    };
    let runs = link("testwright-runs");
    for error in [
        RunFolder::check_default_folder(&runs).unwrap_err(),
        RunFolder::create_in_default_folder(&runs.join("now")).unwrap_err(),
    ] {
        assert!(matches!(error, TrajectoryError::Link { .. }), "{error}");
    }
    std::fs::create_dir(folder.path().join("runs")).unwrap();
    let planted = link("runs/now");
    assert!(matches!(
        RunFolder::create_in_default_folder(&planted),
        Err(TrajectoryError::Occupied { .. })
    ));
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
    RunFolder::create_in_default_folder(&folder.path().join("made/now")).unwrap();
    // A folder that the user names may be a link.
    RunFolder::create(&planted).unwrap();
    assert!(other.path().join(TRAJECTORY).exists());
}

#[test]
fn folder_admits_one_run_and_writer() {
    let folder = tempfile::tempdir().unwrap();
    let _first = RunFolder::create(folder.path()).unwrap();
    assert!(matches!(
        RunFolder::create(folder.path()),
        Err(TrajectoryError::Occupied { .. })
    ));
    assert!(matches!(
        RunFolder::reopen(folder.path()),
        Err(TrajectoryError::Busy { .. })
    ));
}
