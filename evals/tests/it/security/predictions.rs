//! Predictions with names aimed at a terminal, a path or a page, and files that replace the predictions of others.

use testwright_evals::predictions::{self, Predictions};

use super::*;

fn prediction(model: &str) -> Value {
    json!({"instance_id": "acme__slugs-1", "model_name_or_path": model, "model_patch": "diff"})
}

fn read(folder: &Folder, files: &[&[Value]]) -> Result<Vec<Predictions>, String> {
    let dataset = folder.dataset(&[instance("acme__slugs-1")]).unwrap();
    let paths: Vec<PathBuf> = (0..)
        .zip(files)
        .map(|(at, records)| {
            let lines: Vec<String> = records.iter().map(Value::to_string).collect();
            folder.file(&format!("predictions-{at}.jsonl"), lines.join("\n"))
        })
        .collect();
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let read = predictions::read(&paths, &dataset, &dataset);
    read.map(|(sets, _)| sets)
        .map_err(|error| error.to_string())
}

#[test]
fn invisible_characters_in_names_are_refused() {
    let folder = Folder::new();
    let long = "x".repeat(70_000);
    for name in UNSEEN
        .map(|unseen| format!("a{unseen}b"))
        .iter()
        .chain([&long])
    {
        let message = read(&folder, &[&[prediction(name)]]).unwrap_err();
        assert!(message.contains("`model_name_or_path`"), "{message}");
        is_fit_to_be_shown(&message);
        let mut other = prediction("a");
        other["instance_id"] = json!(name);
        let message = read(&folder, &[&[other]]).unwrap_err();
        assert!(message.contains("`instance_id`"), "{message}");
        is_fit_to_be_shown(&message);
    }
    for name in [
        "gpt-4o (run 2)",
        "/home/me/models/otter",
        "../otter",
        "Ωtter",
        "<b>otter</b>",
    ] {
        assert_eq!(
            read(&folder, &[&[prediction(name)]]).unwrap()[0].model,
            name
        );
    }
}

/// Each model is graded on every instance, so a few lines could cause millions of results.
#[test]
fn number_of_models_is_limited() {
    let folder = Folder::new();
    let many: Vec<Value> = (0..2_000)
        .map(|n| prediction(&format!("model {n}")))
        .collect();
    let message = read(&folder, &[&many]).unwrap_err();
    assert!(message.contains("models"), "{message}");
    is_fit_to_be_shown(&message);
    assert_eq!(read(&folder, &[&many[..200]]).unwrap().len(), 200);
}

/// The last prediction within a file counts, as in the public harnesses, but a file must not replace those of another.
#[test]
fn files_cannot_replace_predictions_of_others() {
    let folder = Folder::new();
    let other = json!({"instance_id": "acme__slugs-1", "model_name_or_path": "mine", "model_patch": "broken"});
    let message = read(
        &folder,
        &[
            &[prediction("mine")],
            &[prediction("theirs"), other.clone()],
        ],
    )
    .unwrap_err();
    assert!(
        message.contains("predictions-0.jsonl") && message.contains("predictions-1.jsonl"),
        "{message}"
    );
    assert!(
        message.contains("mine") && message.contains("acme__slugs-1"),
        "{message}"
    );
    let one = read(&folder, &[&[prediction("mine"), other]]).unwrap();
    let patch = one[0].by_instance["acme__slugs-1"].model_patch.as_deref();
    assert_eq!(patch, Some("broken"));
}

/// Records in every form are counted while they are parsed, even if only a small part of each is used.
#[test]
fn records_of_all_forms_are_limited() {
    let folder = Folder::new();
    let dataset = folder.dataset(&[instance("acme__slugs-1")]).unwrap();
    let message = |text: String| {
        let path = folder.file("predictions.json", text);
        let read = predictions::read(&[&path], &dataset, &dataset);
        let message = read.unwrap_err().to_string();
        is_fit_to_be_shown(&message);
        assert!(message.contains("line 1: "), "{message}");
        message
    };
    let values = format!("{{\"other\": [{}0]}}", "0,".repeat(1_000_000));
    for text in [
        values.clone(),
        format!("[{values}]"),
        format!("{{\"acme__slugs-1\": {values}}}"),
    ] {
        let message = message(text);
        let expected = "the record contains more than 1000000 values";
        assert!(message.contains(expected), "{message}");
    }
    let long = "x".repeat(65 << 20);
    let message = message(format!("{{\"acme__slugs-1\": \"{long}\"}}"));
    assert!(message.contains("longer than 64 MiB"), "{message}");
}
