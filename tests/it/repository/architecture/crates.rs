//! Checks the dependencies between crates, their lints and their external dependencies.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{metadata, root};

/// Returns the crates that each crate may depend on, without the prefix `testwright-`. The program is `testwright`.
fn allowed() -> BTreeMap<String, Vec<String>> {
    let foundation = ["tools", "agent-prompts", "sandboxes"];
    let below_agent = ["config", "evals", "models"];
    let below_server = ["agent", "comparisons"];
    let edges: [(&str, &[&[&str]]); 11] = [
        ("tools", &[]),
        ("agent-prompts", &[]),
        ("sandboxes", &[]),
        ("evals", &[&["sandboxes", "tools"]]),
        ("config", &[&["sandboxes"]]),
        ("models", &[&["config", "sandboxes", "tools"]]),
        ("agent", &[&foundation, &below_agent]),
        ("comparisons", &[&foundation, &below_agent, &["agent"]]),
        ("server", &[&foundation, &below_agent, &below_server]),
        (
            "fuzz",
            &[
                &foundation,
                &below_agent,
                &below_server,
                &["server", "testwright"],
            ],
        ),
        (
            "testwright",
            &[&foundation, &below_agent, &below_server, &["server"]],
        ),
    ];
    let full_name = |name: &&str| match *name {
        "testwright" => name.to_string(),
        _ => format!("testwright-{name}"),
    };
    edges
        .iter()
        .map(|(name, others)| {
            (
                full_name(name),
                others.concat().iter().map(full_name).collect(),
            )
        })
        .collect()
}

fn wrong_edges(metadata: &Value) -> Vec<String> {
    let allowed = allowed();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let Some(allowed_names) = allowed.get(name) else {
            wrong.push(format!("{name} is missing from the architecture"));
            continue;
        };
        // Development and build dependencies count as well.
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            if allowed.contains_key(other) && !allowed_names.iter().any(|name| name == other) {
                wrong.push(format!("{name} depends on {other}"));
            }
        }
        let tests = package["targets"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|t| t["kind"][0] == "test")
            .count();
        if tests > 1 {
            wrong.push(format!("{name} has {tests} integration test binaries"));
        }
    }
    wrong
}

#[test]
fn crates_have_only_allowed_dependencies() {
    assert_eq!(wrong_edges(&metadata()), Vec::<String>::new());
    let mut broken = metadata();
    for package in broken["packages"].as_array_mut().unwrap() {
        if package["name"] == "testwright-evals" {
            let edge = serde_json::json!({ "name": "testwright", "kind": "dev" });
            package["dependencies"].as_array_mut().unwrap().push(edge);
        }
    }
    assert_eq!(
        wrong_edges(&broken),
        ["testwright-evals depends on testwright"]
    );
}

#[test]
fn crates_inherit_workspace_lints() {
    for package in metadata()["packages"].as_array().unwrap() {
        let manifest = package["manifest_path"].as_str().unwrap();
        let manifest: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
        assert_eq!(
            manifest["lints"]["workspace"].as_bool(),
            Some(true),
            "{}",
            package["name"]
        );
    }
}

/// Returns the external crates that the table in docs/BUILD.md does not list.
fn unexplained(metadata: &Value, document: &str) -> Vec<String> {
    let (_, table) = document.split_once("## Dependencies, and why").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let documented_names: Vec<&str> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split(" | ").next())
        .flat_map(|cell| cell.split(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '_'))
        .collect();
    let mut missing: Vec<String> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|package| package["dependencies"].as_array().unwrap())
        .filter(|dependency| dependency["kind"].is_null())
        .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
        .filter(|name| {
            !name.starts_with("testwright") && !documented_names.contains(&name.as_str())
        })
        .collect();
    missing.sort();
    missing.dedup();
    missing
}

#[test]
fn external_dependencies_are_documented() {
    let document = std::fs::read_to_string(root().join("docs/BUILD.md")).unwrap();
    assert_eq!(unexplained(&metadata(), &document), Vec::<String>::new());
    let less = document.replace("bollard", "");
    assert_eq!(unexplained(&metadata(), &less), ["bollard"]);
}
