#![allow(clippy::unwrap_used, clippy::expect_used)]

mod security;

use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;

use super::*;
use crate::testing::{Fixture, config};
use crate::workspace::Change;

impl Fixture {
    fn root(&self) -> PathBuf {
        self.workspace.root().to_path_buf()
    }

    fn changed(&mut self) -> Vec<(String, Change)> {
        let changes = self.workspace.changes().unwrap();
        changes.into_iter().map(|c| (c.path, c.change)).collect()
    }

    /// Checks that the real `git apply` on the base commit gives the content of the workspace.
    fn check_patch(&mut self) -> String {
        let changes = self.workspace.changes().unwrap();
        let patch = self.workspace.patch(&changes);
        let clean = self.folder.path().join("clean");
        fs::create_dir(&clean).unwrap();
        tar::Archive::new(fs::File::open(self.folder.path().join("base.tar")).unwrap())
            .unpack(&clean)
            .unwrap();
        git(&clean, &["init", "-q"]);
        fs::write(self.folder.path().join("x.patch"), &patch).unwrap();
        git(&clean, &["apply", "--whitespace=nowarn", "../x.patch"]);
        for changed in &changes {
            let path = clean.join(&changed.path);
            let now = fs::symlink_metadata(&path).ok().map(|data| {
                assert_eq!(
                    archive::git_mode(data.is_symlink(), data.mode()),
                    changed.mode.unwrap(),
                    "{}",
                    changed.path
                );
                match data.is_symlink() {
                    true => fs::read_link(&path)
                        .unwrap()
                        .to_str()
                        .unwrap()
                        .as_bytes()
                        .to_vec(),
                    false => fs::read(&path).unwrap(),
                }
            });
            assert_eq!(now, changed.now, "{}", changed.path);
        }
        patch
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let out = Command::new("git")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
}

fn refusal<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Err(ToolError::Refused(text)) => text,
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn paths_stay_inside_workspace() {
    let f = Fixture::new(&[("a/b.py", b"x = 1\n"), ("c.py", b"")]);
    let root = f.root();
    symlink("/etc", root.join("etc")).unwrap();
    symlink("../..", root.join("a/up")).unwrap();
    symlink("a/b.py", root.join("link.py")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let w = &f.workspace;
    assert_eq!(w.resolve("./a//x/../b.py").unwrap(), Path::new("a/b.py"));
    assert_eq!(
        w.resolve(root.join("a/b.py").to_str().unwrap()).unwrap(),
        Path::new("a/b.py")
    );
    assert_eq!(w.resolve("link.py").unwrap(), Path::new("a/b.py"));
    assert_eq!(w.resolve("<repo>/a/b.py").unwrap(), Path::new("a/b.py"));
    assert_eq!(
        w.resolve("new/dir/t.py").unwrap(),
        Path::new("new/dir/t.py")
    );
    for bad in [
        "../x",
        "/etc/passwd",
        "a/../../x",
        "etc/passwd",
        "a/up/scratch/x",
        "dangling",
        "",
        "etc/../../x",
    ] {
        refusal(w.resolve(bad));
    }
}

#[test]
fn writes_through_outside_links_are_refused() {
    let mut f = Fixture::new(&[("a.py", b"")]);
    let secret = f.folder.path().join("secret");
    fs::write(&secret, "old").unwrap();
    symlink(&secret, f.root().join("out.py")).unwrap();
    refusal(f.workspace.write(Path::new("out.py"), b"new"));
    refusal(f.workspace.read(Path::new("out.py")));
    f.workspace.remove(Path::new("out.py")).unwrap();
    assert!(!f.root().join("out.py").is_symlink());
    assert_eq!(fs::read(&secret).unwrap(), b"old");
}

#[test]
fn links_themselves_are_removed_and_restored() {
    let mut f = Fixture::with(&[("a.py", b"a\n"), ("real/b.py", b"b\n")], |_| {});
    let root = f.root();
    symlink("a.py", root.join("new_link.py")).unwrap();
    f.workspace.restore(Path::new("new_link.py")).unwrap();
    assert!(!root.join("new_link.py").is_symlink() && root.join("a.py").exists());
    // A tracked file that became a link out of the workspace.
    let outside = f.folder.path().join("outside");
    fs::write(&outside, "secret").unwrap();
    fs::remove_file(root.join("a.py")).unwrap();
    symlink(&outside, root.join("a.py")).unwrap();
    assert_eq!(f.changed(), [("a.py".to_owned(), Change::Modified)]);
    f.workspace.restore(Path::new("a.py")).unwrap();
    assert_eq!(fs::read(root.join("a.py")).unwrap(), b"a\n");
    assert_eq!(fs::read(&outside).unwrap(), b"secret");
    // A folder that became a link.
    fs::rename(root.join("real"), f.folder.path().join("moved")).unwrap();
    symlink(f.folder.path().join("moved"), root.join("real")).unwrap();
    refusal(f.workspace.restore(Path::new("real/b.py")));
    refusal(f.workspace.remove(Path::new("real/b.py")));
    assert!(f.folder.path().join("moved/b.py").exists());
}

#[test]
fn base_links_are_restored_unless_folders_replaced_them() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("testbed/sub/link.py");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink("a.py", &link).unwrap();
    let mut archive = tar::Builder::new(fs::File::create(folder.path().join("base.tar")).unwrap());
    archive.follow_symlinks(false);
    archive
        .append_dir_all(".", folder.path().join("testbed"))
        .unwrap();
    archive.finish().unwrap();
    let mut workspace = Workspace::open(config(folder.path())).unwrap();
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    refusal(workspace.restore(Path::new("sub/link.py")));
    fs::remove_dir_all(link.parent().unwrap()).unwrap();
    workspace.restore(Path::new("sub/link.py")).unwrap();
    assert_eq!(fs::read_link(&link).unwrap(), Path::new("a.py"));
}

#[test]
fn writing_keeps_mode_and_changes_mtime() {
    let mut f = Fixture::new(&[("run.sh", b"#!/bin/sh\n")]);
    let path = f.root().join("run.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let mut seconds = vec![fs::metadata(&path).unwrap().mtime()];
    for text in [b"a", b"b", b"c"] {
        f.workspace.write(Path::new("run.sh"), text).unwrap();
        seconds.push(fs::metadata(&path).unwrap().mtime());
    }
    f.workspace.remove(Path::new("run.sh")).unwrap();
    f.workspace.write(Path::new("run.sh"), b"d").unwrap();
    seconds.push(fs::metadata(&path).unwrap().mtime());
    assert!(seconds.is_sorted_by(|a, b| a < b), "{seconds:?}");
    f.workspace.restore(Path::new("run.sh")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"#!/bin/sh\n");
}

#[test]
fn undecodable_text_is_refused() {
    let mut f = Fixture::new(&[
        ("bin", b"a\0b"),
        ("bad.py", b"x = '\xe9'\n"),
        ("latin.py", b"# -*- coding: latin-1 -*-\nx = '\xe9'\n"),
    ]);
    assert!(refusal(f.workspace.read_text(Path::new("bin"))).contains("binary"));
    assert!(refusal(f.workspace.read_text(Path::new("bad.py"))).contains("UTF-8"));
    assert!(refusal(f.workspace.read(Path::new("."))).contains("folder"));
    let latin = Path::new("latin.py");
    let text = f.workspace.read_text(latin).unwrap();
    assert!(text.contains('é'));
    f.workspace
        .write_text(latin, &text.replace("x =", "y ="))
        .unwrap();
    assert!(f.workspace.read(latin).unwrap().ends_with(b"y = '\xe9'\n"));
    refusal(
        f.workspace
            .write_text(latin, "# coding: latin-1\nx = '\u{4e2d}'\n"),
    );
}

#[test]
fn changes_exclude_baseline_and_ignored_files() {
    let mut f = Fixture::with(
        &[
            (".gitignore", b"build/\n*.log\n"),
            ("a.py", b"a\n"),
            ("version.py", b"0\n"),
            ("gone.py", b""),
        ],
        |root| {
            fs::write(root.join("version.py"), "1.2.3\n").unwrap();
            fs::write(root.join("generated.py"), "x\n").unwrap();
            fs::write(root.join("other.so"), "x\n").unwrap();
        },
    );
    assert_eq!(f.changed(), []);
    let root = f.root();
    for name in [
        "build/x",
        "a.log",
        "__pycache__/a.pyc",
        "x.egg-info/PKG-INFO",
        ".git/HEAD",
        "venv/pyvenv.cfg",
    ] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), "x").unwrap();
    }
    fs::write(root.join("a.py"), "b\n").unwrap();
    fs::write(root.join("new.py"), "b\n").unwrap();
    fs::write(root.join("generated.py"), "y\n").unwrap();
    fs::remove_file(root.join("gone.py")).unwrap();
    let expected = [
        ("a.py", Change::Modified),
        ("generated.py", Change::Added),
        ("gone.py", Change::Deleted),
        ("new.py", Change::Added),
    ]
    .map(|(p, c)| (p.to_owned(), c));
    assert_eq!(f.changed(), expected);
    // Another process sees the same changes, since the baseline is stored.
    f.workspace = Workspace::open(config(f.folder.path())).unwrap();
    assert_eq!(f.changed(), expected);
    for path in ["a.py", "gone.py", "new.py"] {
        f.workspace.restore(Path::new(path)).unwrap();
    }
    refusal(f.workspace.restore(Path::new("generated.py")));
    assert_eq!(f.changed(), [("generated.py".to_owned(), Change::Added)]);
}

