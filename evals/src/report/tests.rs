#![allow(clippy::unwrap_used)]

use super::*;
use crate::predictions::WarningKind;
use crate::result::Infrastructure;
use crate::verdict::{Adequacy, OldClass};

const NASTY: &str =
    "\"><img src=x onerror=alert(1)></title><script>alert(1)</script>{{ 7 * 7 }}|`x`";

/// Creates a folder with the given results.
fn folder(results: &[InstanceResult]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fill(folder.path(), results);
    folder
}

fn fill(folder: &Path, results: &[InstanceResult]) {
    std::fs::create_dir_all(folder).unwrap();
    let lines: Vec<String> = results
        .iter()
        .map(|g| serde_json::to_string(g).unwrap() + "\n")
        .collect();
    std::fs::write(folder.join(results_file::FILE), lines.concat()).unwrap();
}

fn text(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

/// Returns a result that every verdict counts as solved, with full coverage.
fn solved(id: &str) -> InstanceResult {
    let mut graded = sample::results(&["a"], 1, 1).remove(0);
    graded.instance_id = id.to_owned();
    (graded.has_patch, graded.applied, graded.infrastructure) = (true, true, None);
    graded.old_class = OldClass::Assertion;
    graded.strict.fail_to_pass = true;
    graded.swt = crate::verdict::Swt {
        success: true,
        fail_to_any: true,
        fail_to_pass: true,
        pass_to_pass: false,
    };
    graded.tdd.fail_to_pass = true;
    graded.tdd = graded.tdd.with_adequacy(Adequacy::Share(1.0));
    graded.coverage_delta = Some(1.0);
    graded.differs = Vec::new();
    graded
}

fn set(results: Vec<InstanceResult>, run: &RunMetadata) -> Summary {
    let folder = folder(&results);
    let report = write(folder.path(), run).unwrap();
    report.summary["a"].clone()
}

#[test]
fn denominators_exclude_only_infrastructure_failures() {
    let mut missing_prediction = solved("n");
    // A verdict does not count without a prediction.
    missing_prediction.has_patch = false;
    let mut does_not_apply = solved("d");
    does_not_apply.applied = false;
    let mut broken = solved("b");
    broken.infrastructure = Some(Infrastructure {
        stage: "build".to_owned(),
        cause: "no space".to_owned(),
        log: None,
        shortage: None,
    });
    let mut no_lines = solved("l");
    (no_lines.coverage_lines, no_lines.adequacy_lines) = (Some(0), Some(0));
    (no_lines.coverage_delta, no_lines.tdd) = (None, no_lines.tdd.with_adequacy(Adequacy::LeftOut));
    let mut fails = solved("f");
    (
        fails.strict.fail_to_pass,
        fails.swt.success,
        fails.tdd.fail_to_pass,
    ) = (false, false, false);
    (fails.coverage_delta, fails.tdd) = (Some(0.5), fails.tdd.with_adequacy(Adequacy::Share(0.25)));
    let results = vec![
        solved("s"),
        missing_prediction,
        does_not_apply,
        broken,
        no_lines,
        fails,
    ];
    let run = RunMetadata {
        instances: Some(7),
        predictions: vec![
            Warning {
                model_name_or_path: "a".to_owned(),
                instance_id: "acme__slugs-3".to_owned(),
                kind: WarningKind::Missing,
            },
            // This instance has a result and must not be counted twice.
            Warning {
                model_name_or_path: "a".to_owned(),
                instance_id: "n".to_owned(),
                kind: WarningKind::Missing,
            },
        ],
        ..RunMetadata::default()
    };
    let s = set(results, &run);
    assert_eq!(
        (
            s.instances,
            s.graded,
            s.infrastructure,
            s.not_graded,
            s.missing_predictions
        ),
        (7, 6, 1, 0, 2)
    );
    let share = |rate: &crate::statistics::Rate| (rate.numerator, rate.denominator);
    assert_eq!(share(&s.applicability), (3, 6));
    assert_eq!(share(&s.fail_to_pass), (2, 6));
    assert_eq!(share(&s.success), (2, 6));
    assert_eq!(share(&s.fail_to_any), (3, 6));
    assert_eq!(share(&s.tdd_fail_to_pass), (2, 6));
    // Instances without lines to cover are excluded from the coverage means, and have a factor of 1 in tddScore.
    assert_eq!((s.coverage_delta_no_lines, s.adequacy_excluded), (1, 1));
    assert_eq!(s.coverage_delta_not_measured, 0);
    assert_eq!(
        (
            s.coverage_delta_all.numerator,
            s.coverage_delta_all.denominator
        ),
        (1.5, 5)
    );
    assert_eq!(s.coverage_delta_success.mean, Some(1.0));
    assert_eq!(s.coverage_delta_success.denominator, 1);
    assert_eq!(
        (
            s.coverage_delta_other.numerator,
            s.coverage_delta_other.denominator
        ),
        (0.5, 4)
    );
    assert_eq!((s.tdd_score.numerator, s.tdd_score.denominator), (2.0, 6));
    assert_eq!((s.adequacy.numerator, s.adequacy.denominator), (1.25, 5));
}

#[test]
fn partial_set_lacks_ungraded_missing_predictions() {
    let counts = |instances| {
        let warning = Warning {
            model_name_or_path: "a".to_owned(),
            instance_id: "acme__slugs-3".to_owned(),
            kind: WarningKind::Missing,
        };
        let run = RunMetadata {
            instances: Some(instances),
            predictions: vec![warning],
            ..RunMetadata::default()
        };
        let s = set(vec![solved("s")], &run);
        let rate = &s.fail_to_pass;
        (rate.numerator, rate.denominator, s.not_graded)
    };
    assert_eq!(counts(2), (1, 2, 0));
    assert_eq!(counts(3), (1, 1, 2));
}

#[test]
fn selected_instances_include_ungraded_ones() {
    let run = RunMetadata {
        instances: Some(4),
        instance_ids: ["a-1", "a-2", "a-3", "b-1"].map(str::to_owned).into(),
        predictions: vec![Warning {
            model_name_or_path: "a".to_owned(),
            instance_id: "a-2".to_owned(),
            kind: WarningKind::Missing,
        }],
        ..RunMetadata::default()
    };
    let folder = folder(&[solved("a-1"), solved("b-1")]);
    run.write(folder.path()).unwrap();
    let report = read(folder.path(), Some("a-*")).unwrap();
    let s = &report.summary["a"];
    assert_eq!((s.instances, s.graded, s.not_graded), (3, 1, 2));
}

#[test]
fn small_report_matches_snapshot() {
    let mut results = sample::results(&["otter", "zero shot"], 14, 3);
    results[0].seconds.total = 4000.0;
    let folder = folder(&results);
    let metadata = RunMetadata {
        dataset: Some("data/some.jsonl".to_owned()),
        instances: Some(14),
        workers: Some(2),
        notes: vec!["memory is short".to_owned()],
        predictions: (1..8)
            .map(|number| Warning {
                model_name_or_path: "otter".to_owned(),
                instance_id: format!("acme__slugs-{number}"),
                kind: WarningKind::Unknown,
            })
            .collect(),
        ..RunMetadata::default()
    };
    let report = write(folder.path(), &metadata).unwrap();
    insta::assert_snapshot!(text(folder.path(), "report.md"));
    insta::assert_json_snapshot!(report.summary["otter"]);
    let read: GradingReport = serde_json::from_str(&text(folder.path(), "report.json")).unwrap();
    assert_eq!(read.summary["otter"].graded, 14);
    let overlap = |report: &GradingReport| report.comparison.clone().unwrap().overlap;
    assert_eq!(overlap(&read), overlap(&report));
    assert_eq!(read.run, metadata);
}

#[test]
fn reports_are_deterministic() {
    let mut results = sample::results(&["a", "b"], 20, 5);
    let first = folder(&results);
    write(first.path(), &RunMetadata::default()).unwrap();
    results.reverse();
    let second = folder(&results);
    write(second.path(), &RunMetadata::default()).unwrap();
    write(second.path(), &RunMetadata::default()).unwrap();
    let names = ["report.json", "report.md", "report.html", "results.csv"];
    for name in names {
        assert_eq!(
            text(first.path(), name),
            text(second.path(), name),
            "{name}"
        );
    }
    // Beside these files, there are the results themselves and the folder of tables.
    let files = std::fs::read_dir(second.path()).unwrap().count();
    assert_eq!(files, names.len() + 2);
}

#[test]
fn report_page_escapes_data() {
    let mut results = sample::results(&["a", NASTY], 6, 2);
    for graded in &mut results {
        graded.instance_id += NASTY;
        graded.repo = NASTY.to_owned();
        graded.strict.reason = NASTY.to_owned();
        graded.differs = vec![NASTY.to_owned()];
        graded.notes = vec![NASTY.to_owned()];
        graded
            .logs
            .insert(NASTY.to_owned(), "javascript:alert(1)".to_owned());
        graded.infrastructure = Some(Infrastructure {
            stage: NASTY.to_owned(),
            cause: NASTY.to_owned(),
            log: Some(format!("logs/{NASTY}")),
            shortage: None,
        });
    }
    results.extend(sample::results(&[NASTY], 6, 2));
    let metadata = RunMetadata {
        dataset: Some(NASTY.to_owned()),
        notes: vec![NASTY.to_owned()],
        ..RunMetadata::default()
    };
    let folder = folder(&results);
    write(folder.path(), &metadata).unwrap();
    let page = text(folder.path(), "report.html");
    assert_eq!(page.matches("<script").count(), 1);
    assert_eq!(page.matches("<title>Evaluation").count(), 1);
    for wrong in [
        "<img",
        "alert(1)</script",
        "\"javascript:",
        "onerror=\"",
        "49|",
    ] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    let markdown = text(folder.path(), "report.md");
    assert!(
        !markdown.contains("<img") && !markdown.contains("}}|"),
        "{markdown}"
    );
}

#[test]
fn report_page_is_self_contained() {
    let folder = folder(&sample::results(&["a"], 8, 2));
    write(folder.path(), &RunMetadata::default()).unwrap();
    let page = text(folder.path(), "report.html");
    for wrong in ["http://", "https://", " src=", "@import", "url("] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    let script = page.split_once("<script>").unwrap().1;
    let script = script.split_once("</script>").unwrap().0;
    use base64::Engine as _;
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(script);
    let digest = base64::engine::general_purpose::STANDARD.encode(digest);
    let digest = digest.replace('/', "&#x2f;");
    assert!(
        page.contains(&format!("script-src &#x27;sha256-{digest}"))
            || page.contains(&format!("script-src 'sha256-{digest}'"))
    );
}

#[test]
fn results_link_to_their_logs() {
    let results = sample::results(&["a"], 90, 2);
    let folder = folder(&results);
    write(folder.path(), &RunMetadata::default()).unwrap();
    let page = text(folder.path(), "report.html");
    for graded in &results {
        let log = format!(
            "href=\".&#x2f;logs&#x2f;a&#x2f;{}&#x2f;old.txt\"",
            graded.instance_id
        );
        assert!(page.contains(&log), "{log}");
    }
    assert!(results.iter().any(|g| g.infrastructure.is_some()));
    assert!(page.contains("href=\".&#x2f;logs&#x2f;build&#x2f;environment.txt\""));
}

#[test]
fn folders_are_compared_on_common_instances() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    let mut lost = solved("lost");
    lost.strict.fail_to_pass = false;
    let mut broken = solved("broken");
    broken.infrastructure = Some(Infrastructure {
        stage: "old".to_owned(),
        cause: "killed".to_owned(),
        log: None,
        shortage: None,
    });
    fill(
        &first,
        &[solved("x"), solved("y"), solved("lost"), solved("broken")],
    );
    fill(&second, &[solved("x"), lost, broken, solved("elsewhere")]);
    let report = write_comparison(&[&first, &second], place.path()).unwrap();
    let names: Vec<&String> = report.summary.keys().collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names[0].starts_with("a (") && names[0].ends_with("first)"));
    let comparison = report.comparison.unwrap();
    let pair = &comparison.pairs[0];
    assert_eq!((pair.measure, pair.instances), (Metric::FailToPass, 2));
    assert_eq!(
        (
            pair.paired.both,
            pair.paired.only_first,
            pair.paired.only_second
        ),
        (1, 1, 0)
    );
    let overlap = &comparison.overlap[0];
    assert_eq!(
        (overlap.instances, overlap.union, overlap.intersection),
        (2, 2, 1)
    );
    assert_eq!(overlap.only[names[0]], ["lost"]);
    assert_eq!(overlap.only[names[1]], Vec::<String>::new());
    let page = text(place.path(), "comparison.html");
    assert!(
        page.contains("href=\".&#x2f;first&#x2f;logs&#x2f;"),
        "logs are found from there"
    );
    assert!(!place.path().join("report.html").exists());
}

