#![allow(clippy::unwrap_used)]
use clap::Subcommand as _;

use super::*;

#[test]
fn size_lists_all_that_prune_frees() {
    let environment = CachedEnvironment {
        name: "env-1".to_owned(),
        repository: "o/n".to_owned(),
        commit: None,
        last_used: None,
        python: None,
        origin: "detected from setup.py".to_owned(),
        packages: 1,
        bytes: 5 << 20,
    };
    let size = |bytes: u64| {
        let folder = CacheFolder {
            bytes,
            name: "local".to_owned(),
        };
        let sizes = BTreeMap::from([("local".to_owned(), bytes)]);
        CacheSize::new(vec![folder], vec![environment.clone()], &sizes)
    };
    assert!(!size(5 << 20).render().contains("shared"));
    let expected = "          7 MiB  requirements and images shared by environments\n";
    let text = size(12 << 20).render();
    assert!(text.ends_with(expected), "{text}");
    let json = serde_json::to_value(size(12 << 20)).unwrap();
    assert_eq!(json["bytes"], 12 << 20);
    assert_eq!(json["folders"][0]["name"], "local");
    assert_eq!(json["environments"][0]["name"], "env-1");
    assert_eq!(json["shared_bytes"], 7 << 20);
}

#[test]
fn prune_needs_one_of_its_selections() {
    let parse = |options: &[&str]| {
        let cache = CacheCommand::augment_subcommands(clap::Command::new("cache"));
        cache.try_get_matches_from(["cache", "prune"].iter().chain(options))
    };
    let error = parse(&[]).unwrap_err().to_string();
    assert!(
        error.contains("<--unused-days <N>|--max-size <SIZE>>"),
        "{error}"
    );
    for options in [
        &["--unused-days", "30"][..],
        &["--max-size", "20 GiB"],
        &["--unused-days", "30", "--max-size", "20 GiB"],
    ] {
        parse(options).unwrap();
    }
}
