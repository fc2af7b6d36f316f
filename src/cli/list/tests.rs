#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn folders_without_runs_are_skipped() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    assert!(local_runs(folder.path()).unwrap().is_empty());
    let missing = local_runs(&folder.path().join("missing")).unwrap_err();
    assert_eq!(missing.exit_code(), 2);
    assert!(missing.render().contains("cause: there is no such folder"));
}

#[test]
fn unfinished_run_shows_how_to_resume() {
    let run = LocalRun {
        started: "2026-04-01T12:30:45.123Z".to_owned(),
        repository: "o/n".to_owned(),
        issue: "A\x1b title".to_owned(),
        approach: "testwright".to_owned(),
        model: "m".to_owned(),
        outcome: None,
        folder: PathBuf::from("runs/a"),
    };
    assert_eq!(
        run.render(None),
        "2026-04-01 12:30  runs/a\n    o/n: A\\u{1b} title\n    \
             testwright with m: not ended; resume it: testwright run --resume runs/a\n"
    );
    let quoted = LocalRun {
        folder: PathBuf::from("runs/$(a) b"),
        ..run
    };
    assert!(
        quoted
            .render(None)
            .ends_with("testwright run --resume 'runs/$(a) b'\n")
    );
    assert!(
        quoted
            .render(Some(30))
            .lines()
            .all(|line| line.chars().count() <= 30)
    );
}
