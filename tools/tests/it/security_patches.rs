//! Test patches that change the tested code, or the environment of other tests.

use serde_json::{Value, json};

use crate::project::Project;
use crate::toolbox::Client;

/// Returns the result of `submit` after a shell command.
fn submitted(files: &[(&str, &str)], prepare: &str) -> (String, Value) {
    let project = Project::new(files);
    let mut client = Client::start(&project);
    client.call("shell", &json!({ "command": prepare }));
    client.call("submit", &json!({}))
}

/// Returns the reverted files, with the reasons.
fn dropped(data: &Value) -> Vec<(&str, &str)> {
    (data["files"].as_array().unwrap().iter())
        .filter(|file| file["kept"] == false)
        .map(|file| {
            (
                file["path"].as_str().unwrap(),
                file["reason"].as_str().unwrap(),
            )
        })
        .collect()
}

/// Creates a test that passes on the current code.
const NEW: &str =
    "printf 'import pkg\\n\\ndef test_new():\\n    assert pkg.half(4) == 2\\n' > tests/test_new.py";

#[test]
fn code_in_test_folder_is_reverted() {
    let files = [
        (
            "pkg/__init__.py",
            "from .testing import finish\n\ndef half(n):\n    return finish(n // 2)\n",
        ),
        ("pkg/testing/__init__.py", "def finish(n):\n    return n\n"),
        ("tests/helpers.py", "EMPTY = ''\n"),
        (
            "tests/test_a.py",
            "import pkg\n\ndef test_old():\n    assert pkg.half(0) == 0\n",
        ),
    ];
    let prepare = format!(
        "{NEW}; printf 'def finish(n):\\n    return n + 1\\n' > pkg/testing/__init__.py; echo 'MORE = 1' >> tests/helpers.py"
    );
    let (_, data) = submitted(&files, &prepare);
    let expected = "the code under test uses it; only test files may change";
    assert_eq!(dropped(&data), [("pkg/testing/__init__.py", expected)]);
    let outcomes: Vec<&str> = (data["old"]["tests"].as_array().unwrap().iter())
        .map(|test| test["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(outcomes, ["passed"], "the code is judged as it was");
}

const SLUGS: [(&str, &str); 2] = [
    ("pkg/__init__.py", "def half(n):\n    return n // 2\n"),
    (
        "tests/test_a.py",
        "import pkg\n\ndef test_old():\n    assert pkg.half(4) == 2\n",
    ),
];

#[test]
fn module_that_shadows_package_is_refused() {
    let prepare = format!(
        "{NEW}; printf 'def half(n):\\n    return 3\\n' > tests/pkg.py; echo 'X = 1' > tests/helpers.py"
    );
    let (_, data) = submitted(&SLUGS, &prepare);
    let expected = "tests would import it in the place of `pkg`; give it another name";
    assert_eq!(dropped(&data), [("tests/pkg.py", expected)]);
    assert_eq!(data["problems"][0]["kind"], "shadows");
    assert_eq!(data["problems"].as_array().unwrap().len(), 1);
}

#[test]
fn tests_beside_shared_files_run_twice() {
    let outcomes = |data: &Value, of: &str| -> Vec<(String, String)> {
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        (data["neighbours"][of]["tests"].as_array().unwrap().iter())
            .map(|test| (word(&test["id"]), word(&test["outcome"])))
            .collect()
    };
    let one = |outcome: &str| vec![("tests/test_a.py::test_old".to_owned(), outcome.to_owned())];
    let prepare =
        format!("{NEW}; printf 'import pkg\\npkg.half = lambda n: 3\\n' > tests/__init__.py");
    let (_, data) = submitted(&SLUGS, &prepare);
    assert_eq!(dropped(&data), []);
    assert_eq!(data["neighbours"]["shared"], json!(["tests/__init__.py"]));
    assert_eq!(outcomes(&data, "before"), one("passed"));
    assert_eq!(outcomes(&data, "now"), one("failed"));
    // Files in its own new folder do not affect other tests.
    let prepare = "mkdir tests/new; touch tests/new/__init__.py tests/data.txt; \
                   printf 'def test_x():\\n    assert 0\\n' > tests/new/test_x.py";
    let (_, data) = submitted(&SLUGS, prepare);
    assert_eq!(dropped(&data), []);
    assert_eq!(data.get("neighbours"), None);
}

/// A test file for a `conftest.py` is not itself one.
#[test]
fn test_conftest_files_are_allowed() {
    let files = [
        ("tests/test_conftest.py", "def test_old():\n    pass\n"),
        SLUGS[0],
        SLUGS[1],
    ];
    let prepare = "printf '\\ndef test_new():\\n    assert 0\\n' >> tests/test_conftest.py";
    let (_, data) = submitted(&files, prepare);
    assert_eq!(dropped(&data), []);
    assert_eq!(
        data["contributed"][0]["id"],
        "tests/test_conftest.py::test_new"
    );
}