#[test]
fn median_of_even_count_is_interpolated() {
    let of = |totals: &[f64]| {
        let timed = totals.iter().enumerate().map(|(at, total)| {
            let mut graded = solved(&at.to_string());
            graded.seconds.total = *total;
            graded
        });
        let folder = folder(&timed.collect::<Vec<_>>());
        let report = write(folder.path(), &RunMetadata::default()).unwrap();
        report.details["a"].time.median
    };
    assert_eq!(of(&[9.0, 1.0, 4.0, 2.0]), Some(3.0));
    assert_eq!(of(&[9.0, 1.0, 4.0]), Some(4.0));
    // A total of 0 means that the instance never ran.
    assert_eq!(of(&[0.0]), None);
}

#[test]
fn missing_results_are_not_graded() {
    let run = RunMetadata {
        instances: Some(5),
        sets: vec!["a".to_owned(), "b".to_owned()],
        ..RunMetadata::default()
    };
    for results in [vec![], vec![solved("x"), solved("y")]] {
        let graded = results.len() as u64;
        let folder = folder(&results);
        run.write(folder.path()).unwrap();
        let report = write(folder.path(), &RunMetadata::read(folder.path()).unwrap()).unwrap();
        for (set, graded) in [("a", graded), ("b", 0)] {
            let s = &report.summary[set];
            assert_eq!(
                (s.instances, s.graded, s.not_graded),
                (5, graded, 5 - graded)
            );
            assert_eq!(s.fail_to_pass.denominator, graded);
        }
    }
}

