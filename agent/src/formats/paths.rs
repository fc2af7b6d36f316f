//! Paths as models write them.

use super::{FormatError, OldFiles};

/// Normalizes a path relative to the repository's root: without quotes, `./`, a leading slash and git's
/// prefix letters. Fails if the path leads out of the repository.
pub(super) fn clean(written: &str, old: &dyn OldFiles) -> Result<String, FormatError> {
    let name = written.trim().split('\t').next().unwrap_or_default();
    let written = name.trim_matches(|c| matches!(c, '`' | '"' | '\'' | '*'));
    let mut path = written.trim_start_matches("./").trim_start_matches('/');
    if let Some(inner) = path.strip_prefix("a/").or_else(|| path.strip_prefix("b/"))
        && old.text(path).is_none()
    {
        path = inner;
    }
    let parts = || path.split('/');
    let is_odd = |part: &str| part.is_empty() || part == "." || part == ".." || part == ".git";
    if parts().any(is_odd) || path.contains(['\\', '\0', '\n']) {
        return Err(FormatError::new(format!(
            "`{written}` is not a path in the repository"
        )));
    }
    Ok(path.to_owned())
}

/// Returns the only old file that was probably meant: its path ends with the given one, or the other way
/// round. Returns `None` if there are several.
pub(super) fn meant(path: &str, old: &dyn OldFiles) -> Option<String> {
    let paths = old.paths();
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let one = |fits: &dyn Fn(&str) -> bool| {
        let mut matches = paths.iter().filter(|candidate| fits(candidate));
        let first = matches.next()?;
        matches.next().is_none().then(|| first.clone())
    };
    one(&|candidate| ends(candidate, path)).or_else(|| one(&|candidate| ends(path, candidate)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn paths_are_normalized() {
        let old: BTreeMap<String, String> = ["a/x.py", "pkg/tests/test_x.py", "pkg/y.py", "y.py"]
            .map(|path| (path.to_owned(), String::new()))
            .into();
        for (written, path) in [
            ("pkg/y.py", "pkg/y.py"),
            ("a/pkg/y.py", "pkg/y.py"),
            ("b/new.py", "new.py"),
            ("a/x.py", "a/x.py"),
            (" `./pkg/y.py`\t2020-01-01", "pkg/y.py"),
            ("/pkg/y.py", "pkg/y.py"),
        ] {
            assert_eq!(clean(written, &old).as_deref(), Ok(path), "{written}");
        }
        for written in [
            "../x.py",
            "a/../../x.py",
            "",
            "pkg//y.py",
            ".git/config",
            "a\\b.py",
        ] {
            assert!(clean(written, &old).is_err(), "{written}");
        }
        assert_eq!(
            meant("tests/test_x.py", &old).as_deref(),
            Some("pkg/tests/test_x.py")
        );
        assert_eq!(meant("repo/pkg/y.py", &old), None);
        assert_eq!(meant("src/a/x.py", &old).as_deref(), Some("a/x.py"));
        assert_eq!(meant("z.py", &old), None);
    }
}
