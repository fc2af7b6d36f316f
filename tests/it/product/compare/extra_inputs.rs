//! Comparisons of systems with extra inputs beyond the issue, as in Table 5 of SWT-bench.

use serde_json::{Value, json};

use super::*;

const PLAIN: &str = "zero-shot-plus";
const TESTS: &str = "zero-shot-plus:given-tests=on";
const GOLDEN: &str = "zero-shot-plus:given-patch=on:given-files=on";
const OTHER: &str = "zero-shot-plus:given-patch=on:given-files=on:other-patch=on";

/// A code patch that does not fix the bug.
const WRONG: &str = "--- a/pkg/calc.py\n+++ b/pkg/calc.py\n@@ -1,3 +1,3 @@\n def add(a, b):\n     if b < 0:\n\
                     -        return a + b + 1\n+        return a + b + 2\n";

fn patches(bench: &ComparisonBench, name: &str, ids: &[&str], patch: &str) -> String {
    let path = bench.place.path(name);
    let of = |id: &&str| json!({"instance_id": id, "model_name_or_path": "repairer", "model_patch": patch});
    lines(&path, &ids.iter().map(of).collect::<Vec<Value>>());
    path.display().to_string()
}

/// Returns the prompt of each run by folder.
fn prompts(folder: &Path) -> BTreeMap<String, String> {
    let runs = glob(folder);
    let prompt_of = |path: &PathBuf| {
        let text = std::fs::read_to_string(path.join("trajectory.jsonl")).unwrap();
        let events = text
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let reply = events
            .into_iter()
            .find(|event| event["event"] == "reply")
            .unwrap();
        reply["messages"][1]["content"].as_str().unwrap().to_owned()
    };
    let name = |path: &PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
    runs.iter()
        .map(|path| (name(path), prompt_of(path)))
        .collect()
}

/// Returns the folders of the runs.
fn glob(folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.join("runs")];
    for _ in 0..4 {
        let inside = |folder: &PathBuf| {
            let entries = std::fs::read_dir(folder).unwrap();
            entries
                .map(|entry| entry.unwrap().path())
                .collect::<Vec<_>>()
        };
        folders = folders.iter().flat_map(inside).collect();
    }
    folders
}

