//! What a patch contributes: tests, and the files that hold them.

use std::path::Path;

use sha2::{Digest, Sha256};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::{Applied, Tree};
use testwright_tools::python;
use testwright_tools::tools::submission::Change;
use testwright_tools::workspace::Layout;

/// Files from which pytest's configuration may be read.
const CONFIGURATION: [&str; 5] = [
    "pytest.ini",
    ".pytest.ini",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
];

/// Which files are tests, at the base commit.
pub fn layout(tree: &Tree) -> Result<Layout, SandboxError> {
    let folder = tempfile::tempdir()?;
    for name in CONFIGURATION {
        if let Some(content) = tree.read(name)? {
            std::fs::write(folder.path().join(name), content)?;
        }
    }
    Ok(Layout::read(folder.path()))
}

/// Tests of a patch.
#[derive(Debug, Clone, Default)]
pub struct Contribution {
    /// `path::Class::function`, without parameters; those that are there with the patch.
    pub tests: Vec<String>,
    /// Those of them that are there without the patch too, otherwise.
    pub changed: Vec<String>,
    /// Test files that are there with the patch and that it adds or changes.
    pub files: Vec<String>,
    /// Those of them that are there without it too.
    pub modified: Vec<String>,
    /// Python files of the code under test that it changes.
    pub sources: Vec<String>,
    /// Deleted tests, for a note.
    pub deleted: Vec<String>,
}

impl Contribution {
    pub fn of(applied: &Applied, tree: &Tree, layout: &Layout) -> Result<Self, SandboxError> {
        let mut all = Contribution::default();
        for (path, file) in &applied.files {
            let before = tree.read(path)?;
            let now = file.as_ref().map(|file| file.content.as_slice());
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (then, after) = (before.as_deref().map(text), now.map(text));
            let tests = python::contributed(
                path,
                then.as_deref(),
                after.as_deref().unwrap_or_default(),
                layout,
            );
            for test in tests {
                match test.change {
                    Change::Deleted => all.deleted.push(test.id),
                    Change::Added => all.tests.push(test.id),
                    Change::Modified => {
                        all.changed.push(test.id.clone());
                        all.tests.push(test.id);
                    }
                }
            }
            if layout.is_test_file(path) {
                if now.is_some() {
                    all.files.push(path.clone());
                    all.modified.extend(before.is_some().then(|| path.clone()));
                }
            } else if path.ends_with(".py") && !layout.is_test_path(path) {
                all.sources.push(path.clone());
            }
        }
        Ok(all)
    }

    /// The files hold tests that are not contributed.
    pub fn has_company(&self) -> bool {
        !self.modified.is_empty()
    }
}

/// The name of a prediction as a part of a path.
pub fn file_name(text: &str) -> String {
    let safe = |c: char| {
        if c.is_ascii_alphanumeric() || "-_.".contains(c) {
            c
        } else {
            '_'
        }
    };
    let name: String = text.chars().map(safe).take(80).collect();
    if name == text && !matches!(text, "" | "." | "..") {
        return name;
    }
    // Two names must not become one.
    let digest = Sha256::digest(text.as_bytes());
    let digits: String = digest.iter().take(4).map(|b| format!("{b:02x}")).collect();
    format!("{name}-{digits}")
}

/// Writes a log below the folder of results; its path relative to that.
pub fn log(out: &Path, parts: [&str; 3], text: &str) -> Result<String, SandboxError> {
    let [instance, prediction, name] = parts;
    let relative = format!(
        "logs/{}/{}/{name}.log",
        file_name(instance),
        file_name(prediction)
    );
    let path = out.join(&relative);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, text)?;
    Ok(relative)
}
