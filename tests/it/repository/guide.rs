//! Checks that the guide (`docs/src`) lists all chapters, and that links in the guide, in `docs/` and in the top-level
//! files point to existing files and headings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::repository::architecture::root;

/// Returns the text without fenced code.
fn prose(text: &str) -> String {
    let mut fenced = false;
    let mut prose = String::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            prose += line;
            prose.push('\n');
        }
    }
    prose
}

/// Returns the targets of the links on a page.
fn links(text: &str) -> Vec<String> {
    let text = prose(text);
    let parts = text.split("](").skip(1);
    parts
        .filter_map(|part| Some(part.split_once(')')?.0.to_owned()))
        .collect()
}

/// Returns the anchors of a page's headings, as GitHub and mdBook generate them.
fn anchors(text: &str) -> BTreeSet<String> {
    let text = prose(text);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let anchor_chars = title
                .chars()
                .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            anchor_chars.collect::<String>().replace(' ', "-")
        })
        .collect()
}

/// Returns the address of the project, as Cargo.toml has it.
fn project_address() -> String {
    let text = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let table: toml::Table = text.parse().unwrap();
    let address = &table["workspace"]["package"]["repository"];
    address.as_str().unwrap().to_owned()
}

/// Returns the file that a link to the project's own address leads to.
fn own_file(link: &str, address: &str) -> Option<PathBuf> {
    let path = link.strip_prefix(address)?;
    let path = path
        .strip_prefix("/blob/main/")
        .or_else(|| path.strip_prefix("/raw/main/"))?;
    Some(root().join(path))
}

/// Returns the broken links of a page: relative ones, and those to the project's own address.
fn broken(page: &Path, text: &str) -> Vec<String> {
    let address = project_address();
    let leads_nowhere = |link: &String| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match (file, own_file(file, &address)) {
            (_, Some(target)) => target,
            ("", None) => page.to_owned(),
            (file, None) if file.contains("://") || file.starts_with("mailto:") => return false,
            (file, None) => page.parent().unwrap().join(file),
        };
        let there = target.exists();
        !there
            || (!anchor.is_empty()
                && !std::fs::read_to_string(&target)
                    .is_ok_and(|text| anchors(&text).contains(anchor)))
    };
    links(text).into_iter().filter(leads_nowhere).collect()
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let mut pages = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages.extend(markdown(&path));
        } else if path.extension().is_some_and(|e| e == "md") {
            pages.push(path);
        }
    }
    pages
}

#[test]
fn summary_lists_exactly_all_chapters() {
    let folder = root().join("docs/src");
    let summary = std::fs::read_to_string(folder.join("SUMMARY.md")).unwrap();
    let linked_chapters: BTreeSet<PathBuf> =
        links(&summary).iter().map(|l| folder.join(l)).collect();
    let mut there: BTreeSet<PathBuf> = markdown(&folder).into_iter().collect();
    there.remove(&folder.join("SUMMARY.md"));
    assert_eq!(linked_chapters, there);
}

#[test]
fn relative_links_have_targets() {
    let mut pages = markdown(&root().join("docs"));
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|name| root().join(name)));
    for page in &pages {
        let text = std::fs::read_to_string(page).unwrap();
        let none: Vec<String> = Vec::new();
        assert_eq!(broken(page, &text), none, "{}", page.display());
    }
    let readme = root().join("README.md");
    let own = format!("{}/blob/main/no-such.md", project_address());
    let text = format!(
        "[a](docs/no-such.md) [b](CONTRIBUTING.md#no-such) [c](CONTRIBUTING.md#checks) [d]({own})"
    );
    assert_eq!(
        broken(&readme, &text),
        ["docs/no-such.md", "CONTRIBUTING.md#no-such", &own]
    );
}

/// The tables and the picture on confidence come from a script and its data.
#[test]
fn figures_of_confidence_match_data() {
    let script = root().join("agent/src/confidence/figures.py");
    let mut command = Command::new("python3");
    let output = command.arg(script).arg("--check").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

/// PyPI shows the README, and does not resolve relative links.
#[test]
fn readme_has_only_absolute_links() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let relative: Vec<String> = links(&text)
        .into_iter()
        .filter(|link| !link.starts_with("https://"))
        .collect();
    assert_eq!(relative, Vec::<String>::new());
}

/// The address of the project stands in several files, and changes in all of them.
#[test]
fn project_has_one_address() {
    let address = project_address();
    let name = address.strip_prefix("https://github.com/").unwrap();
    for (file, expected) in [
        ("pyproject.toml", format!("Homepage = \"{address}\"")),
        ("README.md", format!("]({address}/blob/main/")),
        ("action.yml", format!("uses: {name}@")),
        ("docs/src/ci.md", format!("uses: {name}@")),
        ("docs/src/install.md", format!("git clone {address}\n")),
        (
            "docs/book.toml",
            format!("git-repository-url = \"{address}\""),
        ),
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&expected), "{file}: {expected}");
        let addresses = text.split("https://github.com/").skip(1);
        for other in addresses.filter(|rest| {
            rest.split('/')
                .nth(1)
                .is_some_and(|n| n.starts_with("testwright"))
        }) {
            assert!(
                other.starts_with(name),
                "{file}: {}",
                &other[..40.min(other.len())]
            );
        }
    }
}
