//! Checks that modules of a crate have no circular dependencies.
//!
//! Seen from outside, a folder and its content are one module. Parents and children may use each other. An import by a
//! parent counts as a use of the module that owns the item.

use std::collections::{BTreeMap, BTreeSet};

use regex::Regex;

use super::{Source, sources};

const CRATES: [&str; 10] = [
    "src",
    "tools/src",
    "agent-prompts/src",
    "sandboxes/src",
    "evals/src",
    "config/src",
    "models/src",
    "agent/src",
    "comparisons/src",
    "server/src",
];

/// Path of a module inside its crate.
type Module = Vec<String>;

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

/// Expands `a::{b, c::{d}}` to `a::b` and `a::c::d`.
fn expanded(path: &str) -> Vec<String> {
    let Some((start, inner)) = path.split_once('{') else {
        return vec![path.trim().to_owned()];
    };
    let (mut parts, mut depth) = (vec![String::new()], 0);
    let inner = inner.trim_end();
    for c in inner.strip_suffix('}').unwrap_or(inner).chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match parts.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => parts.push(String::new()),
        }
    }
    let full = |part: &String| expanded(&format!("{}{}", start.trim(), part.trim()));
    parts.iter().flat_map(full).collect()
}

/// Resolves a path from a module. Returns the last module on it and the next name (`A`, or `A as B`).
fn follow(path: &str, from: &Module, all: &BTreeMap<Module, String>) -> (Module, Option<String>) {
    let mut place = from.clone();
    let mut names = path.split("::").map(str::trim).peekable();
    while let Some(name) = names.next_if(|name| ["crate", "self", "super"].contains(name)) {
        match name {
            "crate" => place.clear(),
            "super" => drop(place.pop()),
            _ => {}
        }
    }
    for name in names {
        place.push(name.split(' ').next().unwrap_or_default().to_owned());
        if !all.contains_key(&place) {
            place.pop();
            return (place, Some(name.to_owned()));
        }
    }
    (place, None)
}

/// Returns the modules that each module uses.
fn uses(files: &[Source], folder: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let comment = pattern(r"(?m)//.*$");
    let imported = pattern(r"\buse\s+([^;]*);");
    let inline = pattern(r"\b(?:crate|super|self)(?:::\w+)+");
    let mut all = BTreeMap::new();
    for file in files.iter().filter(|f| !f.is_test()) {
        let inside = file
            .path
            .strip_prefix(folder)
            .filter(|p| p.starts_with('/'));
        let Some(path) = inside.and_then(|p| p.strip_suffix(".rs")) else {
            continue;
        };
        let mut module: Module = path[1..].split('/').map(str::to_owned).collect();
        module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        let code = file.text.split("#[cfg(test)]\nmod tests {").next();
        let code = comment.replace_all(code.unwrap_or_default(), "");
        all.insert(module, code.into_owned());
    }
    let mut owners = BTreeMap::new();
    for (module, code) in &all {
        for path in imported.captures_iter(code).flat_map(|c| expanded(&c[1])) {
            if let (owner, Some(name)) = follow(&path, module, &all) {
                let name = name.rsplit(' ').next().unwrap_or_default();
                owners.insert((module.clone(), name.to_owned()), owner);
            }
        }
    }
    let mut uses = BTreeMap::new();
    for (module, code) in &all {
        let paths = imported.captures_iter(code).flat_map(|c| expanded(&c[1]));
        let used = paths.chain(inline.find_iter(code).map(|m| m.as_str().to_owned()));
        let used = used.map(|path| {
            let (place, name) = follow(&path, module, &all);
            let name = name.unwrap_or_default();
            let key = (place, name.split(' ').next().unwrap_or_default().to_owned());
            owners.get(&key).cloned().unwrap_or(key.0)
        });
        let used = used.filter(|other| !other.starts_with(module) && !module.starts_with(other));
        uses.insert(module.clone(), used.collect());
    }
    uses
}

/// Dependencies between modules, or between members of one folder.
type Edges = BTreeMap<String, BTreeSet<String>>;

