#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

fn dataset() -> Dataset {
    let ids = [
        "sympy__sympy-1",
        "sympy__sympy-12",
        "psf__requests-1",
        "pallets__flask-7",
    ];
    let instances = ids.map(|id| {
        serde_json::from_value(json!({
            "instance_id": id, "repo": "a/b", "base_commit": "0123abc", "problem_statement": "It"
        }))
        .unwrap()
    });
    Dataset {
        instances: instances.into(),
        ..Dataset::default()
    }
}

fn choose(selection: &Selection) -> Result<Vec<String>, String> {
    let chosen = dataset().choose(selection).map_err(|e| e.to_string())?;
    Ok(chosen
        .instances
        .into_iter()
        .map(|i| i.instance_id)
        .collect())
}

fn chosen(pattern: &str) -> Result<Vec<String>, String> {
    choose(&Selection {
        instances: Some(pattern.to_owned()),
        ..Selection::default()
    })
}

#[test]
fn selection_keeps_the_order_of_the_dataset() {
    assert_eq!(
        chosen("psf__requests-1, sympy__sympy-1,").unwrap(),
        ["sympy__sympy-1", "psf__requests-1"]
    );
    assert_eq!(
        chosen("sympy*,sympy__sympy-12").unwrap(),
        ["sympy__sympy-1", "sympy__sympy-12"]
    );
    assert_eq!(
        chosen("{psf,pallets}__*-?").unwrap(),
        ["psf__requests-1", "pallets__flask-7"]
    );
    assert_eq!(chosen("*").unwrap().len(), 4);
}

#[test]
fn unknown_id_suggests_the_nearest() {
    assert_eq!(
        chosen("psf__request-1,*zzz*,sympy__sympy-1").unwrap_err(),
        "invalid instance selection: unknown instance `psf__request-1`; did you mean `psf__requests-1`?; no instance matches `*zzz*`"
    );
    let error = chosen("pallets_flask-*").unwrap_err();
    assert!(
        error.ends_with("matches `pallets_flask-*`; did you mean `pallets__flask-7`?"),
        "{error}"
    );
    assert!(chosen("a[").unwrap_err().contains("`a[` is not a glob"));
    assert_eq!(
        chosen(" , ").unwrap_err(),
        "invalid instance selection: the selection is empty"
    );
}

#[test]
fn every_instance_is_in_one_shard() {
    let shard = |text: &str| {
        let shard = text.parse().unwrap();
        choose(&Selection {
            shard: Some(shard),
            ..Selection::default()
        })
        .unwrap_or_default()
    };
    let mut all: Vec<String> = ["1/3", "2/3", "3/3"].into_iter().flat_map(shard).collect();
    all.sort_unstable();
    let mut expected = chosen("*").unwrap();
    expected.sort_unstable();
    assert_eq!(all, expected);
    for text in ["0/3", "4/3", "1/0", "1", "a/3"] {
        assert!(text.parse::<Shard>().is_err(), "{text}");
    }
}

#[test]
fn sample_depends_on_seed_and_exclusions() {
    let sample = |seed, exclude: Option<&str>| {
        choose(&Selection {
            sample: Some(2),
            seed,
            exclude: exclude.map(str::to_owned),
            ..Selection::default()
        })
        .unwrap()
    };
    assert_eq!(sample(1, None), sample(1, None));
    let samples: BTreeSet<Vec<String>> = (0..20).map(|seed| sample(seed, None)).collect();
    assert!(samples.len() > 1);
    assert!(samples.iter().all(|ids| ids.len() == 2));
    let rest = sample(0, Some("sympy*"));
    assert_eq!(rest, ["psf__requests-1", "pallets__flask-7"]);
}

#[test]
fn file_of_patterns_is_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "# a comment\n\n psf__requests-1\nsympy*2\n").unwrap();
    let pattern = format!("@{}", file.path().display());
    let expected = ["sympy__sympy-12", "psf__requests-1"];
    assert_eq!(chosen(&pattern).unwrap(), expected);
    // Editors on Windows begin a file with a mark.
    std::fs::write(file.path(), "\u{feff}psf__requests-1\r\nsympy*2\r\n").unwrap();
    assert_eq!(chosen(&pattern).unwrap(), expected);
    assert!(
        chosen("@/no/such/file")
            .unwrap_err()
            .contains("read /no/such/file")
    );
}
