//! Decides which files are tests: those that the repository's own runner collects, by its configuration, and those in
//! folders named for tests.

use std::collections::BTreeMap;
use std::path::Path;

use super::text_file;
use crate::config::{Runner, RunnerKind};

mod content;
mod ini;
mod patterns;

use patterns::Pattern;

/// The largest configuration file that is read, in bytes.
const MAX_CONFIG_LEN: u64 = 4 << 20;
/// Maximum number of folders with a configuration of their own.
const MAX_FOLDERS: usize = 100;

/// The locations and names of tests.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Names of test files (`python_files`).
    files: Vec<Pattern>,
    /// Names of test classes (`python_classes`).
    classes: Vec<Pattern>,
    /// Names of test functions (`python_functions`).
    functions: Vec<Pattern>,
    /// Prefixes of blocks in which every function is a test, if pytest-describe is installed.
    blocks: Vec<String>,
    /// Folders given by `testpaths`.
    folders: Vec<String>,
    /// Whether a file called `tests.py` is for tests, as in Django's applications.
    uses_tests_py: bool,
    /// Files whose name does not decide, and whether they hold tests.
    known: BTreeMap<String, bool>,
    /// Folders with a configuration of their own, the innermost first.
    below: Vec<(String, Layout)>,
}

/// The meaning of a file's name.
enum NameMeaning {
    Test,
    Other,
    /// The content decides; a new file is a test or not.
    Unclear {
        is_test_if_new: bool,
    },
}

impl Default for Layout {
    /// Returns pytest's defaults without a configuration.
    fn default() -> Self {
        Layout::of_options(&ini::Options::new())
    }
}

impl Layout {
    /// Names of the files that may hold pytest's configuration.
    pub const CONFIGURATION: [&'static str; 7] = ini::FILES;

    /// Reads the configuration file that pytest would use for the whole repository.
    pub fn read(root: &Path) -> Layout {
        Layout::from_files(&|name| text_file::read_text(&root.join(name), MAX_CONFIG_LEN))
    }

    /// Reads the configuration through `read`, which returns the text of a file in the root.
    pub fn from_files(read: &dyn Fn(&str) -> Option<String>) -> Layout {
        let mut layout = Layout::of_options(&ini::options(read).unwrap_or_default());
        layout.uses_tests_py = read("manage.py").is_some();
        layout
    }

    /// Reads the configuration of the repository and of folders in it, and files whose name does not say whether they
    /// hold tests. `paths` are all files, and `read` returns the text of one.
    pub fn from_tree<'p>(
        paths: impl Iterator<Item = &'p str> + Clone,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Layout {
        let mut layout = Layout::from_files(read);
        let is_configuration = |path: &&str| ini::FILES.contains(&name(path));
        let mut folders: Vec<&str> = (paths.clone().filter(is_configuration))
            .filter_map(|path| Some(path.rsplit_once('/')?.0))
            .collect();
        folders.sort_unstable_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        folders.dedup();
        for folder in folders.into_iter().take(MAX_FOLDERS) {
            let options = ini::options(&|name| read(&format!("{folder}/{name}")));
            let own = options.map(|options| (folder.to_owned(), Layout::of_options(&options)));
            layout.below.extend(own);
        }
        layout.learn(paths, read);
        layout
    }

