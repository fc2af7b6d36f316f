//! What a patch contributes: tests, and the files that hold them.

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::repository::{AppliedPatch, Tree};
use testwright_tools::python;
use testwright_tools::tools::submission::Change;
use testwright_tools::workspace::Layout;

/// Files from which pytest's configuration may be read.
pub(crate) const CONFIGURATION: [&str; 5] = [
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

/// Bytes of stack for reading code.
const STACK: usize = 64 << 20;

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
    /// Files that it brings and that run before any test does.
    pub startup: Vec<String>,
    /// Deleted tests, for a note.
    pub deleted: Vec<String>,
}

/// Modules of those that run and record tests.
const RUNNERS: [&str; 5] = ["pytest", "_pytest", "pluggy", "coverage", "unittest"];

/// Python loads it by itself, or in the place of a module that runs and records the tests: it comes first wherever one of
/// its folders is a place for modules (the repository, `src`, …).
fn is_of_startup(path: &str, tree: &Tree) -> bool {
    let mut above = String::new();
    let mut parts = path.split('/').peekable();
    while let Some(part) = parts.next() {
        let is_file = parts.peek().is_none();
        let module = part.strip_suffix(".py").unwrap_or(part);
        if !is_file || module.len() < part.len() {
            let is_own = matches!(module, "sitecustomize" | "usercustomize")
                || module.starts_with("testwright_");
            let is_runner = RUNNERS.contains(&module) && !is_test_folder(&above);
            above.push_str(part);
            // pytest itself may be the code under test.
            if (is_own || is_runner) && !tree.contains(&above) && !tree.has_folder(&above) {
                return true;
            }
        }
        above.push('/');
    }
    false
}

/// Below such a folder a package may be called after what it tests.
fn is_test_folder(above: &str) -> bool {
    above.split('/').any(|part| part.starts_with("test"))
}

impl Contribution {
    /// In a thread of its own: code may be nested deeply, and a stack is soon exhausted.
    pub fn of(applied: &AppliedPatch, tree: &Tree, layout: &Layout) -> Result<Self, SandboxError> {
        let work = || Contribution::read(applied, tree, layout);
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(STACK);
            let read = thread.spawn_scoped(scope, work)?.join();
            read.unwrap_or_else(|_| {
                let message = "read the tests of a patch";
                Err(SandboxError::new(ErrorKind::System, message))
            })
        })
    }

    fn read(applied: &AppliedPatch, tree: &Tree, layout: &Layout) -> Result<Self, SandboxError> {
        let mut all = Contribution::default();
        for (path, file) in &applied.files {
            if file.is_some() && is_of_startup(path, tree) {
                all.startup.push(path.clone());
            }
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
