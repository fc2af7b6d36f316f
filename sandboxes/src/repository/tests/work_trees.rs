//! Tests of patches that are applied to a user's work tree.

use super::*;

const PATCH: &str = "diff --git a/tests/test_a.py b/tests/test_a.py\n--- a/tests/test_a.py\n+++ b/tests/test_a.py\n\
                     @@ -1,2 +1,6 @@\n def test_a():\n     assert True\n+\n+\n+def test_b():\n+    assert False\n\
                     diff --git a/tests/test_n.py b/tests/test_n.py\nnew file mode 100644\n--- /dev/null\n\
                     +++ b/tests/test_n.py\n@@ -0,0 +1 @@\n+N = 1\n";

fn find(folder: &Path) -> WorkTree {
    WorkTree::find(folder.to_str().unwrap()).unwrap().unwrap()
}

/// Returns a repository whose commits have an author, also without a configuration of the user.
fn work_tree(place: &TestRepository) -> PathBuf {
    let work = place.repository();
    git(&work, &["config", "user.name", "Ann"]);
    git(&work, &["config", "user.email", "ann@example.org"]);
    work
}

#[test]
fn work_tree_has_root_prefix_and_origin() {
    let place = TestRepository::new();
    let work = place.repository();
    let tree = find(&work.join("pkg"));
    assert_eq!(tree.prefix(), "pkg/");
    assert_eq!(tree.root(), work.canonicalize().unwrap());
    assert!(!tree.is_clone_of("o/n").unwrap());
    let url = "https://example.org/o/n.git";
    git(&work, &["remote", "add", "origin", url]);
    assert!(tree.is_clone_of("o/n").unwrap());
    for other in [url, "no/such/folder", work.join(".git").to_str().unwrap()] {
        assert!(WorkTree::find(other).unwrap().is_none(), "{other}");
    }
}

#[test]
fn changed_files_are_never_touched() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    write(&work, "pkg/__init__.py", "other = 1\n");
    let tree = find(&work);
    let apply = || tree.apply(PATCH, Placement::default()).unwrap();

    write(
        &work,
        "tests/test_a.py",
        "def test_a():\n    assert True\n\nx = 1\n",
    );
    assert_eq!(
        apply(),
        Err("tests/test_a.py has uncommitted changes".to_owned())
    );
    assert!(!work.join("tests/test_n.py").exists());
    git(&work, &["checkout", "-q", "tests"]);

    write(&work, "tests/test_n.py", "mine\n");
    let reason = apply().unwrap_err();
    assert!(
        reason.contains("tests/test_n.py: already exists"),
        "{reason}"
    );
    assert_eq!(
        git(&work, &["status", "--short", "-uno"]),
        "M pkg/__init__.py"
    );
    std::fs::remove_file(work.join("tests/test_n.py")).unwrap();

    assert!(!tree.has_applied(PATCH).unwrap());
    assert_eq!(apply(), Ok(None));
    assert!(work.join("tests/test_n.py").exists());
    assert!(tree.has_applied(PATCH).unwrap());
}

#[test]
fn commit_has_only_files_of_patch() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    let first = git(&work, &["rev-parse", "HEAD"]);
    write(&work, "pkg/__init__.py", "staged = 1\n");
    git(&work, &["add", "pkg"]);
    let tree = find(&work);
    let placement = Placement {
        branch: Some("issue/7"),
        message: Some("Add a test\n\nMore.\n"),
    };
    let commit = tree.apply(PATCH, placement).unwrap().unwrap().unwrap();
    assert_eq!(
        git(&work, &["rev-parse", "HEAD", "HEAD^"]),
        format!("{commit}\n{first}")
    );
    assert_eq!(git(&work, &["branch", "--show-current"]), "issue/7");
    assert_eq!(git(&work, &["rev-parse", "main"]), first);
    let log = ["log", "-1", "--format=%an %s %b", "--name-only"];
    assert_eq!(
        git(&work, &log),
        "Ann Add a test More.\n\n\ntests/test_a.py\ntests/test_n.py"
    );
    // The user's staged change is still staged, and nothing else differs.
    assert_eq!(git(&work, &["status", "--short"]), "M  pkg/__init__.py");

    let again = tree.apply(
        "--- /dev/null\n+++ b/new.py\n@@ -0,0 +1 @@\n+x\n",
        placement,
    );
    assert_eq!(
        again.unwrap(),
        Err("the branch issue/7 already exists".to_owned())
    );
    assert!(!work.join("new.py").exists());
}

