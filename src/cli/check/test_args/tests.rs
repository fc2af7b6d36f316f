#![allow(clippy::unwrap_used)]
use super::*;

const DIFF: &str = "--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n";

#[test]
fn tests_are_patches_or_python_files() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().join("repository");
    std::fs::create_dir_all(repository.join("tests")).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let read = |argument: &str| read_test(argument, repository.to_str().unwrap());
    let file = |path: &str, text: &str| TestInput::File {
        path: path.to_owned(),
        content: text.as_bytes().to_vec(),
    };

    let diff = write("answer.txt", DIFF);
    let draft = write("draft.py", "x = 1\n");
    let inside = write("repository/tests/test_a.py", "y = 1\n");
    let odd = write("repository/tests/a=b.py", "z = 1\n");
    assert_eq!(read(&diff), Ok(TestInput::Patch(DIFF.to_owned())));
    assert_eq!(read(&inside), Ok(file("tests/test_a.py", "y = 1\n")));
    assert_eq!(read(&odd), Ok(file("tests/a=b.py", "z = 1\n")));
    let placed = read(&format!("./tests/test_b.py={draft}"));
    assert_eq!(placed, Ok(file("tests/test_b.py", "x = 1\n")));

    let empty = write("empty.patch", "x = 1\n");
    let other = write("notes.txt", "notes\n");
    let outside = format!("../test_b.py={draft}");
    let prose = format!("notes.md={draft}");
    for (argument, cause) in [
        (&*draft, "it is not in the repository's folder"),
        (&*empty, "it contains no diff"),
        (&*other, "it is neither a patch nor a Python file"),
        ("no/such.patch", "the file no/such.patch does not exist"),
        ("tests/test_b.py=no.py", "the file no.py does not exist"),
        (&*outside, "it is outside the repository"),
        (&*prose, "it is not a Python file"),
    ] {
        let error = read(argument).unwrap_err();
        assert_eq!(error.cause.as_deref(), Some(cause), "{argument}");
        assert!(error.hint.is_some(), "{argument}");
    }

    // The patch of a run is relative to the root of the git repository.
    for name in ["objects", "refs"] {
        std::fs::create_dir_all(folder.path().join(".git").join(name)).unwrap();
    }
    write(".git/HEAD", "ref: refs/heads/main\n");
    let of_root = write("root.patch", &DIFF.replace("t.py", "repository/t.py"));
    for patch in [&diff, &of_root] {
        assert_eq!(
            read(patch),
            Ok(TestInput::Patch(DIFF.to_owned())),
            "{patch}"
        );
    }
}