#[test]
fn cards_and_rows_share_letters() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("z"), place.path().join("a"));
    let result_in = |set: &str, id: &str| InstanceResult {
        prediction: set.to_owned(),
        ..solved(id)
    };
    fill(&first, &[result_in("zeta", "of-zeta")]);
    fill(&second, &[result_in("alpha", "of-alpha")]);
    let report = write_comparison(&[&first, &second], place.path()).unwrap();
    let page = text(place.path(), "comparison.html");
    let (_, rows) = page.split_once("<table id=\"all\">").unwrap();
    for (letter, set) in [("A", "alpha"), ("B", "zeta")] {
        let card = format!(">{letter}</span><span class=\"name\">{set}</span>");
        assert!(page.contains(&card), "{card}");
        let row = rows
            .split_once(&format!("<th scope=\"row\">of-{set}</th>"))
            .unwrap()
            .1;
        let row = row.split_once("</td>").unwrap().0;
        assert!(row.ends_with(&format!(">{letter}</span>")), "{set}: {row}");
    }
    let pair = &report.comparison.unwrap().pairs[0];
    assert_eq!(
        (pair.first.as_str(), pair.second.as_str()),
        ("alpha", "zeta")
    );
}

#[test]
fn comparison_includes_remarks_of_folders() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    fill(&first, &[solved("x")]);
    fill(&second, &[solved("x")]);
    let odd = RunMetadata {
        predictions: vec![Warning {
            model_name_or_path: "a".to_owned(),
            instance_id: "nowhere".to_owned(),
            kind: WarningKind::Unknown,
        }],
        ..RunMetadata::default()
    };
    odd.write(&second).unwrap();
    let report = write_comparison(&[&first, &second], place.path()).unwrap();
    assert_eq!(report.notes.len(), 1, "{:?}", report.notes);
    assert!(
        report.notes[0].ends_with("second: a: the dataset has no such instance: nowhere"),
        "{:?}",
        report.notes
    );
}

#[test]
fn folder_without_results_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = write(folder.path(), &RunMetadata::default()).unwrap_err();
    assert!(error.to_string().contains(results_file::FILE), "{error}");
    fill(folder.path(), &[]);
    let report = write(folder.path(), &RunMetadata::default()).unwrap();
    assert_eq!(report.summary.len(), 0);
}
