//! `testwright clover` with a real repository, an HTTP endpoint on the loopback interface, and real pytest.

mod agents;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::program::{TestDir, assert_exit_code};
use crate::support::server::{MockServer, Request, Response};

const CODE: &str = "\
class Box:
    def __init__(self, width, height):
        self.width = width
        self.height = height

    def area(self):
        return self.width * self.height


def describe(box):
    words = []
    words.append('wide' if box.width > box.height else 'high')
    words.append('large' if box.area() > 100 else 'small')
    text = ' and '.join(words)
    text = text.capitalize()
    return text + '.'


def scaled(box, factor):
    return Box(box.width * factor, box.height * factor)
";

const TESTS: &str = "\
import pytest

from shapes import Box, describe
from shapes.boxes import scaled

SEEN = []


def test_area(small):
    assert small.area() == 6
    SEEN.append(small)


def test_after_another():
    assert SEEN


@pytest.mark.skip
def test_skipped():
    assert Box(1, 1).area() == 1


class TestWords:
    limit = 'Wide and large.'

    def test_describe(self):
        box = Box(20, 10)
        assert describe(box) == self.limit
        assert box.width > box.height, 'this box has to be wide'

    @pytest.mark.parametrize('factor', [2, 3])
    def test_scaled(self, small, factor):
        larger = scaled(small, factor)
        assert larger.width == small.width * factor
";

const CONFTEST: &str = "\
import pytest

from shapes import Box


@pytest.fixture
def small():
    return Box(3, 2)
";

fn git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    command
        .current_dir(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
        .args(words)
        .env("GIT_AUTHOR_DATE", "2024-08-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2024-08-01T00:00:00Z");
    assert!(command.output().unwrap().status.success(), "{words:?}");
}