#[test]
fn extra_inputs_are_marked_in_report() {
    let (server, bill) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&server);
    let ids = ["example__sums-1", "example__sums-2"];
    let file = patches(&bench, "wrong.jsonl", &ids, WRONG);
    let approaches = [PLAIN, TESTS, GOLDEN, OTHER].join(",");
    let first = ["--models", "m", "--approaches", PLAIN];
    let words = [
        "--models",
        "m",
        "--approaches",
        &approaches,
        "--code-patches",
        &file,
    ];
    // Systems with extra inputs can be added to a comparison.
    assert_exit_code(&bench.compare("out", &first).output().unwrap(), 0);
    let output = bench.compare("out", &words).output().unwrap();
    assert_exit_code(&output, 0);
    let marked = text(&output.stdout);
    assert!(
        marked.contains("(given: other code patch, files of the other code patch)"),
        "{marked}"
    );

    let folder_prompts = prompts(&bench.out("out"));
    assert_eq!(folder_prompts.len(), 8);
    for (folder, prompt) in &folder_prompts {
        let is = |option: &str| folder.contains(&format!("{option}=on"));
        assert_eq!(prompt.contains("<patch>"), is("given-patch"), "{folder}");
        assert_eq!(prompt.contains("a + b + 2"), is("other-patch"), "{folder}");
        assert_eq!(
            prompt.contains("def total"),
            is("given-patch") && !is("other-patch")
        );
        assert_eq!(
            prompt.contains("Your test goes into this file"),
            is("given-tests")
        );
        // Golden tests are never in a prompt.
        assert!(!prompt.contains("test_negative"), "{prompt}");
    }

    let plan = bench.json("out", "comparison.json");
    let extra_inputs = &plan["instances"][0]["extra_inputs"];
    assert_eq!(extra_inputs["test_files"], json!(["tests/test_calc.py"]));
    assert_eq!(extra_inputs["golden_patch"].as_str().unwrap().len(), 64);
    assert_ne!(extra_inputs["golden_patch"], extra_inputs["other_patch"]);
    assert_eq!(plan["code_patches"], "repairer");
    assert_eq!(plan["systems"][1]["extra_inputs"], json!(["test files"]));
    let report = bench.json("out", "report.json");
    // Systems with extra inputs are paired with each other, and with the others only in the ablations.
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 3);
    assert!(pairs.iter().all(|pair| pair["first"] != "zero-shot-plus@m"));
    assert_eq!(report["ablations"].as_array().unwrap().len(), 3);
    let markdown = std::fs::read_to_string(bench.out("out").join("report.md")).unwrap();
    assert!(
        markdown.contains("have more information than the issue"),
        "{markdown}"
    );

    // The replay needs neither the file of patches nor a model.
    let (calls, before) = (bill.lock().unwrap().calls, tables(&bench.out("out")));
    std::fs::remove_file(&file).unwrap();
    let recorded = bench.out("out");
    let output = bench
        .compare("again", &["--replay", recorded.to_str().unwrap()])
        .env_remove("TESTWRIGHT_MODEL_BASE_URL")
        .output()
        .unwrap();
    assert_exit_code(&output, 0);
    assert_eq!(bill.lock().unwrap().calls, calls);
    assert_same(&before, &tables(&bench.out("again")));
    assert_eq!(prompts(&bench.out("again")), folder_prompts);

    // Other patches make it a different comparison.
    let other = patches(&bench, "wrong.jsonl", &ids, &WRONG.replace("+ 2", "+ 3"));
    assert_eq!(other, file);
    let output = bench.compare("out", &words).output().unwrap();
    assert_exit_code(&output, 2);
    let stderr = text(&output.stderr);
    assert!(
        stderr
            .contains("its systems get another code patch or other test files for example__sums-1"),
        "{stderr}"
    );
}

#[test]
fn missing_extra_input_is_rejected() {
    let (server, bill) = service(Duration::ZERO);
    let bench = ComparisonBench::new(&server);
    let some = patches(&bench, "some.jsonl", &["example__sums-2"], WRONG);
    let words = ["--models", "m", "--approaches", OTHER];
    for (more, says) in [
        (&[][..], "`other-patch` needs a file of code patches"),
        (
            &["--code-patches", &some],
            "1 of 2 instances has no patch of --code-patches: example__sums-1",
        ),
    ] {
        let output = bench
            .compare("out", &[&words[..], more].concat())
            .output()
            .unwrap();
        assert_exit_code(&output, 2);
        assert!(
            text(&output.stderr).contains(says),
            "{}",
            text(&output.stderr)
        );
        assert!(!bench.out("out").join("comparison.json").exists());
    }

    // A patch for other code is detected only on the old code. That run is left out of the rates; the others continue.
    let elsewhere = patches(
        &bench,
        "elsewhere.jsonl",
        &["example__sums-1", "example__sums-2"],
        &WRONG.replace("calc", "gone"),
    );
    let approaches = format!("{PLAIN},{OTHER}");
    let words = [
        "--models",
        "m",
        "--approaches",
        &approaches,
        "--code-patches",
        &elsewhere,
    ];
    let output = bench.compare("out", &words).output().unwrap();
    assert_exit_code(&output, 3);
    let report = bench.json("out", "report.json");
    let judged = |at: usize| {
        let system = &report["systems"][at];
        (
            system["judged"].as_u64().unwrap(),
            system["not_judged"].as_u64().unwrap(),
        )
    };
    assert_eq!((judged(0), judged(1)), ((2, 0), (0, 2)));
    let why = report["not_judged"].to_string();
    assert!(
        why.contains("pkg/gone.py: No such file or directory"),
        "{why}"
    );
    // Each of the other runs makes one call, and every fifth call fails.
    assert!(bill.lock().unwrap().calls <= 4);
}
