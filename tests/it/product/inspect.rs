//! Tests of `testwright inspect`.

use crate::support::program::{TestDir, assert_exit_code, example, text_reply};

#[test]
fn inspect_prints_run() {
    let place = TestDir::new();
    let model = place.recording(&[text_reply("I would rather not.")]);
    let words = ["--approach", "zero-shot", "--model", &model];
    assert_exit_code(&place.run_example(&words).output().unwrap(), 1);
    let inspect = |folder: &std::path::Path| {
        place
            .testwright()
            .arg("inspect")
            .arg(folder)
            .output()
            .unwrap()
    };
    let output = inspect(&place.path("out"));
    assert_exit_code(&output, 0);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in [
        "by zero-shot with replay-by-order:",
        "== Outcome\nno test: the model's reply cannot be used",
        "1 model call (0 failed, 0 malformed)",
        "== Tokens\nspent on ",
        "== Issue\n",
        "== Stage retrieve\n",
        "I would rather not.",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let output = inspect(std::path::Path::new(&example("slugs")));
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("hint: pass the folder of a run or a comparison"),
        "{stderr}"
    );
}
