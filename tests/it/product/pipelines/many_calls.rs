//! Pipelines with many model calls.

use serde_json::Value;

use super::{TEST, block, generated, localized, of_kind, run, stages};
use crate::support::program::{TestDir, assert_exit_code, text_reply};

#[test]
fn auto_code_rover_corrects_failed_patches() {
    let place = TestDir::new();
    let wrong = "<file>tests/test_slug.py</file>\n<original>\nimport nothing\n</original>\n<patched>\nx\n</patched>\n";
    let right = format!(
        "# modification 1\n<file>tests/test_slug.py</file>\n<original></original>\n<patched>\n{TEST}</patched>\n"
    );
    let replies = [
        text_reply(
            "I look at `search_method(\"slugify\")` and search_code_in_file('max_length', 'test_slug.py'), then at \
             search_code('a'), search_code('b'), search_code('c') and search_code('d').",
        ),
        text_reply("That is enough."),
        text_reply(wrong),
        text_reply(&right),
    ];
    assert_exit_code(&run(&place, "auto-code-rover", &replies), 0);
    assert_eq!(stages(&place), ["search", "search", "write", "write"]);
    let replies = of_kind(&place, "reply");
    let last = |at: usize| {
        let messages = replies[at]["messages"].as_array().unwrap();
        messages.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(
        last(1)
            .contains("search_method(\"slugify\"): 1 found\n<file>src/slugs/slug.py</file> lines ")
            && last(1).contains("\n<code>\ndef slugify("),
        "{}",
        last(1)
    );
    assert!(
        last(1).contains("search_code(\"d\"): not run, because a message may have 5 calls"),
        "{}",
        last(1)
    );
    assert!(
        last(3).contains("the <original> is not in `tests/test_slug.py`"),
        "{}",
        last(3)
    );
}

#[test]
fn e_otter_selects_draft_matching_issue() {
    let place = TestDir::new();
    let test = |name: &str, body: &str| {
        text_reply(&format!(
            "after: END\n```python\nfrom slugs import slugify\n\n\ndef {name}():\n    {body}\n```\n"
        ))
    };
    let localized = || {
        [
            text_reply("tests/test_slug.py"),
            text_reply("tests/test_slug.py::test_words"),
            text_reply("src/slugs/slug.py"),
            text_reply("src/slugs/slug.py::slugify"),
        ]
    };
    let mut replies: Vec<Value> = localized().into();
    replies.extend([
        test("test_a", "assert slugify('a') == 'b'"),
        test("test_b", "assert slugify('a') == 'a'"),
        test("test_c", "raise ValueError"),
        test(
            "test_d",
            "assert slugify(\"How to bake bread\", max_length=7) == \"how-to\"",
        ),
        text_reply("The cut leaves a separator at the end."),
    ]);
    replies.extend(localized());
    replies.extend([
        test("test_e", "assert slugify('a') == 'c'"),
        text_reply("I have none."),
        text_reply("NO: it asks for another letter"),
        text_reply("NO"),
        text_reply("YES"),
        text_reply("NO"),
    ]);
    assert_exit_code(&run(&place, "e-otter-plus-plus", &replies), 0);
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(patch.contains("def test_d"), "{patch}");
}

#[test]
fn assert_flip_restarts_without_passing_test() {
    let wrong = TEST.replace("\"how-to\"", "\"how-to-\"");
    let place = TestDir::new();
    // The first attempt and ten more give the same reply.
    let mut replies = vec![text_reply(&block(TEST)); 11];
    replies.extend([
        text_reply(&block(&wrong)),
        text_reply(&block(TEST)),
        text_reply("YES"),
    ]);
    assert_exit_code(&run(&place, "assert-flip", &replies), 0);
    let replies = of_kind(&place, "reply");
    let last_message =
        |at: usize| replies[at]["messages"].as_array().unwrap().last().unwrap()["content"].clone();
    let again = last_message(11).as_str().unwrap().to_owned();
    assert!(
        again.starts_with("An earlier attempt was not good enough:")
            && again.contains("It does not pass on the code as it is:"),
        "{again}"
    );
}

#[test]
fn otter_writes_new_file_without_tests() {
    let place = TestDir::new();
    let [_, _, files, functions] = localized();
    let replies = [
        files,
        functions,
        text_reply("read src/slugs/slug.py::slugify"),
        // This reply accepts the plan unchanged.
        text_reply("Satisfied."),
        generated(&format!("from slugs import slugify\n\n\n{TEST}")),
    ];
    assert_exit_code(&run(&place, "otter:tests=off", &replies), 0);
    let patch = std::fs::read_to_string(place.path("out/test.patch")).unwrap();
    assert!(patch.contains("/tests/test_issue.py\n"), "{patch}");
    let plans = of_kind(&place, "stage").into_iter();
    let plans: Vec<Value> = plans.filter(|stage| stage["stage"] == "plan").collect();
    assert_eq!(
        plans[1]["result"],
        "satisfied: read src/slugs/slug.py::slugify"
    );
}
