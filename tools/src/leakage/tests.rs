#![allow(clippy::unwrap_used)]
use super::*;
use std::process::Command;

fn request(lines: &[&str], blob: &str) -> Request {
    Request {
        wanted: vec![NewFile {
            path: "src/pkg/mod.py".to_owned(),
            lines: lines.iter().map(|&l| l.to_owned()).collect(),
            blob: blob.to_owned(),
        }],
    }
}

#[test]
fn newer_package_copy_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let request = request(&["return the_right_value"], &"0".repeat(40));
    write("testbed/src/pkg/mod.py", "def f():\n    return 1\n");
    write("other/mod.py", "def f():\n    return the_right_value\n");
    let findings = find(folder.path(), &request);
    assert_eq!(
        (findings.searched, findings.places.len()),
        (2, 0),
        "{findings:?}"
    );
    write(
        "site-packages/pkg/mod.py",
        "\ndef f():\n  return the_right_value\nmore = 1\n",
    );
    let findings = find(folder.path(), &request);
    assert_eq!(findings.places.len(), 1, "{findings:?}");
    assert!(findings.places[0].ends_with("site-packages/pkg/mod.py"));
}

#[test]
fn loose_and_packed_git_objects_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let git = |words: &[&str]| {
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
            .args(words)
            .current_dir(folder.path())
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    std::fs::write(folder.path().join("a.py"), "x = 1\n").unwrap();
    let blob = git(&["hash-object", "a.py"]);
    assert!(find(folder.path(), &request(&[], &blob)).places.is_empty());
    git(&["add", "a.py"]);
    git(&["commit", "-qm", "a"]);
    let loose = find(folder.path(), &request(&[], &blob)).places;
    assert_eq!(loose.len(), 1, "{loose:?}");
    git(&["gc", "-q"]);
    let packed = find(folder.path(), &request(&[], &blob)).places;
    assert!(packed.iter().any(|p| p.ends_with(".idx")), "{packed:?}");
    assert!(
        find(folder.path(), &request(&[], &"1".repeat(40)))
            .places
            .is_empty()
    );
}
