#![allow(clippy::unwrap_used)]
use serde_json::json;
use testwright_config::settings::Price;

use super::*;
use crate::compare::System;

fn dataset() -> Dataset {
    let instance = |number: u32| {
        let value = json!({
            "instance_id": format!("example__a-{number}"), "repo": "example/a",
            "base_commit": "abcdef", "problem_statement": "It fails.",
        });
        serde_json::from_value(value).unwrap()
    };
    Dataset {
        instances: vec![instance(1), instance(2)],
        ..Dataset::default()
    }
}

#[test]
fn estimate_uses_finished_runs_and_limits() {
    let mut settings = Settings::default();
    settings.run.max_tokens = Some(1_000_000);
    let price: Price = serde_json::from_value(json!({"prompt": 1, "completion": 4})).unwrap();
    settings.prices.insert("m".to_owned(), price);
    let variants = ["otter", "snippet"].map(|name| Variant::parse(name).unwrap());
    let systems = System::all(&variants, &[ModelName::parse("m").unwrap()]).unwrap();
    let plan = Plan::new(&dataset(), systems, 1, &settings);
    let folder = tempfile::tempdir().unwrap();
    let estimate = |max_dollars| {
        Estimate::new(&plan, folder.path(), &dataset(), &settings, max_dollars).unwrap()
    };
    let before = estimate(None);
    assert_eq!((before.runs, before.runs_left), (4, 4));
    assert_eq!(before.max_environments, 1);
    assert_eq!(
        (before.likely_dollars, before.max_dollars),
        (None, Some(8.0))
    );
    let run = json!({
        "instance_id": "example__a-1", "approach": "otter", "model": "m", "sample": 1,
        "status": "nothing_submitted", "outcome": "no test", "model_calls": 1, "failed_calls": 0,
        "malformed_calls": 0, "tool_calls": 0, "prompt_tokens": 1, "cached_tokens": 0,
        "completion_tokens": 1, "dollars": 0.25, "model_seconds": 1.0, "tool_seconds": 0.0, "stages": {},
    });
    std::fs::write(folder.path().join("runs.jsonl"), format!("{run}\n")).unwrap();
    let after = estimate(Some(3.0));
    assert_eq!((after.runs, after.runs_left), (4, 3));
    assert_eq!(
        (after.likely_dollars, after.max_dollars),
        (Some(0.25), Some(3.0))
    );
}

#[test]
fn estimate_covers_programs_and_run_limits() {
    let mut settings = Settings::default();
    settings.run.max_dollars = Some(0.5);
    let price: Price = serde_json::from_value(json!({"prompt": 1, "completion": 4})).unwrap();
    settings.prices.insert("m".to_owned(), price);
    let program = Variant::parse_with_commands("command:python my_agent.py").unwrap();
    let systems = System::all(&[program], &[ModelName::parse("m").unwrap()]).unwrap();
    let plan = Plan::new(&dataset(), systems, 1, &settings);
    let folder = tempfile::tempdir().unwrap();
    let estimate = Estimate::new(&plan, folder.path(), &dataset(), &settings, None).unwrap();
    assert_eq!((estimate.runs_left, estimate.max_dollars), (2, Some(1.0)));
}
