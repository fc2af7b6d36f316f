use super::*;

fn changed(path: &str) -> FileChange {
    FileChange {
        path: path.to_owned(),
        added: false,
        deleted: false,
        submodule: false,
    }
}

#[test]
fn repository_layout_determines_tests() {
    let own = "[pytest]\ntestpaths = selftest\npython_files = check_*.py\n";
    let layout = Layout::from_files(&|name| (name == "pytest.ini").then(|| own.to_owned()));
    let mut changes = [
        "pkg/a.py",
        "selftest/check_a.py",
        "selftest/data.txt",
        "CHANGES.md",
    ]
    .map(changed)
    .to_vec();
    changes.push(FileChange {
        submodule: true,
        ..changed("tests/integration")
    });
    let paths = Paths::from_changes(&changes, &layout);
    assert_eq!(paths.code, ["pkg/a.py", "CHANGES.md"]);
    assert_eq!(paths.tests, ["selftest/check_a.py", "selftest/data.txt"]);
    assert_eq!(paths.rejection_reason(&layout, &changes), None);
    let plain = Paths::from_changes(&changes, &Layout::default());
    assert_eq!(plain.tests, Vec::<String>::new());
    assert_eq!(paths.submodules, ["tests/integration"]);
}

#[test]
fn fix_must_change_code_and_tests() {
    let layout = Layout::default();
    let lack = |names: &[&str]| {
        let changes: Vec<FileChange> = names.iter().map(|name| changed(name)).collect();
        Paths::from_changes(&changes, &layout).rejection_reason(&layout, &changes)
    };
    assert_eq!(lack(&["pkg/a.py", "tests/test_a.py"]), None);
    assert_eq!(
        lack(&["README.md", "tests/test_a.py"]),
        Some("changes no code")
    );
    assert_eq!(
        lack(&["pkg/a.py", "tests/data.sql"]),
        Some("changes no test file")
    );
}