#[test]
fn failed_commit_leaves_files_and_index() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    // Another git holds the lock of the branch.
    write(&work, ".git/refs/heads/main.lock", "");
    let placement = Placement {
        branch: None,
        message: Some("Add a test"),
    };
    assert!(find(&work).apply(PATCH, placement).is_err());
    assert_eq!(git(&work, &["status", "--short"]), "");
}

#[test]
fn failed_switch_leaves_no_branch() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    // Another git holds the lock of HEAD.
    write(&work, ".git/HEAD.lock", "");
    for message in [None, Some("Add a test")] {
        let placement = Placement {
            branch: Some("issue/7"),
            message,
        };
        assert!(find(&work).apply(PATCH, placement).is_err());
        assert_eq!(git(&work, &["status", "--short"]), "");
        assert_eq!(git(&work, &["branch", "--list", "issue/*"]), "");
    }
}

#[test]
fn merge_in_progress_gets_no_commit_or_branch() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    let first = git(&work, &["rev-parse", "HEAD"]);
    git(&work, &["checkout", "-q", "-b", "other"]);
    write(&work, "other.txt", "x\n");
    commit(&work, "theirs");
    git(&work, &["checkout", "-q", "main"]);
    git(&work, &["merge", "-q", "--no-ff", "--no-commit", "other"]);
    let tree = find(&work);
    for placement in [
        Placement {
            branch: Some("issue/7"),
            message: None,
        },
        Placement {
            branch: None,
            message: Some("Add a test"),
        },
    ] {
        let refused = tree.apply(PATCH, placement).unwrap();
        assert_eq!(refused, Err("a merge is in progress".to_owned()));
    }
    assert_eq!(git(&work, &["branch", "--show-current"]), "main");
    assert_eq!(git(&work, &["rev-parse", "HEAD"]), first);
    // The test alone does not affect the merge.
    assert_eq!(tree.apply(PATCH, Placement::default()).unwrap(), Ok(None));
}

#[test]
fn edited_patch_contains_edit() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    let tree = find(&work);
    let edit = |path: &str, text: &str| match path {
        "tests/test_a.py" => Ok(text.replace("def test_b", "@mark\ndef test_b")),
        _ => Ok(text.to_owned()),
    };
    let edited = tree.edited_patch(PATCH, &edit).unwrap().unwrap();
    assert!(edited.contains("+@mark\n+def test_b"), "{edited}");
    assert_eq!(tree.apply(&edited, Placement::default()).unwrap(), Ok(None));
    let text = std::fs::read_to_string(work.join("tests/test_a.py")).unwrap();
    assert!(
        text.ends_with("\n\n\n@mark\ndef test_b():\n    assert False\n"),
        "{text}"
    );
    assert!(work.join("tests/test_n.py").exists());
    let refused = tree.edited_patch(PATCH, &|_, _| Err("no".to_owned()));
    assert!(refused.unwrap().is_err());
}

/// Adds a bare repository as the remote `origin`. Returns its folder.
fn add_origin(place: &TestRepository, work: &Path) -> PathBuf {
    let origin = place.path("origin.git");
    let (from, to) = (work.to_str().unwrap(), origin.to_str().unwrap());
    git(work, &["clone", "-q", "--bare", from, to]);
    git(work, &["remote", "add", "origin", &format!("file://{to}")]);
    git(work, &["fetch", "-q", "origin"]);
    origin
}

