#![allow(clippy::unwrap_used)]
use super::*;
use serde_json::json;

fn accepted(runner: &str, passing: &[&str]) -> AcceptedTest {
    AcceptedTest {
        folder: PathBuf::from("runs/it's"),
        location: "https://github.com/o/n".to_owned(),
        repository: "o/n".to_owned(),
        commit: None,
        title: format!("{} is\nlong", "long ".repeat(20)),
        origin: "https://github.com/o/n/issues/1".to_owned(),
        patch: String::new(),
        evidence: Box::new(Evidence {
            passing: passing.iter().map(|&id| id.to_owned()).collect(),
            ..Evidence::default()
        }),
        runner: json!({"kind": runner, "options": ["-W", "ignore me"]}),
    }
}

#[test]
fn run_command_fits_each_runner() {
    let ids = [
        "tests/a/test_x.py::C::test_f[1]",
        "tests/a/test_x.py::C::test_f[b c]",
    ];
    let folder = tempfile::tempdir().unwrap();
    let tree = WorkTree::find(folder.path().to_str().unwrap());
    let tree = tree.unwrap().unwrap();
    let root = tree.root().display();
    let command = |runner: &str| accepted(runner, &ids).how_to_run(&tree);
    for (runner, expected) in [
        (
            "pytest",
            "python -m pytest -W 'ignore me' tests/a/test_x.py::C::test_f",
        ),
        ("unittest", "python -m unittest tests.a.test_x.C.test_f"),
        (
            "django",
            "python tests/runtests.py -W 'ignore me' a.test_x.C.test_f",
        ),
        ("sympy", "python bin/test -W 'ignore me' tests/a/test_x.py"),
    ] {
        assert_eq!(command(runner)[0], format!("run: cd {root} && {expected}"));
        assert_eq!(command(runner)[1].contains("pytest"), runner == "pytest");
    }
    assert!(command("other").is_empty());
    assert!(accepted("pytest", &[]).how_to_run(&tree).is_empty());
    // The project is a folder of the work tree.
    let test = AcceptedTest {
        patch: "--- a/pkgs/b/tests/a/test_x.py\n+++ b/pkgs/b/tests/a/test_x.py\n".to_owned(),
        ..accepted("pytest", &ids)
    };
    let start = format!("run: cd {root}/pkgs/b && python -m pytest ");
    assert!(test.how_to_run(&tree)[0].starts_with(&start));
}

#[test]
fn next_steps_fit_work_tree() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test_x.py");
    let test = AcceptedTest {
        location: folder.path().display().to_string(),
        patch: "--- a/test_x.py\n+++ b/test_x.py\n@@ -1 +1 @@\n-old\n+new\n".to_owned(),
        ..accepted("pytest", &["test_x.py::test_f"])
    };
    for (text, expected) in [
        ("old\n", &["apply: ", "or: ", "run: ", "note: `python`"][..]),
        (
            "new\n",
            &["note: the test is already", "run: ", "note: `python`"],
        ),
        ("mine\n", &["note: the test does not apply to "]),
    ] {
        std::fs::write(&file, text).unwrap();
        let steps = test.next_steps();
        let fit = steps.iter().zip(expected).all(|(a, b)| a.starts_with(b));
        assert!(fit && steps.len() == expected.len(), "{text}{steps:?}");
    }
    let steps = accepted("pytest", &["test_x.py::test_f"]).next_steps();
    let expected = r"apply: testwright apply 'runs/it'\''s' --repo FOLDER";
    assert_eq!(steps, [expected]);
}

#[test]
fn refusal_repeats_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("test_x.py");
    let test = AcceptedTest {
        location: folder.path().display().to_string(),
        patch: "--- a/test_x.py\n+++ b/test_x.py\n@@ -1 +1 @@\n-old\n+new\n".to_owned(),
        ..accepted("pytest", &[])
    };
    let tree = test.work_tree().unwrap().unwrap();
    let refusal = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let applied = test.apply(&tree, &test.patch, Placement::default(), "COMMAND --xfail");
        applied.unwrap_err().render()
    };
    let error = refusal("mine\n");
    assert!(error.contains("then run `COMMAND --xfail`"), "{error}");
    let error = refusal("new\n");
    assert!(error.contains("cause: it is already applied"), "{error}");
    assert!(error.contains(" apply --reverse '/"), "{error}");
}

#[test]
fn commands_quote_names_for_shell() {
    let command = accepted("pytest", &[]).git_apply_command(Path::new("/a b"), "");
    let start = "git -C '/a b' apply '/";
    assert!(command.starts_with(start), "{command}");
    assert!(command.ends_with("/runs/it'\\''s/test.patch'"), "{command}");
}

#[test]
fn commit_message_has_short_subject_title_and_url() {
    let message = accepted("pytest", &[]).commit_message(false);
    let (subject, rest) = message.split_once('\n').unwrap();
    assert!(subject.starts_with("Add a test: long long"), "{subject}");
    assert!(subject.ends_with("long long…"), "{subject}");
    assert!(subject.chars().count() <= MAX_SUBJECT_LEN, "{subject}");
    let one_word = AcceptedTest {
        title: "x".repeat(100),
        ..accepted("pytest", &[])
    };
    assert_eq!(one_word.subject(false).chars().count(), MAX_SUBJECT_LEN);
    let title = format!("{} is\\nlong", "long ".repeat(20));
    let expected = format!("\n{title}\n\nhttps://github.com/o/n/issues/1\n");
    assert_eq!(rest, expected);
    let short = AcceptedTest {
        title: "It fails".to_owned(),
        ..accepted("pytest", &[])
    };
    let expected = "Add a test: It fails\n\nhttps://github.com/o/n/issues/1\n";
    assert_eq!(short.commit_message(false), expected);
}
