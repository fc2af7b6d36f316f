#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::Path;

use super::*;

fn task() -> Task {
    Task {
        repository: "owner/name".into(),
        issue: "Title\n\n`f(1)` returns {{ 2 }} & <3>".into(),
        workspace: "Python 3.11, pytest 8.3".into(),
        notes: vec!["graphviz is missing".into()],
    }
}

#[test]
fn every_prompt_renders() {
    insta::assert_snapshot!(
        "testwright-system",
        TestwrightSystem { max_steps: 60 }.render().unwrap()
    );
    insta::assert_snapshot!(
        "testwright-passing-first",
        PassingFirst {}.render().unwrap()
    );
    let functions = vec![
        "pkg/slug.py::Slug.shorten".to_owned(),
        "pkg/slug.py::lower".to_owned(),
    ];
    insta::assert_snapshot!(
        "testwright-code-first",
        CodeFirst { functions }.render().unwrap()
    );
    insta::assert_snapshot!(
        "cover-system",
        CoverSystem {
            max_steps: 60,
            is_given_test: false,
        }
        .render()
        .unwrap()
    );
    let test_prompt = CoverSystem {
        max_steps: 60,
        is_given_test: true,
    };
    insta::assert_snapshot!("cover-system-test", test_prompt.render().unwrap());
    insta::assert_snapshot!(
        "check-system",
        CheckSystem { max_steps: 60 }.render().unwrap()
    );
    let check = CheckTest {
        test: "--- a/t.py\n+++ b/t.py".into(),
        result: "1 test: 1 failed".into(),
    };
    insta::assert_snapshot!("check-test", check.render().unwrap());
    let cover = |test: &str, max_tokens| CoverTask {
        repository: "owner/name".into(),
        blocks: vec!["pkg/a.py, lines 2-3:\n    2  if x:\n    3      return 1".into()],
        test: test.into(),
        imports: vec!["import pytest".into(), "from pkg import a".into()],
        stub: "    def test_x(self):\n        ...".into(),
        max_tokens,
        workspace: "Python 3.11, pytest 8.3".into(),
        notes: vec!["graphviz is missing".into()],
    };
    insta::assert_snapshot!("cover-task", cover("", None).render().unwrap());
    let one_test = cover("tests/test_a.py::TestA::test_x", Some(64_000));
    insta::assert_snapshot!("cover-task-test", one_test.render().unwrap());
    insta::assert_snapshot!(
        "swe-agent-plus-system",
        SweAgentPlusSystem { max_steps: 60 }.render().unwrap()
    );
    insta::assert_snapshot!(
        "swe-agent-system",
        SweAgentSystem { max_steps: 20 }.render().unwrap()
    );
    insta::assert_snapshot!("zero-shot-system", ZeroShotSystem {}.render().unwrap());
    insta::assert_snapshot!(
        "zero-shot-plus-system",
        ZeroShotPlusSystem {}.render().unwrap()
    );
    insta::assert_snapshot!(
        "zero-shot-file-system",
        ZeroShotFileSystem {}.render().unwrap()
    );
    insta::assert_snapshot!(
        "e-otter-plus-plus-rewrite",
        EOtterRewrite {
            repository: "owner/name".into(),
            issue: "f(1) returns 2".into(),
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!(
        "auto-code-rover-system",
        AutoCodeRoverSystem {}.render().unwrap()
    );
    insta::assert_snapshot!(
        "auto-code-rover-task",
        AutoCodeRoverTask {
            repository: "owner/name".into(),
            issue: "f(1) returns 2".into(),
        }
        .render()
        .unwrap()
    );
    let more = |rounds| AutoCodeRoverMore {
        results: vec![
            "search_class(A): nothing found".into(),
            "search_method(f): 1 found\n<file>a.py</file>\n<code>\ndef f():\n</code>\n".into(),
        ],
        left: rounds,
    };
    insta::assert_snapshot!("auto-code-rover-more", more(9).render().unwrap());
    insta::assert_snapshot!("auto-code-rover-last", more(0).render().unwrap());
    insta::assert_snapshot!(
        "auto-code-rover-write",
        AutoCodeRoverWrite {}.render().unwrap()
    );
    insta::assert_snapshot!(
        "auto-code-rover-again",
        AutoCodeRoverAgain {
            problem: "the <original> is not in `a.py`".into(),
        }
        .render()
        .unwrap()
    );
    let file = |path: &str| CodeFile {
        path: path.into(),
        text: "def f():\n    return {{ 1 }}\n".into(),
    };
    insta::assert_snapshot!(
        "zero-shot-task",
        ZeroShotTask {
            repository: "owner/name".into(),
            issue: "f(1) returns 2".into(),
            code_patch: None,
            is_patch_cut: false,
            test_files: Vec::new(),
            files: vec![file("a.py"), file("b.py")],
            are_of_patch: false,
            lines_left_out: 7,
            are_numbered: true,
        }
        .render()
        .unwrap()
    );
    let test_file = |path: &str, is_new| TestFile {
        path: path.into(),
        text: if is_new { "" } else { "def test_f(): ...\n" }.into(),
        is_new,
        is_cut: false,
    };
    let full_task = ZeroShotTask {
        repository: "owner/name".into(),
        issue: "f(1) returns 2".into(),
        code_patch: Some(
            "--- a/a.py\n+++ b/a.py\n@@ -2 +2 @@\n-    return {{ 1 }}\n+    return 1".into(),
        ),
        is_patch_cut: false,
        test_files: vec![test_file("test_a.py", false)],
        files: vec![file("a.py")],
        are_of_patch: true,
        lines_left_out: 0,
        are_numbered: false,
    };
    insta::assert_snapshot!("zero-shot-task-given", full_task.render().unwrap());
    let mut cut = test_file("test_a.py", false);
    cut.is_cut = true;
    let cut_task = ZeroShotTask {
        is_patch_cut: true,
        test_files: vec![cut, test_file("test_b.py", true)],
        are_of_patch: false,
        ..full_task
    };
    insta::assert_snapshot!("zero-shot-task-given-and-cut", cut_task.render().unwrap());
    insta::assert_snapshot!(
        "libro-judge",
        LibroJudge {
            issue: "f(1) returns 2".into(),
            test: "def test_f(): ...".into(),
            failure: "AssertionError".into(),
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!("assert-flip-system", AssertFlipSystem {}.render().unwrap());
    let (issue, reply) = ("f(1) returns 2".to_owned(), "def test_f(): ...".to_owned());
    let refine = |problem: &str| AssertFlipRefine {
        reply: reply.clone(),
        problem: problem.into(),
        failure: "AssertionError".into(),
    };
    insta::assert_snapshot!("assert-flip-refine", refine("").render().unwrap());
    insta::assert_snapshot!(
        "assert-flip-refine-unread",
        refine("it holds no block").render().unwrap()
    );
    insta::assert_snapshot!(
        "assert-flip-flip",
        AssertFlipFlip {
            issue: issue.clone(),
            reply: reply.clone(),
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!(
        "assert-flip-validate",
        AssertFlipValidate {
            issue,
            reply: reply.clone(),
            failure: "AssertionError".into(),
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!(
        "assert-flip-regenerate",
        AssertFlipRegenerate {
            reply,
            reasons: "NO, it is another function".into(),
            passes_first: true,
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!("snippet-system", SnippetSystem {}.render().unwrap());
    insta::assert_snapshot!("task", task().render().unwrap());
    insta::assert_snapshot!(
        "review",
        Review {
            issue: "the issue".into(),
            python: "3.11.7".into(),
            change: "+def test_it(): ...".into(),
            used_code: "# t.py:1\nimport pkg".into(),
            outcomes: "- t.py::test_it fails (new)".into(),
            failure: "assertion: AssertionError".into(),
            code_under_test: "# pkg.py:3\ndef f(): ...".into(),
            fixes: "Candidate fix 1: with it all of them pass.".into(),
            reason: "The issue says so.".into(),
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!(
        "review-doubt",
        ReviewDoubt {
            opinion: "is not sure of them".into(),
            reason: "another function".into(),
            beyond: vec!["`assert b`: only `a` is named".into()],
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!("try-a-fix", TryAFix {}.render().unwrap());
    insta::assert_snapshot!("reason-missing", ReasonMissing {}.render().unwrap());
    insta::assert_snapshot!("nothing-tried", NothingTried {}.render().unwrap());
    insta::assert_snapshot!("skipped", Skipped { keeps_fix: true }.render().unwrap());
    insta::assert_snapshot!(
        "held-back",
        HeldBack {
            why: "the fix before it was refused".into()
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!("no-tool-call", NoToolCall { left: 2 }.render().unwrap());
    insta::assert_snapshot!("reply-cut", ReplyCut { left: 2 }.render().unwrap());
    insta::assert_snapshot!(
        "environment-repair-system",
        EnvironmentRepairSystem { tries: 6 }.render().unwrap()
    );
    let repair = EnvironmentRepairTask {
        repository: "owner/name".into(),
        date: Some("2024-03-01".into()),
        pythons: vec!["3.11".into(), "3.12".into()],
        origin: "detected from setup.py".into(),
        recipe: "python = \"3.12\"\nrequirements = [\"pytest\"]".into(),
        error: "`install the package` failed with exit code 1".into(),
        sample: None,
        log: "ModuleNotFoundError: No module named 'numpy'".into(),
        files: vec!["setup.py".into(), "tests/".into()],
        commands: vec!["tox.ini:7: commands = pytest {posargs}".into()],
    };
    insta::assert_snapshot!("environment-repair-task", repair.render().unwrap());
    insta::assert_snapshot!(
        "stuck",
        Stuck {
            replies: 3,
            why: "the same calls got the same answers".into(),
            left: 3
        }
        .render()
        .unwrap()
    );
    let last = NoToolCall { left: 1 }.render().unwrap();
    assert!(
        last.contains("1 more answer without a tool call ends"),
        "{last}"
    );
    insta::assert_snapshot!("run-before-submit", RunBeforeSubmit {}.render().unwrap());
    insta::assert_snapshot!(
        "cut",
        Cut {
            tool: "search".into(),
            lines: 40
        }
        .render()
        .unwrap()
    );
    insta::assert_snapshot!(
        "nearly-spent",
        NearlySpent {
            left: "3 steps".into()
        }
        .render()
        .unwrap()
    );
}

#[test]
fn every_prompt_of_otter_renders() {
    let (repository, issue) = ("owner/name".to_owned(), "f(1) returns 2".to_owned());
    let code = |path: &str, text: &str| CodeFile {
        path: path.into(),
        text: text.into(),
    };
    for (kind, tests) in [("tests", true), ("focal", false)] {
        let files = OtterFiles {
            repository: repository.clone(),
            issue: issue.clone(),
            tests,
            files: vec!["a.py".into(), "b/c.py".into()],
            most: 10,
        };
        insta::assert_snapshot!(format!("otter-files-{kind}"), files.render().unwrap());
        let functions = OtterFunctions {
            repository: repository.clone(),
            issue: issue.clone(),
            tests,
            files: vec![code("a.py", "  a.py::f\n  a.py::A.g"), code("b.py", "")],
        };
        insta::assert_snapshot!(
            format!("otter-functions-{kind}"),
            functions.render().unwrap()
        );
    }
    let read = code("a.py::f", "def f(x):\n    return {{ 2 }}");
    insta::assert_snapshot!(
        "otter-plan",
        OtterPlan {
            repository: repository.clone(),
            issue: issue.clone(),
            code: vec![read.clone()],
        }
        .render()
        .unwrap()
    );
    let reflect = |invalid: &[&str]| OtterReflect {
        repository: repository.clone(),
        issue: issue.clone(),
        valid: vec!["read a.py::f".into()],
        invalid: invalid.iter().map(|&action| action.to_owned()).collect(),
        code: vec![read.clone()],
    };
    insta::assert_snapshot!("otter-reflect", reflect(&[]).render().unwrap());
    insta::assert_snapshot!(
        "otter-reflect-invalid",
        reflect(&["write a.py::test_f"]).render().unwrap()
    );
    let generate = |name: &str, original: &str, structure: &str| OtterGenerate {
        repository: repository.clone(),
        issue: issue.clone(),
        code: vec![read.clone()],
        path: "test_a.py".into(),
        name: name.into(),
        original: original.into(),
        structure: structure.into(),
    };
    insta::assert_snapshot!(
        "otter-generate-new",
        generate("test_f", "", "import a\ndef test_g()")
            .render()
            .unwrap()
    );
    insta::assert_snapshot!(
        "otter-generate-modified",
        generate("", "def test_g():\n    assert a.f(2)", "")
            .render()
            .unwrap()
    );
}

#[test]
fn issue_text_is_never_a_template() {
    let text = task().render().unwrap();
    assert!(text.contains("returns {{ 2 }} & <3>"), "{text}");
}

#[test]
fn unknown_field_fails() {
    #[derive(Serialize)]
    struct Broken {}
    impl Prompt for Broken {
        const NAME: &'static str = "broken";
        const TEMPLATE: &'static str = "{{ nothing }}";
    }
    assert!(Broken {}.render().is_err());
}

fn below(folder: &Path, prefix: &str, names: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        match entry.path().is_dir() {
            true => below(&entry.path(), &format!("{prefix}{name}/"), names),
            false => names.push(format!("{prefix}{}", name.trim_end_matches(".md"))),
        }
    }
}

#[test]
fn every_template_file_is_in_the_list() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates");
    let mut files = Vec::new();
    below(&folder, "", &mut files);
    files.sort();
    let mut listed: Vec<String> = ALL.iter().map(|(name, _)| (*name).to_owned()).collect();
    listed.sort();
    assert_eq!(files, listed);
}

#[test]
fn prompts_of_clover_render() {
    let code = "import a\n\ndef test_x(b):\n    c = a.make()";
    let assertion = |is_complete, context: &str| CloverAssertion {
        repository: "owner/name".into(),
        path: "tests/test_a.py".into(),
        code: code.into(),
        assertion: "assert c.size(b) == ____".into(),
        after: if is_complete {
            String::new()
        } else {
            "def late(): pass".into()
        },
        whole: is_complete,
        context: context.into(),
    };
    let excerpt = "### a.py\ndef make():\n    return 2\n";
    insta::assert_snapshot!("clover-system", CloverSystem {}.render().unwrap());
    insta::assert_snapshot!("clover-assertion", assertion(true, "").render().unwrap());
    insta::assert_snapshot!(
        "clover-assertion-operand",
        assertion(false, excerpt).render().unwrap()
    );
    let target = |path: &str, context: &str| CloverTarget {
        repository: "owner/name".into(),
        path: "tests/test_a.py".into(),
        test: "test_x".into(),
        code: "import a\n\ndef test_x(b):\n    ...".into(),
        target_kind: "function".into(),
        target: "make".into(),
        target_path: path.into(),
        part: context.is_empty(),
        context: context.into(),
    };
    insta::assert_snapshot!("clover-target-alone", target("", "").render().unwrap());
    insta::assert_snapshot!("clover-target", target("a.py", excerpt).render().unwrap());
    let block = CodeBlock {
        path: "a.py".into(),
        first: 3,
        last: 4,
        source: "    x = 1\n    return x".into(),
    };
    let blocks = CloverBlocks {
        repository: "owner/name".into(),
        path: "tests/test_a.py".into(),
        test: "TestA::test_x".into(),
        code: "class TestA:\n    def test_x(self):\n        ...".into(),
        blocks: vec![block],
        part: false,
        context: excerpt.into(),
    };
    insta::assert_snapshot!("clover-blocks", blocks.render().unwrap());
}

#[test]
fn test_need_not_pass_without_inversion() {
    let again = AssertFlipRegenerate {
        reply: "x".into(),
        reasons: "y".into(),
        passes_first: false,
    };
    let text = again.render().unwrap();
    assert!(text.ends_with("\n\nWrite a better test."), "{text}");
}