/// Returns the graphs to check. There is one for each folder, in which a member stands for all modules in it.
fn graphs(uses: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<Edges> {
    let mut graphs: BTreeMap<Module, Edges> = BTreeMap::new();
    let edges = uses
        .iter()
        .flat_map(|(m, all)| all.iter().map(move |o| (m, o)));
    for (module, other) in edges {
        let in_common = module.iter().zip(other).take_while(|(a, b)| a == b).count();
        // A parent and its child use each other freely.
        if in_common == module.len() || in_common == other.len() {
            continue;
        }
        let graph = graphs.entry(module[..in_common].to_vec()).or_default();
        let used = graph.entry(module[..=in_common].join("/")).or_default();
        used.insert(other[..=in_common].join("/"));
    }
    graphs.into_values().collect()
}

/// Returns the members that a member uses, directly or indirectly.
fn transitive_uses<'e>(edges: &'e Edges, from: &'e str) -> BTreeSet<&'e str> {
    let (mut visited_members, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(member) = next.pop() {
        let used = edges.get(member).into_iter().flatten().map(String::as_str);
        next.extend(used.filter(|member| visited_members.insert(*member)));
    }
    visited_members
}

fn circles(files: &[Source]) -> BTreeSet<Vec<String>> {
    let mut circles = BTreeSet::new();
    for crate_folder in CRATES {
        for edges in graphs(&uses(files, crate_folder)) {
            let reached: BTreeMap<&str, _> = edges
                .keys()
                .map(|m| (m.as_str(), transitive_uses(&edges, m)))
                .collect();
            for (member, others) in reached.iter().filter(|(m, others)| others.contains(**m)) {
                let back = reached
                    .iter()
                    .filter(|(m, back)| others.contains(**m) && back.contains(member));
                circles.insert(back.map(|(m, _)| (*m).to_owned()).collect());
            }
        }
    }
    circles
}

#[test]
fn modules_have_no_circular_dependencies() {
    assert_eq!(circles(&sources()), BTreeSet::new());
}

#[test]
fn circles_are_found_through_any_path() {
    let broken = |inner: &str, of_parent: &str| {
        let files = [
            Source::new("src/a.rs", &format!("mod b;\nmod c;\n{of_parent}")),
            Source::new(
                "src/a/b.rs",
                "// use super::d;\nuse super::{\n    c::{C, D},\n    X,\n};\n",
            ),
            Source::new("src/a/c.rs", inner),
            Source::new("src/lib.rs", "mod a;\n"),
        ];
        circles(&files).into_iter().next()
    };
    let expected_cycle = Some(vec!["a/b".to_owned(), "a/c".to_owned()]);
    assert_eq!(broken("use super::b::B;\n", ""), expected_cycle);
    assert_eq!(broken("fn f(b: crate::a::b::B) {}\n", ""), expected_cycle);
    assert_eq!(
        broken("use super::B;\n", "pub use b::{A, B};\n"),
        expected_cycle
    );
    assert_eq!(broken("use crate::a;\nfn f(b: super::Own) {}\n", ""), None);
    assert_eq!(
        broken("use super::{A as C};\n", "use b::B as A;\n"),
        expected_cycle
    );
    assert_eq!(broken("// super::b::B\n", "pub use b::B;\n"), None);
    assert_eq!(
        broken(
            "#[cfg(test)]\nmod tests {\n    use super::super::b::B;\n}\n",
            ""
        ),
        None
    );
}

#[test]
fn circles_between_folders_are_found() {
    let files = [
        Source::new("src/error.rs", "use crate::model::ModelError;\n"),
        Source::new("src/model/mod.rs", "pub struct ModelError;\n"),
        Source::new("src/model/price.rs", "use crate::settings::Price;\n"),
        Source::new("src/settings/mod.rs", "mod layer;\n"),
        Source::new("src/settings/layer.rs", "use crate::error::Error;\n"),
    ];
    let circle = ["error", "model", "settings"].map(str::to_owned);
    assert_eq!(circles(&files), BTreeSet::from([circle.to_vec()]));
}
