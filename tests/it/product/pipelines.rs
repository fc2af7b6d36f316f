//! Pipelines: approaches with a fixed order of stages and a prompt for each model call.

mod given;
mod many_calls;

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code, text_reply};

const TEST: &str = "def test_cut_leaves_no_separator_at_the_end():\n    \
                    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";

/// Formats a test as a function block.
fn block(test: &str) -> String {
    format!("diff\ntests/test_slug.py\ninsert\nEOF\n{test}end diff\n")
}

/// Returns a diff whose hunk has wrong line numbers.
fn diff() -> String {
    let added: String = TEST.lines().map(|line| format!("+{line}\n")).collect();
    format!(
        "```diff\n--- a/tests/test_slug.py\n+++ b/tests/test_slug.py\n@@ -900,2 +900,6 @@\n from slugs import slugify\n+\n+\n{added}```\n"
    )
}

fn run(place: &TestDir, approach: &str, replies: &[Value]) -> std::process::Output {
    let model = place.recording(replies);
    let arguments = ["--approach", approach, "--model", &model];
    place.run_example(&arguments).output().unwrap()
}

fn of_kind(place: &TestDir, kind: &str) -> Vec<Value> {
    let events = place.events().into_iter();
    events.filter(|event| event["event"] == kind).collect()
}

fn stages(place: &TestDir) -> Vec<String> {
    let events = of_kind(place, "stage");
    let stage = |event: &Value| event["stage"].as_str().unwrap().to_owned();
    events.iter().map(stage).collect()
}

#[test]
fn every_reply_format_is_accepted() {
    let file = format!("```python\nfrom slugs import slugify\n\n\n{TEST}```\n");
    for (approach, reply, expected_stages) in [
        ("zero-shot", diff(), &["retrieve", "write"][..]),
        ("zero-shot-plus", block(TEST), &["retrieve", "write"]),
        ("zero-shot-file", file, &["write"]),
    ] {
        let place = TestDir::new();
        let output = run(&place, approach, &[text_reply(&reply)]);
        assert_exit_code(&output, 0);
        assert_eq!(stages(&place), expected_stages, "{approach}");
        let record = place.json("run.json");
        assert_eq!(
            (&record["usage"]["steps"], &record["approach"]),
            (&json!(1), &json!(approach))
        );
        let replies = of_kind(&place, "reply");
        assert_eq!(replies[0]["purpose"], "prompt");
        let prompt = replies[0]["messages"][1]["content"].as_str().unwrap();
        // The prompt contains the code of the issue and its tests.
        let has_code = prompt.contains("<file path=\"src/slugs/slug.py\">")
            && prompt.contains("<file path=\"tests/test_slug.py\">");
        assert_eq!(has_code, approach != "zero-shot-file", "{prompt}");
        let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
        assert!(
            patch.contains("+def test_cut_leaves_no_separator_at_the_end"),
            "{patch}"
        );
    }
}

#[test]
fn repairs_and_unreadable_replies_are_recorded() {
    let place = TestDir::new();
    assert_exit_code(&run(&place, "zero-shot", &[text_reply(&diff())]), 0);
    let written = of_kind(&place, "stage")[1]["result"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        written.contains("line numbers of a hunk are wrong"),
        "{written}"
    );

    let place = TestDir::new();
    let output = run(&place, "zero-shot", &[text_reply("I would rather not.")]);
    assert_exit_code(&output, 1);
    let record = place.json("run.json");
    assert_eq!(record["outcome"], "nothing");
    let reason = record["reason"].as_str().unwrap();
    assert_eq!(
        reason,
        "the model's reply cannot be used: the reply contains no diff"
    );

    // The test is submitted all the same, and the gate's verdict is only recorded.
    let place = TestDir::new();
    let passing = block("def test_short():\n    assert slugify(\"bread\") == \"bread\"\n");
    assert_exit_code(&run(&place, "zero-shot-plus", &[text_reply(&passing)]), 1);
    assert_eq!(place.json("run.json")["outcome"], "refused");
    assert!(place.path("out/refused.patch").exists());
}

/// Returns five samples: one passes, one is unreadable, one has an error, and one occurs twice.
fn samples() -> Vec<Value> {
    let long = TEST.replace("def test_cut", "# The words are cut.\ndef test_long_cut");
    vec![
        text_reply(&block(&long)),
        text_reply("YES\nIt is the wrong value of the issue."),
        text_reply(&block(
            "def test_short():\n    assert slugify(\"bread\") == \"bread\"\n",
        )),
        text_reply("No test."),
        text_reply(&block("def test_mistake():\n    assert slugs.missing\n")),
        text_reply("NO: the name is wrong"),
        text_reply(&block(TEST)),
        text_reply("Yes."),
    ]
}

