//! C sources that Cython writes and that are not committed, although `setup.py` names them. CI writes them first.

use std::collections::BTreeSet;

use regex::Regex;

use super::detect::{text, workflows};
use crate::pattern::Pattern;
use crate::repository::Tree;
use crate::sandbox::Result;

/// Files in which CI and developers call Cython, with its options.
const CALLERS: [&str; 6] = [
    "Makefile",
    "makefile",
    "GNUmakefile",
    "tox.ini",
    "noxfile.py",
    "justfile",
];

/// Signs that a build calls Cython itself.
static CYTHON: Pattern =
    Pattern::new(r"cythonize|Cython\.(?:Build|Distutils)|build_ext import new_build_ext");

/// A C source in quotes: its path without the ending, and the ending.
static SOURCE: Pattern = Pattern::new(r#"["']([A-Za-z0-9_][A-Za-z0-9_./-]*)\.(c|cpp|cxx|cc)["']"#);

/// Returns the commands that write the missing sources, as the repository's files call them or plain.
pub(super) fn commands(tree: &Tree) -> Result<Vec<String>> {
    let missing = missing_sources(tree)?;
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let mut callers = String::new();
    for path in CALLERS.into_iter().chain(workflows(tree)) {
        callers.push_str(&text(tree, path)?.unwrap_or_default());
        callers.push('\n');
    }
    let command = |(pyx, target): &(String, String)| {
        let options = options(&callers, pyx).unwrap_or_else(|| match target.ends_with(".c") {
            true => String::new(),
            false => "--cplus".to_owned(),
        });
        let words = ["python -m cython", &options, pyx, "-o", target];
        let words = words.into_iter().filter(|word| !word.is_empty());
        words.collect::<Vec<_>>().join(" ")
    };
    Ok(missing.iter().map(command).collect())
}

/// Returns the `.pyx` files of sources that setup.py names and that do not exist, with those sources.
fn missing_sources(tree: &Tree) -> Result<BTreeSet<(String, String)>> {
    let mut missing = BTreeSet::new();
    let setup_py = text(tree, "setup.py")?.unwrap_or_default();
    let pyproject = text(tree, "pyproject.toml")?.unwrap_or_default();
    if CYTHON.is_match(&setup_py) {
        return Ok(missing);
    }
    let sources = [&setup_py, &pyproject].into_iter();
    for source in sources.flat_map(|text| SOURCE.captures_iter(text)) {
        let (stem, target) = (&source[1], format!("{}.{}", &source[1], &source[2]));
        let pyx = format!("{stem}.pyx");
        if tree.contains(&pyx) && !tree.contains(&target) && !stem.contains("..") {
            missing.insert((pyx, target));
        }
    }
    Ok(missing)
}

/// Returns the options of Cython in a call that names this file.
fn options(callers: &str, pyx: &str) -> Option<String> {
    let pattern = format!(
        r"(?m)\bcython3?((?:\s+-{{1,2}}[\w=,.-]+)*)\s+(?:\S+\s+)*{}\b",
        regex::escape(pyx)
    );
    let call = Regex::new(&pattern).ok()?;
    let captures = call.captures(callers)?;
    let options: Vec<&str> = captures[1].split_whitespace().collect();
    Some(options.join(" "))
}

#[cfg(test)]
mod tests {
    use super::options;

    #[test]
    fn options_are_those_of_the_call() {
        let makefile = "cython:\n\tcython --cplus -3 mod/_c.pyx\n";
        assert_eq!(
            options(makefile, "mod/_c.pyx").as_deref(),
            Some("--cplus -3")
        );
        assert_eq!(
            options("\tcython mod/_c.pyx", "mod/_c.pyx").as_deref(),
            Some("")
        );
        assert_eq!(options(makefile, "mod/_d.pyx"), None);
    }
}
