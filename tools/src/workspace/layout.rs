//! Decides which files are tests, by the repository's own pytest configuration and by folder names.

use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};

use super::regular;

mod ini;

/// The largest configuration file that is read, in bytes.
const MAX_CONFIG_LEN: u64 = 4 << 20;

/// The locations and names of tests.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Globs for names of test files (`python_files`).
    files: Vec<(String, Option<GlobMatcher>)>,
    /// Prefixes or globs (`python_classes`).
    classes: Vec<(String, Option<GlobMatcher>)>,
    /// Prefixes or globs (`python_functions`).
    functions: Vec<(String, Option<GlobMatcher>)>,
    /// Folders given by `testpaths`.
    folders: Vec<String>,
}

impl Default for Layout {
    /// Returns pytest's defaults without a configuration.
    fn default() -> Self {
        Layout::new(None, None, None, None)
    }
}

impl Layout {
    /// Reads the configuration file that pytest would use.
    pub fn read(root: &Path) -> Layout {
        Layout::from_files(&|name| regular::read_text(&root.join(name), MAX_CONFIG_LEN))
    }

    /// Reads the configuration through `read`, which returns the text of a file in the root.
    pub fn from_files(read: &dyn Fn(&str) -> Option<String>) -> Layout {
        let options = ini::options(read);
        let words = |key: &str| {
            options
                .get(key)
                .map(|v| v.split_whitespace().map(str::to_owned).collect())
        };
        Layout::new(
            words("python_files"),
            words("python_classes"),
            words("python_functions"),
            words("testpaths"),
        )
    }

    fn new(
        files: Option<Vec<String>>,
        classes: Option<Vec<String>>,
        functions: Option<Vec<String>>,
        folders: Option<Vec<String>>,
    ) -> Layout {
        let words = |given: Option<Vec<String>>, default: &[&str]| -> Vec<String> {
            given.unwrap_or_else(|| default.iter().map(|&s| s.to_owned()).collect())
        };
        Layout {
            files: words(files, &["test_*.py", "*_test.py"])
                .into_iter()
                .map(glob)
                .collect(),
            classes: words(classes, &["Test"]).into_iter().map(glob).collect(),
            functions: words(functions, &["test"]).into_iter().map(glob).collect(),
            folders: folders
                .unwrap_or_default()
                .into_iter()
                .map(|f| f.trim_start_matches("./").trim_end_matches('/').to_owned())
                .filter(|f| !f.is_empty())
                .collect(),
        }
    }

    /// Returns whether pytest would collect tests from a file: its name matches `python_files`, or pytest's
    /// defaults. If `testpaths` is set, modules elsewhere with such names
    /// (`pylint/testutils/unittest_linter.py`) do not count, except in folders that are named for tests.
    pub fn is_test_file(&self, path: &str) -> bool {
        let name = name(path);
        if !name.ends_with(".py") || name == "conftest.py" || name == "__init__.py" {
            return false;
        }
        let is_elsewhere =
            !self.folders.is_empty() && path.contains('/') && !self.is_below_testpaths(path);
        if is_elsewhere && !self.in_test_folder(path) {
            return false;
        }
        name.starts_with("test_")
            || name.ends_with("_test.py")
            || self.files.iter().any(|(pattern, glob)| match glob {
                // Like in pytest, a pattern with a slash matches the end of the path.
                Some(glob) if pattern.contains('/') => {
                    glob.is_match(path) || glob.is_match(format!("/{path}"))
                }
                // `*.py` would make every module a test.
                Some(glob) => {
                    glob.is_match(name) && (name.contains("test") || self.in_test_folder(path))
                }
                None => name == pattern.as_str(),
            })
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
    /// `testpaths` whose name contains `test`.
    pub fn in_test_folder(&self, path: &str) -> bool {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        folder.split('/').any(is_folder_of_tests)
            || self
                .folders
                .iter()
                .any(|f| name(f).contains("test") && Path::new(path).starts_with(f) && path != f)
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
        fits(&self.classes, name)
    }

    /// Returns whether pytest takes a function or method of this name for a test.
    pub fn is_test_function(&self, name: &str) -> bool {
        fits(&self.functions, name)
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

fn glob(pattern: String) -> (String, Option<GlobMatcher>) {
    let is_glob = pattern.contains(['*', '?', '[']);
    let whole = if pattern.contains('/') {
        format!("**/{pattern}")
    } else {
        pattern.clone()
    };
    let matcher = is_glob
        .then(|| {
            GlobBuilder::new(&whole)
                .literal_separator(false)
                .build()
                .ok()
        })
        .flatten()
        .map(|g| g.compile_matcher());
    (pattern, matcher)
}

fn fits(patterns: &[(String, Option<GlobMatcher>)], name: &str) -> bool {
    patterns.iter().any(|(pattern, glob)| match glob {
        Some(glob) => glob.is_match(name),
        None => name.starts_with(pattern.as_str()),
    })
}