    /// Reads the files whose name does not say whether they hold tests.
    pub fn learn<'p>(
        &mut self,
        paths: impl Iterator<Item = &'p str>,
        read: &dyn Fn(&str) -> Option<String>,
    ) {
        for path in paths {
            let (own, relative) = self.own(path);
            if let NameMeaning::Unclear { .. } = own.meaning(relative)
                && let Some(text) = read(path)
            {
                let is_test = content::has_tests(&text, own);
                self.uses_tests_py |= is_test && name(path) == "tests.py";
                self.known.insert(path.to_owned(), is_test);
            }
        }
    }

    fn of_options(options: &ini::Options) -> Layout {
        let words = |key: &str, default: &[&str]| -> Vec<String> {
            match options.get(key) {
                Some(value) => value.split_whitespace().map(str::to_owned).collect(),
                None => default.iter().map(|&word| word.to_owned()).collect(),
            }
        };
        let patterns = |key: &str, default: &[&str]| -> Vec<Pattern> {
            words(key, default).into_iter().map(Pattern::new).collect()
        };
        Layout {
            files: patterns("python_files", &["test_*.py", "*_test.py"]),
            classes: patterns("python_classes", &["Test"]),
            functions: patterns("python_functions", &["test"]),
            blocks: words("describe_prefixes", &["describe"]),
            folders: words("testpaths", &[])
                .into_iter()
                .map(|f| f.trim_start_matches("./").trim_end_matches('/').to_owned())
                .filter(|f| !f.is_empty())
                .collect(),
            uses_tests_py: false,
            known: BTreeMap::new(),
            below: Vec::new(),
        }
    }

    /// Applies the patterns of test files that a runner adds: by pytest's option `python_files`, or by Django's default.
    pub fn with_runner(mut self, runner: &Runner) -> Layout {
        let options = runner.options.iter();
        let patterns = options.filter_map(|option| option.split_once("python_files="));
        let patterns = patterns.flat_map(|(_, patterns)| patterns.split_whitespace());
        let mut patterns: Vec<String> = patterns.map(str::to_owned).collect();
        if runner.kind == RunnerKind::Django {
            patterns.push("test*.py".to_owned());
        }
        self.files.extend(patterns.into_iter().map(Pattern::new));
        self
    }

    /// Returns the layout that applies to a file, and the file's path relative to its folder.
    fn own<'p>(&self, path: &'p str) -> (&Layout, &'p str) {
        let nested_layout = self.below.iter().find_map(|(folder, layout)| {
            let relative = path.strip_prefix(folder.as_str())?.strip_prefix('/')?;
            Some((layout, relative))
        });
        nested_layout.unwrap_or((self, path))
    }

    /// Returns the layout that applies to a file.
    pub fn of_file(&self, path: &str) -> &Layout {
        self.own(path).0
    }

    /// Returns whether the repository's runner collects tests from a file: its name matches `python_files`, or the
    /// defaults of pytest. If `testpaths` is set, modules elsewhere with such names
    /// (`pylint/testutils/unittest_linter.py`) do not count, except in folders that are named for tests. If a name is
    /// not one of tests, the file's content at the base commit decides.
    pub fn is_test_file(&self, path: &str) -> bool {
        let (own, relative) = self.own(path);
        match own.meaning(relative) {
            NameMeaning::Test => true,
            NameMeaning::Other => false,
            NameMeaning::Unclear { is_test_if_new } => {
                let by_convention = self.uses_tests_py && name(path) == "tests.py";
                let is_known_test = self.known.get(path).copied();
                is_known_test.unwrap_or(is_test_if_new || by_convention)
            }
        }
    }

    /// Returns whether only the content says whether a file is a test file, so that it may be code as well.
    pub fn is_unclear(&self, path: &str) -> bool {
        let (own, relative) = self.own(path);
        matches!(own.meaning(relative), NameMeaning::Unclear { .. })
    }

    fn meaning(&self, path: &str) -> NameMeaning {
        let name = name(path);
        if !name.ends_with(".py") || name == "conftest.py" || name == "__init__.py" {
            return NameMeaning::Other;
        }
        let in_test_folder = self.has_test_folder(path);
        let is_elsewhere =
            !self.folders.is_empty() && path.contains('/') && !self.is_below_testpaths(path);
        if is_elsewhere && !in_test_folder {
            return NameMeaning::Other;
        }
        if name.starts_with("test_") || name.ends_with("_test.py") {
            return NameMeaning::Test;
        }
        let mut matching = self
            .files
            .iter()
            .filter(|pattern| pattern.matches_path(path));
        if let Some(first) = matching.next() {
            if name.contains("test") || in_test_folder {
                return NameMeaning::Test;
            }
            // `*.py` alone would make every module a test.
            if first.is_specific() || matching.any(Pattern::is_specific) {
                return NameMeaning::Unclear {
                    is_test_if_new: true,
                };
            }
        }
        // The pattern of unittest and of Django.
        match name.starts_with("test") {
            true => NameMeaning::Unclear {
                is_test_if_new: false,
            },
            false => NameMeaning::Other,
        }
    }

    /// Returns whether a file is Python code that supports tests but holds none. These are `conftest.py`, modules
    /// in folders named `test`, `tests` or `testing`, and modules named `testing`.
    pub fn is_test_support(&self, path: &str) -> bool {
        let name = name(path);
        name.ends_with(".py")
            && !self.is_test_file(path)
            && (matches!(name, "conftest.py" | "testing.py" | "_testing.py")
                || self.in_test_folder(path))
    }

    /// Returns whether a file may be part of a test patch: a test file, `conftest.py`, or any file in a test
    /// folder (data files too).
    pub fn is_test_path(&self, path: &str) -> bool {
        self.is_test_file(path) || name(path) == "conftest.py" || self.in_test_folder(path)
    }

    /// Returns whether a file is below a folder named for tests (`test`, `tests`, `testing`), or below one of
    /// `testpaths` that is named for tests in other words (`checks`, `spec`).
    pub fn in_test_folder(&self, path: &str) -> bool {
        let (own, relative) = self.own(path);
        self.has_test_folder(path) || own.has_test_folder(relative)
    }

    fn has_test_folder(&self, path: &str) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let is_below = |f: &&String| Path::new(path).starts_with(f) && path != f.as_str();
        let mut folders = self.folders.iter().filter(is_below);
        folder.split('/').any(is_folder_of_tests) || folders.any(|f| means_tests(name(f)))
    }

    fn is_below_testpaths(&self, path: &str) -> bool {
        self.folders
            .iter()
            .any(|f| f == "." || Path::new(path).starts_with(f))
    }

    /// Returns the folders of `testpaths`.
    pub fn folders(&self) -> &[String] {
        &self.folders
    }

    /// Returns whether pytest takes a class of this name for tests.
    pub fn is_test_class(&self, name: &str) -> bool {
        self.classes.iter().any(|pattern| pattern.begins(name))
    }

    /// Returns whether pytest takes a function or method of this name for a test.
    pub fn is_test_function(&self, name: &str) -> bool {
        self.functions.iter().any(|pattern| pattern.begins(name))
    }

    /// Returns whether a function of this name is a block of tests (pytest-describe).
    pub fn is_block(&self, name: &str) -> bool {
        self.blocks
            .iter()
            .any(|prefix| name.starts_with(prefix.as_str()))
    }
}

/// Returns whether a file is a `conftest.py`, as opposed to `test_conftest.py`.
pub fn is_conftest(path: &str) -> bool {
    name(path) == "conftest.py"
}

fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_folder_of_tests(name: &str) -> bool {
    matches!(name, "test" | "tests" | "testing" | "Tests" | "_tests")
        || name.ends_with("-tests")
        || name.ends_with("_tests")
}

/// Names of folders that hold tests, if `testpaths` contains them.
const FOLDERS: [&str; 16] = [
    "spec",
    "specs",
    "check",
    "checks",
    "verification",
    "integration",
    "functional",
    "acceptance",
    "regression",
    "scenarios",
    "e2e",
    "unit",
    "qa",
    "bdd",
    "selftest",
    "unittest",
];

/// Returns whether the name of a folder of `testpaths` is one of tests. The package itself may be there as well, also
/// under names such as `testinfra` or `specutils`.
fn means_tests(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(['-', '_', '.']);
    FOLDERS.contains(&name.as_str())
        || name.ends_with("tests")
        || words.any(|word| matches!(word, "test" | "tests" | "testing"))
}