fn assert_short_one_was_chosen(place: &TestDir) {
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(patch.contains("+def test_cut_leaves"), "{patch}");
    assert!(
        !patch.contains("test_mistake") && !patch.contains("test_long_cut"),
        "{patch}"
    );
}

const LIBRO: [&str; 11] = [
    "retrieve", "write", "judge", "write", "run", "write", "write", "judge", "write", "judge",
    "choose",
];

#[test]
fn libro_submits_shortest_matching_sample() {
    let place = TestDir::new();
    let output = run(&place, "libro", &samples());
    assert_exit_code(&output, 0);
    assert_short_one_was_chosen(&place);
    assert_eq!(stages(&place), LIBRO);
    let replies = of_kind(&place, "reply");
    let judged = replies[5]["messages"][0]["content"].as_str().unwrap();
    assert!(
        judged.contains("def test_mistake") && judged.contains("NameError"),
        "{judged}"
    );

    let place = TestDir::new();
    let none = vec![text_reply("No test."); 5];
    assert_exit_code(&run(&place, "libro", &none), 1);
    assert_eq!(place.json("run.json")["outcome"], "nothing");
}

#[test]
fn assert_flip_inverts_pinned_behaviour() {
    let wrong = TEST.replace("\"how-to\"", "\"how-to-\"");
    let other = wrong.replace("max_length=7", "max_length=6");
    let place = TestDir::new();
    let replies = [
        text_reply("I cannot."),
        text_reply(&block(TEST)),
        text_reply(&block(&other.replace("how-to-", "how-to"))),
        // This test passes before and after the inversion.
        text_reply(&block(&other.replace("how-to-", "how-to"))),
        text_reply(&block(&wrong)),
        text_reply(&block(&TEST.replace("def test_cut", "def test_first_cut"))),
        text_reply("NO\nThe name is bad."),
        text_reply(&block(&wrong)),
        text_reply(&block(TEST)),
        text_reply("YES"),
    ];
    let output = run(&place, "assert-flip", &replies);
    assert_exit_code(&output, 0);
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(
        patch.contains("+def test_cut_leaves") && patch.contains("\"how-to\""),
        "{patch}"
    );
    let prompts: Vec<String> = of_kind(&place, "reply")
        .iter()
        .map(|reply| {
            let messages = reply["messages"].as_array().unwrap();
            messages.last().unwrap()["content"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    for (at, text) in [
        (1, "cannot be used: the reply contains no `diff` block"),
        (2, "does not pass on the code as it is"),
        (4, "With inverted assertions it passes"),
        (6, "def test_first_cut"),
        (7, "The name is bad."),
    ] {
        assert!(prompts[at].contains(text), "{at}: {}", prompts[at]);
    }
    // A failing test is submitted even if the validator rejects every attempt.
    let place = TestDir::new();
    let attempt = [
        text_reply(&block(&wrong)),
        text_reply(&block(TEST)),
        text_reply("NO"),
    ];
    // These are the replies of the first attempt and ten more.
    let replies: Vec<Value> = attempt.iter().cycle().take(33).cloned().collect();
    assert_exit_code(&run(&place, "assert-flip", &replies), 0);
    assert_eq!(place.json("run.json")["usage"]["steps"], 33);
}

/// A pipeline can resume from any point without repeated calls or records.
#[test]
fn pipeline_resumes_from_any_point() {
    let full_run = TestDir::new();
    assert_exit_code(&run(&full_run, "libro", &samples()), 0);
    let text = std::fs::read_to_string(full_run.path("out/trajectory.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for cut in (1..lines.len()).step_by(4) {
        let place = TestDir::new();
        std::fs::create_dir(place.path("out")).unwrap();
        let begun = format!("{}\n", lines[..cut].join("\n"));
        let file = full_run.path("replies.jsonl").display().to_string();
        let own = place.path("replies.jsonl").display().to_string();
        std::fs::write(
            place.path("out/trajectory.jsonl"),
            begun.replace(&file, &own),
        )
        .unwrap();
        let paid = of_kind(&place, "reply").len();
        place.recording(&samples()[paid..]);
        let output = place.resume();
        assert_exit_code(&output, 0);
        assert_short_one_was_chosen(&place);
        assert_eq!(
            of_kind(&place, "reply").len(),
            samples().len(),
            "cut at {cut}"
        );
        assert_eq!(stages(&place), LIBRO, "cut at {cut}");
        let usage = &place.json("run.json")["usage"];
        assert_eq!(usage["model_calls"], 8, "cut at {cut}");
    }
}

#[test]
fn recorded_pipeline_can_be_replayed() {
    let place = TestDir::new();
    assert_exit_code(&run(&place, "libro", &samples()), 0);
    let mut replay = place.testwright();
    let replayed = replay
        .args(["replay", "--json"])
        .arg(place.path("out"))
        .output()
        .unwrap();
    assert_exit_code(&replayed, 0);
}

#[test]
fn approaches_are_listed_with_stages() {
    let mut command = TestDir::new().testwright();
    let output = command.args(["approaches", "--json"]).output().unwrap();
    assert_exit_code(&output, 0);
    let all: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    let libro = all
        .iter()
        .find(|approach| approach["name"] == "libro")
        .unwrap();
    assert_eq!(libro["kind"], "pipeline");
    assert_eq!(
        libro["stages"],
        json!(["retrieve", "write", "run", "judge", "choose"])
    );
    let mut command = TestDir::new().testwright();
    let output = command.arg("approaches").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("prompts: zero-shot/system.md, zero-shot/task.md"),
        "{text}"
    );
    assert!(text.contains("model calls: 1\n"), "{text}");
}

/// Returns the replies that localize files and functions, first of the tests and then of the code.
fn localized() -> [Value; 4] {
    [
        text_reply("1. `tests/test_slug.py`\n2. tests/test_gone.py\n"),
        // One file and one function do not exist.
        text_reply(
            "tests/test_slugs.py::TestMaxLength::test_long_text_is_cut\ntests/test_slug.py::test_gone",
        ),
        text_reply("- src/slugs/slug.py\n- tests/test_slug.py"),
        text_reply("src/slugs/slug.py::slugify()"),
    ]
}

fn generated(test: &str) -> Value {
    text_reply(&format!("after: END\n```python\n{test}```\n"))
}

#[test]
fn otter_localizes_plans_and_repairs() {
    let place = TestDir::new();
    // The test has two wrong guesses: a module that lacks the name, and an undefined name.
    let guessed = "from slugs.text import to_ascii\n\n\ndef test_cut_leaves_no_separator_at_the_end():\n    \
                   assert to_ascii(\"a\") == \"a\"\n    assert truncate(\"abc\", 2) == \"ab\"\n    \
                   assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n";
    let planned = [
        text_reply("read src/slugs/slug.py::slugify\nread src/slugs/slug.py::gone"),
        text_reply(
            "Unsatisfied\nread src/slugs/slug.py::truncate\nwrite tests/test_gone.py::test_it",
        ),
        text_reply(
            "Satisfied\nread src/slugs/slug.py::slugify\nwrite tests/test_slug.py::test_cut_leaves_no_separator_at_the_end",
        ),
        generated(guessed),
    ];
    let output = run(
        &place,
        "otter",
        &[localized().to_vec(), planned.to_vec()].concat(),
    );
    assert_exit_code(&output, 0);
    let results: Vec<String> = of_kind(&place, "stage")
        .iter()
        .map(|event| event["result"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(results[0], "tests: tests/test_slug.py");
    assert_eq!(
        results[1],
        "tests: tests/test_slug.py::TestMaxLength.test_long_text_is_cut"
    );
    assert_eq!(results[3], "focal code: src/slugs/slug.py::slugify");
    let prompts: Vec<String> = of_kind(&place, "reply")
        .iter()
        .map(|reply| reply["messages"][0]["content"].as_str().unwrap().to_owned())
        .collect();
    assert!(
        prompts[5].contains("no such file or function:\n\nread src/slugs/slug.py::gone"),
        "{}",
        prompts[5]
    );
    assert!(
        prompts[6].contains("write tests/test_gone.py::test_it"),
        "{}",
        prompts[6]
    );
    assert!(
        prompts[7].contains("def slugify(") && prompts[7].contains("class TestMaxLength"),
        "{}",
        prompts[7]
    );
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(
        patch.contains("+from slugs.letters import to_ascii"),
        "{patch}"
    );
    assert!(
        patch.contains("+from slugs.slug import truncate"),
        "{patch}"
    );
    assert!(!patch.contains("slugs.text"), "{patch}");
    assert_eq!(place.json("run.json")["usage"]["steps"], 8);
}

#[test]
fn otter_modifies_existing_test() {
    let place = TestDir::new();
    let modified = "```python\ndef test_long_text_is_cut(self):\n    \
                    assert slugify(\"How to bake bread\", max_length=9) == \"how-to-ba\"\n    \
                    assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"\n```";
    let planned = [
        text_reply("read src/slugs/slug.py::slugify"),
        text_reply("Satisfied\nmodify tests/test_slug.py::TestMaxLength.test_long_text_is_cut"),
        text_reply(modified),
    ];
    let output = run(
        &place,
        "otter",
        &[localized().to_vec(), planned.to_vec()].concat(),
    );
    assert_exit_code(&output, 0);
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(
        patch.contains("+        assert slugify(\"How to bake bread\", max_length=7)"),
        "{patch}"
    );
}

#[test]
fn otter_plus_plus_submits_best_failure() {
    let place = TestDir::new();
    let passing = "def test_passes():\n    assert slugify(\"a\") == \"a\"\n";
    let error = "def test_error(gone):\n    assert slugify(\"a\")\n";
    let raises = "def test_raises():\n    slugify(\"a\", max_length=0)\n";
    let planned = [
        text_reply("read src/slugs/slug.py::slugify"),
        text_reply("Satisfied\nwrite tests/test_slug.py::test_passes"),
        generated(passing),
        generated(error),
        generated(raises),
        generated(TEST),
        text_reply("No test."),
    ];
    let output = run(
        &place,
        "otter-plus-plus",
        &[localized().to_vec(), planned.to_vec()].concat(),
    );
    assert_exit_code(&output, 0);
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(patch.contains("+def test_cut_leaves"), "{patch}");
    let stages = of_kind(&place, "stage");
    let chosen = stages.last().unwrap()["result"].as_str().unwrap();
    assert_eq!(chosen, "draft 3 of 3 that fail: an assertion");
    // The prompts contain both localizations, only tests, only focal code, or neither.
    let sees: Vec<(bool, bool)> = of_kind(&place, "reply")[7..]
        .iter()
        .map(|reply| {
            let prompt = reply["messages"][0]["content"].as_str().unwrap();
            (
                prompt.contains("# src/slugs/slug.py::"),
                prompt.contains("# tests/test_slug.py::"),
            )
        })
        .collect();
    assert_eq!(
        sees,
        [(true, true), (false, true), (true, false), (false, false)]
    );
}

#[test]
fn custom_prompts_replace_built_in_prompts() {
    let place = TestDir::new();
    std::fs::create_dir_all(place.path("prompts/zero-shot")).unwrap();
    let task = place.path("prompts/zero-shot/task.md");
    std::fs::write(&task, "In {{ repository }}: {{ issue }}\n").unwrap();
    let model = place.recording(&[text_reply(&diff())]);
    let prompts = place.path("prompts");
    let arguments = ["--approach", "zero-shot", "--model", &model, "--prompts"];
    let run = || {
        place
            .run_example(&arguments)
            .arg(&prompts)
            .output()
            .unwrap()
    };
    assert_exit_code(&run(), 0);
    let replies = of_kind(&place, "reply");
    let prompt = replies[0]["messages"][1]["content"].as_str().unwrap();
    assert!(prompt.starts_with("In slugs: "), "{prompt}");

    // A run cannot be resumed with other prompts.
    let trajectory = std::fs::read_to_string(place.path("out/trajectory.jsonl")).unwrap();
    let end = trajectory.find("{\"event\":\"ended\"").unwrap();
    std::fs::write(place.path("out/trajectory.jsonl"), &trajectory[..end]).unwrap();
    let resume = |words: &[&str]| {
        let mut resumed = place.testwright();
        resumed.args(["run", "--resume"]).arg(place.path("out"));
        resumed.args(words).output().unwrap()
    };
    let folder = prompts.to_str().unwrap();
    let refused = |output: &std::process::Output, says: &str| {
        assert_exit_code(output, 2);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(says), "{stderr}");
    };
    refused(&resume(&[]), "it was started with custom prompts");
    std::fs::write(&task, "At {{ repository }}: {{ issue }}\n").unwrap();
    refused(&resume(&["--prompts", folder]), "or they were changed");
    std::fs::write(&task, "In {{ repository }}: {{ issue }}\n").unwrap();
    assert_exit_code(&resume(&["--prompts", folder]), 0);
    std::fs::write(&task, "{{ solution }}").unwrap();
    std::fs::remove_dir_all(place.path("out")).unwrap();
    let output = run();
    // The command fails before it builds or pays for anything.
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("zero-shot/task.md: it uses `solution`; the fields"),
        "{stderr}"
    );
    assert!(!place.path("out").exists());
    std::fs::rename(&task, prompts.join("zero-shot/tasks.md")).unwrap();
    let output = run();
    assert_exit_code(&output, 2);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        stderr.contains("there is no prompt `zero-shot/tasks`")
            && stderr.contains("zero-shot/task.md"),
        "{stderr}"
    );
    std::fs::remove_dir_all(&prompts).unwrap();
    assert_exit_code(&run(), 2);
}