#[test]
fn copied_workspace_has_same_changes() {
    let f = Fixture::with(&[("a.py", b"a\n")], |root| {
        fs::write(root.join("generated.py"), "x\n").unwrap();
    });
    fs::write(f.root().join("a.py"), "b\n").unwrap();
    let elsewhere = f.folder.path().with_extension("copy");
    fs::rename(f.folder.path(), &elsewhere).unwrap();
    let copy = Workspace::open(config(&elsewhere)).unwrap().changes();
    fs::rename(&elsewhere, f.folder.path()).unwrap();
    let paths: Vec<String> = copy.unwrap().into_iter().map(|c| c.path).collect();
    assert_eq!(paths, ["a.py"]);
}

#[test]
fn same_size_same_second_change_is_detected() {
    let mut f = Fixture::new(&[("a.py", b"x = 1\n")]);
    let path = f.root().join("a.py");
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    assert_eq!(f.changed(), []);
    fs::write(&path, "x = 2\n").unwrap();
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(time)
        .unwrap();
    assert_eq!(f.changed().len(), 1);
}

#[test]
fn git_applies_the_patch() {
    let long: String = (1..60).map(|n| format!("line {n}\n")).collect();
    let mut f = Fixture::new(&[
        ("tests/test_a.py", long.as_bytes()),
        ("crlf.txt", b"a\r\nb\r\nc\r\n"),
        ("no_end.txt", b"a\nb"),
        ("gains_end.txt", b"a\nb"),
        ("with space.txt", b"a\n"),
        ("n\u{e4}me \"q\".txt", b"a\n"),
        ("gone.txt", b"a\nb"),
        ("empty_gone.txt", b""),
        ("script.sh", b"#!/bin/sh\n"),
        ("becomes_link", b"a\n"),
        ("data.bin", b"\0\x01\x02"),
        ("latin.txt", b"\xe9\n"),
        ("formfeed.txt", b"a\x0c\nb\rc\n"),
    ]);
    let root = f.root();
    let put = |name: &str, content: &[u8]| {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), content).unwrap();
    };
    put(
        "tests/test_a.py",
        long.replace("line 3\n", "line three\n")
            .replace("line 50\n", "")
            .as_bytes(),
    );
    put("crlf.txt", b"a\r\nB\r\nc\r\n");
    put("no_end.txt", b"a\nB");
    put("gains_end.txt", b"a\nb\n");
    put("with space.txt", b"b\n");
    put("n\u{e4}me \"q\".txt", b"b\n");
    put("new/deep dir/\u{4e2d}.py", b"x = 1\n");
    put("new/empty.py", b"");
    put(
        "new/data.bin",
        &(0..=255).cycle().take(3000).collect::<Vec<u8>>(),
    );
    put("new/no_end.py", b"x");
    put("data.bin", b"\0\x01\x03 and more");
    put("latin.txt", b"\xe8\xff\n");
    put("formfeed.txt", b"a\x0c\nB\rc\n");
    for name in ["gone.txt", "empty_gone.txt", "becomes_link"] {
        fs::remove_file(root.join(name)).unwrap();
    }
    symlink("script.sh", root.join("becomes_link")).unwrap();
    symlink("tests", root.join("new/link")).unwrap();
    fs::set_permissions(root.join("script.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    put("new/tool.sh", b"#!/bin/sh\n");
    fs::set_permissions(root.join("new/tool.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let patch = f.check_patch();
    assert!(
        patch.contains("diff --git \"a/n\\303\\244me \\\"q\\\".txt\""),
        "{patch}"
    );
    assert!(patch.contains("+++ b/with space.txt\t\n"));
    assert!(patch.contains("\\ No newline at end of file"));
    assert_eq!(patch.matches("GIT binary patch").count(), 3);
}

#[test]
fn python_hunks_name_their_function() {
    let body: String = (1..9).map(|n| format!("        x = {n}\n")).collect();
    let before = format!("class TestA:\n    async def test_a(self):\n{body}");
    let mut f = Fixture::new(&[("a.py", before.as_bytes()), ("a.txt", before.as_bytes())]);
    for name in ["a.py", "a.txt"] {
        fs::write(f.root().join(name), before.replace("x = 8", "x = 9")).unwrap();
    }
    let patch = f.check_patch();
    let heads: Vec<&str> = patch
        .lines()
        .filter(|line| line.starts_with("@@"))
        .collect();
    assert_eq!(
        heads,
        ["@@ -7,4 +7,4 @@ async def test_a(self):", "@@ -7,4 +7,4 @@"]
    );
}

#[test]
fn unchanged_workspace_has_empty_patch() {
    let mut f = Fixture::new(&[("a.py", b"x = 1\n")]);
    let changes = f.workspace.changes().unwrap();
    assert_eq!(f.workspace.patch(&changes), "");
}

#[test]
fn missing_file_errors_name_nearest_paths() {
    let f = Fixture::new(&[
        ("src/pkg/models.py", b""),
        ("tests/test_models.py", b""),
        ("README", b""),
    ]);
    let text = refusal(f.workspace.resolve_file("pkg/models.py"));
    assert!(text.contains("src/pkg/models.py"), "{text}");
    let text = refusal(f.workspace.resolve_file("tests/test_model.py"));
    assert!(text.contains("tests/test_models.py"), "{text}");
    assert!(refusal(f.workspace.resolve_file("src")).contains("folder"));
}

/// Returns the layout of a whole tree.
fn tree(files: &[(&str, &str)]) -> Layout {
    let read = |path: &str| {
        let entry = files.iter().find(|(name, _)| *name == path);
        entry.map(|(_, text)| (*text).to_owned())
    };
    Layout::from_tree(files.iter().map(|(path, _)| *path), &read)
}

#[test]
fn every_configuration_file_of_pytest_counts() {
    for (name, text) in [
        ("pytest.toml", "[pytest]\npython_files = ['verify_*.py']\n"),
        (".pytest.toml", "[pytest]\npython_files = ['verify_*.py']\n"),
        (
            "pytest.ini",
            "\u{feff}[pytest]\npython_files = verify_*.py\n",
        ),
        (".pytest.ini", "[pytest]\npython_files = verify_*.py\n"),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\npython_files = 'verify_*.py'\n",
        ),
        (
            "pyproject.toml",
            "[tool.pytest]\npython_files = ['verify_*.py']\n",
        ),
        ("tox.ini", "[pytest]\npython_files = verify_*.py\n"),
        ("setup.cfg", "[tool:pytest]\npython_files = verify_*.py\n"),
        (
            "tox.ini",
            "[pytest]\naddopts = -q -o python_files=verify_*.py\n",
        ),
    ] {
        assert!(
            layout(&[(name, text)]).is_test_file("qa/verify_a.py"),
            "{name}"
        );
    }
    let toml = ("pytest.toml", "[pytest]\npython_files = ['verify_*.py']\n");
    let both = layout(&[("pytest.ini", "[pytest]\n"), toml]);
    assert!(both.is_test_file("qa/verify_a.py"));
}

#[test]
fn nearest_configuration_counts() {
    let l = tree(&[
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\ntestpaths = ['tests']\n",
        ),
        (
            "backend/setup.cfg",
            "[tool:pytest]\npython_files = check_*.py\ntestpaths = checks\n",
        ),
        ("backend/plain/tox.ini", "[tox]\n"),
    ]);
    assert!(l.is_test_file("backend/checks/check_a.py"));
    assert!(l.is_test_path("backend/checks/data.json"));
    assert!(!l.is_test_file("checks/check_a.py"));
    assert!(!l.is_test_file("backend/src/check_a.py"));
    assert!(l.of_file("backend/plain/x.py").is_test_function("test_a"));
}

#[test]
fn content_decides_if_the_name_does_not() {
    let l = tree(&[
        (
            "pytest.ini",
            "[pytest]\npython_files = check_*.py test_*.py\n",
        ),
        ("app/check_a.py", "def test_a():\n    pass\n"),
        ("app/check_b.py", "def read():\n    pass\n"),
        (
            "app/tests.py",
            "from unittest import TestCase\n\nclass A(TestCase):\n    def test_a(self):\n        pass\n",
        ),
        (
            "jinja/tests.py",
            "def test_odd(value):\n    return value % 2\n",
        ),
        (
            "app/testing.py",
            "class Client:\n    def test(self):\n        pass\n",
        ),
        (
            "app/testcheck.py",
            "import pytest\n\ndef test_a(tmp_path):\n    pass\n",
        ),
    ]);
    for (path, is_test) in [
        ("app/check_a.py", true),
        ("app/check_b.py", false),
        ("app/check_new.py", true),
        ("app/tests.py", true),
        ("other/tests.py", true),
        ("jinja/tests.py", false),
        ("app/testing.py", false),
        ("app/testcheck.py", true),
        ("app/testnew.py", false),
    ] {
        assert_eq!(l.is_test_file(path), is_test, "{path}");
    }
    assert!(!tree(&[("app/x.py", "")]).is_test_file("app/tests.py"));
    assert!(tree(&[("manage.py", "")]).is_test_file("app/tests.py"));
}

#[test]
fn packages_in_testpaths_are_no_test_folders() {
    for package in ["src", ".", "specutils", "testinfra", "validators", "pkg"] {
        let text = format!("[pytest]\ntestpaths = {package} docs\n");
        let l = layout(&[("pytest.ini", &text)]);
        assert!(!l.is_test_path(&format!("{package}/core.py")), "{package}");
        assert!(
            l.is_test_file(&format!("{package}/test_core.py")),
            "{package}"
        );
    }
    for folder in ["checks", "unit-tests", "system_test", "spec"] {
        let text = format!("[pytest]\ntestpaths = {folder}\n");
        let l = layout(&[("pytest.ini", &text)]);
        assert!(l.is_test_path(&format!("{folder}/data.json")), "{folder}");
    }
}

fn layout(files: &[(&str, &str)]) -> Layout {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    Layout::read(folder.path())
}

#[test]
fn test_files_follow_pytest_defaults() {
    let l = layout(&[]);
    for path in ["test_x.py", "a/x_test.py", "sympy/core/tests/test_x.py"] {
        assert!(
            l.is_test_file(path) && l.is_test_path(path) && !l.is_test_support(path),
            "{path}"
        );
    }
    for path in [
        "x/conftest.py",
        "sympy/testing/runtests.py",
        "xarray/testing.py",
        "astropy/tests/helper.py",
    ] {
        assert!(l.is_test_support(path) && !l.is_test_file(path), "{path}");
    }
    for path in [
        "tests/data/x.json",
        "tests/functional/a.py",
        "testing/x.txt",
        "doc-tests/x",
    ] {
        assert!(l.is_test_path(path) && !l.is_test_file(path), "{path}");
    }
    for path in [
        "src/flask/app.py",
        "setup.py",
        "contest.py",
        "src/latest.py",
        "attestation/x.py",
        "testing.md",
    ] {
        assert!(!l.is_test_path(path) && !l.is_test_support(path), "{path}");
    }
    assert!(l.is_test_class("TestX") && !l.is_test_class("XTests"));
    assert!(
        l.is_test_function("test_x")
            && l.is_test_function("testX")
            && !l.is_test_function("check_x")
    );
}

#[test]
fn test_files_follow_configuration() {
    let cfg = "[metadata]\nname = x\n[tool:pytest]\npython_files = check_*.py\n  spec/*_test_spec.py\npython_classes = *Suite\n\
               python_functions=\n    check_\n    should*\ntestpaths = spec\n";
    let ini = layout(&[("setup.cfg", cfg)]);
    let toml = layout(&[
        ("setup.cfg", "[tool:pytest]\npython_files = no.py\n"),
        (
            "pyproject.toml",
            "[tool.pytest.ini_options]\npython_files = ['check_*.py', 'spec/*_test_spec.py']\n\
             python_classes = '*Suite'\npython_functions = ['check_', 'should*']\ntestpaths = ['spec']\n",
        ),
    ]);
    for l in [ini, toml] {
        assert!(l.is_test_file("tests/check_a.py"));
        assert!(l.is_test_file("spec/a_test_spec.py") && !l.is_test_file("b/a_test_spec.py"));
        assert!(l.is_test_class("ASuite") && !l.is_test_class("TestA"));
        assert!(
            l.is_test_function("check_x")
                && l.is_test_function("should_x")
                && !l.is_test_function("test_x")
        );
        assert_eq!(l.folders(), ["spec"]);
    }
    let pylint = layout(&[(
        "setup.cfg",
        "[tool:pytest]\ntestpaths = tests\npython_files = *test_*.py\n",
    )]);
    assert!(
        pylint.is_test_file("tests/unittest_lint.py")
            && pylint.is_test_file("examples/tests/test_a.py")
    );
    assert!(pylint.is_test_file("test_root.py"));
    assert!(
        !pylint.is_test_file("pylint/testutils/unittest_linter.py")
            && !pylint.is_test_file("pylint/x/test_file.py")
    );
    // A broken file counts as missing.
    assert!(layout(&[("pyproject.toml", "[tool.pytest\n")]).is_test_file("test_a.py"));
}
