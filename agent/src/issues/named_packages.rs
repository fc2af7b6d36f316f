//! The packages that an issue names in its code, in commands that install packages, and in lists of versions.

use std::collections::BTreeSet;

use testwright_sandboxes::Pattern;
use testwright_sandboxes::environment::NamedPackages;
use testwright_tools::python::is_standard_library;

static IMPORT: Pattern = Pattern::new(
    r"^\s*(?:>>>|\.\.\.|In ?\[\d*\]:)?\s*(?:from\s+([A-Za-z_]\w*)[\w.]*\s+import\b|import\s+([A-Za-z_][\w.]*(?:\s+as\s+\w+)?(?:\s*,\s*[A-Za-z_][\w.]*(?:\s+as\s+\w+)?)*)\s*(?:[;#].*)?$)",
);
static INSTALL: Pattern = Pattern::new(r"\bpip3? install\s+([^;&|]+)");
static NAME: Pattern = Pattern::new(r#"^["']?([A-Za-z][\w.-]*)(?:[\[<>=!~"'].*)?$"#);
static VERSION: Pattern = Pattern::new(
    r"^\s*(?:[-*]\s+)?`?([A-Za-z][\w.-]*)`?\s*(?:==|=|:)?\s*`?v?\d+\.\d[\w.+-]*`?\s*$",
);

/// Options of `pip install` whose next word is no package.
const OPTIONS_WITH_VALUE: [&str; 6] = ["-r", "-c", "-e", "-i", "--requirement", "--index-url"];

/// Maximum names of each kind. Each one is searched for in the whole issue.
const MAX_NAMES: usize = 200;

/// Words before and after the name of a package that is missing.
const ABSENT_BEFORE: [&str; 4] = ["no module named", "without", "uninstall", "uninstall -y"];
const ABSENT_AFTER: [&str; 3] = ["is not installed", "not installed", "isn't installed"];

/// Returns the modules and packages that the text of an issue names. Those whose absence it describes are left out.
pub(super) fn named_packages(body: &str) -> NamedPackages {
    let mut names = NamedPackages::default();
    let mut is_fenced = false;
    let mut is_below_frame = false;
    for line in body.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        if let Some(captures) = VERSION.captures(line) {
            names.listed.insert(captures[1].to_owned());
        }
        if is_fenced || line.trim_start().starts_with(">>>") {
            // Below a line of a traceback is code of other modules.
            if !is_below_frame {
                names.modules.extend(imported_modules(line));
            }
            names.packages.extend(installed_packages(line));
        } else {
            let spans = line.split('`').skip(1).step_by(2);
            names.packages.extend(spans.flat_map(installed_packages));
        }
        is_below_frame = line.trim_start().starts_with("File \"");
    }
    let lower = body.to_lowercase();
    let without_absent = |names: BTreeSet<String>| -> BTreeSet<String> {
        let names = names.into_iter().take(MAX_NAMES);
        names
            .filter(|name| !is_said_absent(&name.to_lowercase(), &lower))
            .collect()
    };
    names.modules.retain(|module| !is_standard_library(module));
    NamedPackages {
        modules: without_absent(names.modules),
        packages: without_absent(names.packages),
        listed: without_absent(names.listed),
    }
}

/// Returns the top-level modules that a line of code imports.
fn imported_modules(line: &str) -> Vec<String> {
    let Some(captures) = IMPORT.captures(line) else {
        return Vec::new();
    };
    if let Some(module) = captures.get(1) {
        return vec![module.as_str().to_owned()];
    }
    let names = captures.get(2).map_or("", |names| names.as_str());
    let tops = names.split(',').filter_map(|name| {
        let name = name.split_whitespace().next()?;
        name.split('.').next()
    });
    tops.map(str::to_owned).collect()
}

/// Returns the packages that `pip install` installs in a piece of code.
fn installed_packages(code: &str) -> Vec<String> {
    let mut packages = Vec::new();
    for command in INSTALL.captures_iter(code) {
        let mut is_value = false;
        for word in command[1].split_whitespace() {
            let is_package = !is_value && !word.starts_with('-') && !word.contains('/');
            is_value = OPTIONS_WITH_VALUE.contains(&word);
            if let Some(name) = NAME.captures(word).filter(|_| is_package) {
                packages.push(name[1].to_owned());
            }
        }
    }
    packages
}

/// Returns whether a text says that a package is missing, which is then part of the issue. Both are in lower case.
fn is_said_absent(name: &str, text: &str) -> bool {
    ["", "'", "`"].iter().any(|quote| {
        let name = format!("{quote}{name}{quote}");
        let mut before = ABSENT_BEFORE.iter();
        let mut after = ABSENT_AFTER.iter();
        before.any(|words| text.contains(&format!("{words} {name}")))
            || after.any(|words| text.contains(&format!("{name} {words}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(body: &str) -> [Vec<String>; 3] {
        let names = named_packages(body);
        [names.modules, names.packages, names.listed].map(|names| names.into_iter().collect())
    }

    #[test]
    fn names_in_code_are_found() {
        let body = "I import numpy. With `pip install -U pandas[excel]>=2 -r more.txt` it fails:\n\
                    ```python\nimport yaml, os.path as p\nfrom scipy.sparse import eye\n\
                    pip install 'attrs' git+https://example.org/x\n```\n\
                    >>> import PIL.Image  # images\n\
                    - pandas: 2.1\nxarray==0.19.0\nPython 3.9.1 | packaged\n";
        let [modules, packages, listed] = named(body);
        assert_eq!(modules, ["PIL", "scipy", "yaml"]);
        assert_eq!(packages, ["attrs", "pandas"]);
        assert_eq!(listed, ["pandas", "xarray"]);
    }

    #[test]
    fn number_of_names_is_limited() {
        let lines = (0..1000).map(|number| format!("package-{number:04} 1.0\n"));
        let [_, _, listed] = named(&lines.collect::<String>());
        assert_eq!(listed.len(), MAX_NAMES);
        assert_eq!(listed[0], "package-0000");
    }

    #[test]
    fn absent_packages_and_tracebacks_do_not_count() {
        let body = "It crashes without pandas:\n```\nimport pandas\nimport yaml\n\
                    Traceback (most recent call last):\n  File \"x.py\", line 1, in f\n    import scipy\n\
                    ModuleNotFoundError: No module named 'yaml'\n```\n";
        assert_eq!(named(body), [const { Vec::<String>::new() }; 3]);
    }
}