fn repository(folder: &Path) {
    let files = [
        (
            "pyproject.toml",
            "[build-system]\nrequires = [\"setuptools\"]\nbuild-backend = \"setuptools.build_meta\"\n\
             [project]\nname = \"shapes\"\nversion = \"1.0\"\n[tool.setuptools]\npackages = [\"shapes\"]\n",
        ),
        ("shapes/__init__.py", "from .boxes import Box, describe\n"),
        ("shapes/boxes.py", CODE),
        ("tests/conftest.py", CONFTEST),
        ("tests/test_boxes.py", TESTS),
    ];
    for (path, text) in files {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    git(folder, &["init", "-q"]);
    git(folder, &["add", "-A"]);
    git(folder, &["commit", "-qm", "Shapes"]);
}

/// A repository and the problems built from it.
struct CloverBench {
    place: TestDir,
}

impl CloverBench {
    fn new() -> CloverBench {
        let place = TestDir::new();
        repository(&place.path("shapes"));
        CloverBench { place }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path(name)
    }

    fn build(&self, out: &str, words: &[&str]) -> Output {
        let mut command = self.place.testwright();
        command
            .args([
                "clover",
                "build",
                "--sandbox",
                "local",
                "--workers",
                "2",
                "--seed",
                "7",
            ])
            .args(words)
            .arg("--repo")
            .arg(self.path("shapes"))
            .arg("--out")
            .arg(self.path(out));
        command.output().unwrap()
    }

    fn eval(&self, server: &MockServer, words: &[&str]) -> Output {
        self.evaluation(server, words).output().unwrap()
    }

    fn evaluation(&self, server: &MockServer, words: &[&str]) -> Command {
        let mut command = self.place.testwright();
        command
            .args(["clover", "eval"])
            .arg(self.path("problems"))
            .args([
                "--sandbox",
                "local",
                "--workers",
                "2",
                "--test-seconds",
                "10",
                "--json",
            ])
            .args(words)
            .arg("--out")
            .arg(self.path("answers"))
            .env("TESTWRIGHT_MODEL_BASE_URL", format!("{}/v1", server.url));
        command
    }

    fn lines(&self, path: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(path)).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn str<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap()
}

fn golden(problem: &Value) -> String {
    let (text, question) = (&problem["text"], &problem["question"]);
    match str(problem, "task") {
        "assertion" => ["prefix", "reference", "suffix"]
            .map(|part| str(question, part))
            .concat(),
        _ => ["before", "header", "body", "after"]
            .map(|part| str(text, part))
            .concat(),
    }
}

/// Returns test files that cheat, with the expected reason for rejection.
fn cheats(problem: &Value) -> Vec<(String, &'static str)> {
    let text = &problem["text"];
    let with = |imports: &str, body: &str| {
        let indent = str(text, "indent");
        let lines: String = body
            .lines()
            .map(|line| format!("{indent}{line}\n"))
            .collect();
        let parts = [
            str(text, "before"),
            str(text, "header"),
            &lines,
            str(text, "after"),
        ];
        format!("{imports}{}", parts.concat())
    };
    let unmet = match str(problem, "task") {
        "target" => "does not call",
        _ => "does not cover",
    };
    let qualified = problem["question"]["qualified_name"]
        .as_str()
        .unwrap_or("describe");
    vec![
        (with("", "assert True"), unmet),
        (
            with(
                "",
                &format!("x = '{qualified}(1)'\n# {qualified}(1)\nassert x"),
            ),
            unmet,
        ),
        (with("import sys\n", "sys.exit(0)"), "the test fails"),
        (
            with("import os\n", "getattr(os, '_' + 'exit')(0)"),
            "the process ended without a report",
        ),
        (
            with("import coverage\n", "coverage.Coverage.get_data = None"),
            "the answer uses `coverage`",
        ),
        (with("", "while True:\n    pass"), "the test timed out"),
        ("the the the . ] the".to_owned(), "the answer is not Python"),
    ]
}

/// Returns the problem that a prompt asks about.
fn problem_of_prompt(problems: &[Value], prompt: &str) -> Value {
    let is_match = |problem: &&Value| {
        let question = &problem["question"];
        match str(problem, "task") {
            "assertion" => {
                let blank = format!("{}____{}", str(question, "prefix"), str(question, "suffix"));
                prompt.contains(&format!("```python\n{blank}\n```"))
            }
            task => {
                let demand = if task == "target" {
                    "it has to call"
                } else {
                    "it has to run every line"
                };
                prompt.contains(demand)
                    && prompt.contains(&format!("of `{}`.", str(problem, "test")))
            }
        }
    };
    problems
        .iter()
        .find(is_match)
        .unwrap_or_else(|| panic!("{prompt}"))
        .clone()
}

/// Starts a model service. `golden` answers correctly, `cheat-N` with cheat number N.
fn model(problems: Vec<Value>) -> MockServer {
    MockServer::start(move |request: &Request| {
        let body: Value = serde_json::from_str(&request.body).unwrap();
        let prompt = body["messages"][1]["content"].as_str().unwrap();
        let problem = problem_of_prompt(&problems, prompt);
        let number = str(&body, "model").strip_prefix("cheat-");
        let code = match number.map(|number| number.parse::<usize>().unwrap()) {
            None => golden(&problem),
            Some(_) if problem["task"] == "assertion" => "assert True".to_owned(),
            Some(number) => cheats(&problem)[number].0.clone(),
        };
        let answer = format!("```python\n{code}\n```");
        Response::json(json!({
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": answer}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20},
        }))
        .with("content-type", "application/json")
    })
}

#[test]
fn golden_answers_pass_and_cheats_fail() {
    let bench = CloverBench::new();
    let output = bench.build("problems", &[]);
    assert_exit_code(&output, 0);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        table.contains("it is skipped, deselected or expected to fail"),
        "{table}"
    );
    assert!(table.contains("it fails in isolation"), "{table}");

    // A second build gives the same bytes.
    assert_exit_code(&bench.build("again", &[]), 0);
    for file in [
        "problems.jsonl",
        "sources.jsonl",
        "manifest.json",
        "problems.md",
    ] {
        let read = |folder: &str| std::fs::read_to_string(bench.path(folder).join(file)).unwrap();
        assert_eq!(read("problems"), read("again"), "{file}");
    }

    // Existing problems are not built again, and other settings are rejected.
    let output = bench.build("again", &[]);
    assert_exit_code(&output, 0);
    assert!(String::from_utf8_lossy(&output.stderr).contains("shapes: already built"));
    let output = bench.build("again", &["--max-tests", "2"]);
    assert_exit_code(&output, 2);
    let refused = String::from_utf8_lossy(&output.stderr);
    assert!(
        refused.contains("its problems were built with other settings"),
        "{refused}"
    );

    let problems = bench.lines("problems/problems.jsonl");
    let of = |task: &str| problems.iter().filter(|p| p["task"] == task).count();
    assert!(of("assertion") >= 4, "{table}");
    // The class of a fixture's value is unknown.
    assert_eq!(of("target"), 2, "{table}");
    assert_eq!(of("blocks"), 1, "{table}");
    let block = problems.iter().find(|p| p["task"] == "blocks").unwrap();
    assert_eq!(str(block, "test"), "TestWords::test_describe");
    let first = &block["question"]["blocks"][0];
    assert_eq!((&first["first"], &first["last"]), (&json!(11), &json!(16)));
    assert!(!str(&block["text"], "before").contains("test_area"));

    let server = model(problems.clone());
    let words = ["--models", "golden", "--context", "po,4k,64k"];
    let output = bench.eval(&server, &words);
    assert_exit_code(&output, 0);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    for row in report["rows"].as_array().unwrap() {
        assert_eq!(row["success"]["rate"], json!(1.0), "{row}");
        assert_eq!(row["executed"]["rate"], json!(1.0), "{row}");
    }
    assert_eq!(report["rows"].as_array().unwrap().len(), 7);
    let calls = server.requests(|_| ()).len();
    assert_exit_code(&bench.eval(&server, &words), 0);
    assert_eq!(
        server.requests(|_| ()).len(),
        calls,
        "nothing is asked twice"
    );
    // Without a context, prompts show no code and do not name the target's file.
    let prompts = server.requests(|request| request.body.clone());
    assert!(
        prompts
            .iter()
            .any(|prompt| prompt.contains("### shapes/boxes.py"))
    );
    let alone = |prompt: &&String| prompt.contains("it has to call") && !prompt.contains("### ");
    assert!(prompts.iter().filter(alone).count() >= 2);
    assert!(
        prompts
            .iter()
            .filter(alone)
            .all(|prompt| !prompt.contains("`shapes/boxes.py`"))
    );

    let count = cheats(block).len();
    let names: Vec<String> = (0..count).map(|n| format!("cheat-{n}")).collect();
    let output = bench.eval(&server, &["--models", &names.join(","), "--context", "64k"]);
    assert_exit_code(&output, 0);
    let judged = bench.lines("answers/judgements.jsonl");
    let judged: Vec<&Value> = judged
        .iter()
        .filter(|j| str(j, "system") != "single-call@golden")
        .collect();
    assert_eq!(judged.len(), count * problems.len());
    for judgement in judged {
        assert_eq!(judgement["success"], json!(false), "{judgement}");
        let reason = str(judgement, "reason");
        let id = str(judgement, "problem");
        let problem = problems.iter().find(|p| str(p, "id") == id).unwrap();
        let number = str(judgement, "system").strip_prefix("single-call@cheat-");
        let number: usize = number.unwrap().parse().unwrap();
        let expected = match str(problem, "task") {
            "assertion" => "",
            _ => cheats(problem)[number].1,
        };
        assert!(
            !reason.is_empty() && reason.contains(expected),
            "{judgement}"
        );
        let class = match number {
            4 if !expected.is_empty() => "refused",
            6 if !expected.is_empty() => "gibberish",
            _ => continue,
        };
        assert_eq!(judgement["class"], class, "{judgement}");
    }
    let page = std::fs::read_to_string(bench.path("answers").join("report.html")).unwrap();
    assert!(page.contains("cheat-3"));
}
