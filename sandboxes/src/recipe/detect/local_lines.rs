//! Lines of requirements files that name folders of the repository, such as `-e ./core[test]`.

use std::collections::BTreeSet;

use super::text;
use crate::recipe::split_extras;
use crate::repository::Tree;
use crate::sandbox::Result;

/// A folder that a requirements file asks to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LocalLine {
    /// Path relative to the root of the repository; empty for the root itself.
    pub folder: String,
    pub extras: Vec<String>,
}

/// Returns the folders that a requirements file names, including those of files that it includes and that were not `seen`.
pub(super) fn local_lines(
    tree: &Tree,
    path: &str,
    depth: usize,
    seen: &mut BTreeSet<String>,
) -> Result<Vec<LocalLine>> {
    let mut all = Vec::new();
    if !seen.insert(path.to_owned()) {
        return Ok(all);
    }
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    for line in text(tree, path)?.unwrap_or_default().lines() {
        let line = line.split(" #").next().unwrap_or(line).trim();
        let mut options = ["-r", "--requirement"].iter();
        if let Some(file) = options.find_map(|option| line.strip_prefix(option)) {
            let file = join(folder, file.trim_start_matches(['=', ' ']).trim());
            if let Some(file) = file.filter(|_| depth > 0) {
                all.extend(local_lines(tree, &file, depth - 1, seen)?);
            }
            continue;
        }
        let Some((target, extras)) = target(line) else {
            continue;
        };
        // pip resolves a path from the current folder, uv from that of the file.
        let places = [join("", &target), join(folder, &target)];
        let place = places
            .into_iter()
            .flatten()
            .find(|place| is_project(tree, place));
        all.extend(place.map(|folder| LocalLine { folder, extras }));
    }
    Ok(all)
}

/// Returns the extras of the package itself that a requirements file asks for (`-e .[full]`), including those of
/// files that it includes.
pub(super) fn own_extras(tree: &Tree, path: &str) -> Result<Vec<String>> {
    let lines = local_lines(tree, path, 8, &mut BTreeSet::new())?.into_iter();
    let own = lines.filter(|line| line.folder.is_empty());
    Ok(own.flat_map(|line| line.extras).collect())
}

/// Returns whether a folder has files that say how to install it.
pub(super) fn is_project(tree: &Tree, folder: &str) -> bool {
    let inside = |name: &str| match folder {
        "" => tree.contains(name),
        folder => tree.contains(&format!("{folder}/{name}")),
    };
    ["pyproject.toml", "setup.py", "setup.cfg"]
        .into_iter()
        .any(inside)
}

/// Splits a line into its path and extras. Returns `None` for lines that name no folder.
pub(super) fn target(line: &str) -> Option<(String, Vec<String>)> {
    let editable = ["--editable", "-e"]
        .iter()
        .find_map(|option| line.strip_prefix(option));
    let location = match (editable, line.split_once(" @ ")) {
        (Some(rest), _) => rest,
        (None, Some((_, url))) if url.trim().starts_with("file:") => url,
        (None, _) => line,
    };
    let location = location
        .trim_start_matches(['=', ' '])
        .trim_matches(['\'', '"']);
    let location = location.split(';').next().unwrap_or(location).trim();
    let path = location.strip_prefix("file:").unwrap_or(location);
    let path = match path.strip_prefix("///${PROJECT_ROOT}") {
        Some(inside) => inside.trim_start_matches('/'),
        None => path,
    };
    let (path, extras) = split_extras(path);
    let names_folder = editable.is_some() || path.starts_with('.') || path.contains('/');
    let is_foreign =
        path.contains("://") || path.starts_with(['/', '-', '$']) || path.contains('+');
    if !names_folder || is_foreign || path.ends_with(".whl") || path.ends_with(".gz") {
        return None;
    }
    Some((path.trim_start_matches('/').to_owned(), extras))
}

/// Joins a folder and a relative path. Returns `None` for paths outside the repository.
pub(crate) fn join(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            other => parts.push(other),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_in_lines_are_recognized() {
        for (line, expected) in [
            ("-e ./a", Some(("./a", vec![]))),
            (
                "-e packages/core[test, x]",
                Some(("packages/core", vec!["test", "x"])),
            ),
            ("--editable=libs/a", Some(("libs/a", vec![]))),
            ("./b ; python_version > '3'", Some(("./b", vec![]))),
            ("libs/c", Some(("libs/c", vec![]))),
            ("core @ file:./core", Some(("./core", vec![]))),
            ("-e file:///${PROJECT_ROOT}/x", Some(("x", vec![]))),
            ("-e .", Some((".", vec![]))),
            ("requests>=2", None),
            ("-e git+https://example.org/x.git#egg=x", None),
            ("https://example.org/x.zip", None),
            ("dist/x-1.whl", None),
            ("-c constraints.txt", None),
        ] {
            let actual = target(line);
            let actual = actual.as_ref().map(|(path, extras)| {
                (
                    path.as_str(),
                    extras.iter().map(String::as_str).collect::<Vec<_>>(),
                )
            });
            assert_eq!(actual, expected, "{line}");
        }
        assert_eq!(join("a/b", "../c/./d").as_deref(), Some("a/c/d"));
        assert_eq!(join("a", "../../c"), None);
    }
}