#[test]
fn pushed_branch_leaves_work_tree_alone() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    let origin = add_origin(&place, &work);
    let base = git(&work, &["rev-parse", "HEAD"]);
    // The user works on another branch, on the file that the patch changes.
    git(&work, &["checkout", "-q", "-b", "mine"]);
    write(&work, "tests/test_a.py", "x = 1\n");
    let tree = find(&work);
    let remote = tree.remote("origin").unwrap().unwrap();
    assert_eq!(remote.name(), "origin");
    assert!(tree.remote("other").unwrap().is_none());
    assert_eq!(tree.check_is_on_remote(&base, &remote).unwrap(), Ok(()));
    assert_eq!(tree.check_new_branch("issue/7").unwrap(), Ok(()));

    let branch = NewBranch {
        name: "issue/7",
        base: &base,
        message: "Add a test\n",
    };
    let commit = tree.create_branch(branch, PATCH).unwrap().unwrap();
    assert_eq!(git(&work, &["rev-parse", "issue/7^"]), base);
    assert_eq!(git(&work, &["branch", "--show-current"]), "mine");
    assert_eq!(git(&work, &["status", "--short"]), "M tests/test_a.py");
    let again = tree.create_branch(branch, PATCH).unwrap();
    assert_eq!(again, Err("the branch issue/7 already exists".to_owned()));
    assert_eq!(tree.check_new_branch("issue/7").unwrap(), again.map(drop));

    let on_origin = || git(&origin, &["branch", "--list", "--format=%(refname:short)"]);
    assert_eq!(tree.push(&remote, "issue/7", &commit).unwrap(), Ok(()));
    assert_eq!(on_origin(), "issue/7\nmain");
    assert_eq!(
        git(&origin, &["diff", "--name-only", "main", "issue/7"]),
        "tests/test_a.py\ntests/test_n.py"
    );
    let reason = tree.push(&remote, "main", &commit).unwrap();
    assert_eq!(reason, Err("origin already has the branch main".to_owned()));
    // A branch that has moved since is not deleted.
    let deleted = tree.delete_pushed(&remote, "issue/7", &base).unwrap();
    assert!(deleted.is_err());
    assert_eq!(
        tree.delete_pushed(&remote, "issue/7", &commit).unwrap(),
        Ok(())
    );
    tree.delete_branch("issue/7", &commit).unwrap();
    assert_eq!(on_origin(), "main");
    assert_eq!(git(&work, &["branch", "--list", "issue/*"]), "");
}

#[test]
fn commit_must_be_fetched_from_remote() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    add_origin(&place, &work);
    write(&work, "own.txt", "x\n");
    let own = commit(&work, "not pushed");
    let tree = find(&work);
    let remote = tree.remote("origin").unwrap().unwrap();
    let missing = "1".repeat(40);
    for (commit, expected) in [
        (own.as_str(), "no branch that was fetched from origin"),
        (missing.as_str(), "the repository does not have the commit"),
        ("main", "`main` is not the hash of a commit"),
    ] {
        let reason = tree.check_is_on_remote(commit, &remote).unwrap();
        assert!(
            reason.as_ref().unwrap_err().starts_with(expected),
            "{reason:?}"
        );
    }
}

#[test]
fn credentials_of_remote_are_separate() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    let url = "https://ann:secret@example.org/o/n.git";
    git(&work, &["remote", "add", "origin", url]);
    let remote = find(&work).remote("origin").unwrap().unwrap();
    assert_eq!(remote.url(), "https://example.org/o/n.git");
    assert!(!format!("{remote:?}").contains("secret"));
}

#[test]
fn files_at_commit_ignore_work_tree() {
    let place = TestRepository::new();
    let work = work_tree(&place);
    let base = git(&work, &["rev-parse", "HEAD"]);
    write(&work, "tests/test_a.py", "x = 1\n");
    let files = find(&work).files_at(&base, PATCH).unwrap();
    assert_eq!(files.check(PATCH).unwrap(), Ok(()));
    let edited = files.edited_patch(PATCH, &|_, text| Ok(text.replace("test_b", "test_c")));
    assert!(edited.unwrap().unwrap().contains("+def test_c"));
}
