//! The folders that an install command names.

use crate::recipe::split_extras;

/// A folder to install, and its extras.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InstallTarget {
    /// Path relative to the workspace; empty for the workspace itself.
    pub folder: String,
    pub extras: Vec<String>,
    /// Arguments that install only this folder.
    pub arguments: Vec<String>,
}

impl InstallTarget {
    /// Returns the folder as a path that is never empty.
    pub(super) fn place(&self) -> &str {
        match self.folder.as_str() {
            "" => ".",
            folder => folder,
        }
    }
}

/// Returns the folders that the arguments of an editable install name. Other arguments, such as options, apply to all
/// of them.
pub(super) fn install_targets(install: &[String]) -> Vec<InstallTarget> {
    let is_editable = |argument: &str| argument == "-e" || argument == "--editable";
    let mut options = Vec::new();
    let mut named = Vec::new();
    let mut arguments = install.iter();
    while let Some(argument) = arguments.next() {
        match is_editable(argument) {
            true => named.extend(arguments.next()),
            false => options.push(argument.clone()),
        }
    }
    let target = |path: &String| {
        let (folder, extras) = split_extras(path);
        let arguments = options
            .iter()
            .cloned()
            .chain(["-e".to_owned(), path.clone()]);
        InstallTarget {
            folder: folder
                .trim_start_matches("./")
                .trim_matches(['/', '.'])
                .to_owned(),
            extras,
            arguments: arguments.collect(),
        }
    };
    named.into_iter().map(target).collect()
}

/// Returns the folder that the arguments install, relative to the workspace.
pub(super) fn folder_of(install: &[String]) -> String {
    let target = install_targets(install).into_iter().next();
    target.map(|target| target.folder).unwrap_or_default()
}

/// Removes the extras: `-e .[test,doc]` becomes `-e .` and the two extras.
pub(super) fn without_extras(install: &[String]) -> (Vec<String>, Vec<String>) {
    let mut all = Vec::new();
    let mut bare = install.to_vec();
    for argument in bare.iter_mut().filter(|argument| argument.starts_with('.')) {
        let (path, extras) = split_extras(argument);
        all.extend(extras);
        *argument = path.to_owned();
    }
    (bare, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn targets_keep_options_and_extras() {
        let found = install_targets(&words("--no-deps -e ./a/b[x,y] -e ."));
        let [first, second] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!((first.folder.as_str(), second.folder.as_str()), ("a/b", ""));
        assert_eq!(first.extras, ["x", "y"]);
        assert_eq!(first.arguments, words("--no-deps -e ./a/b[x,y]"));
        assert!(install_targets(&words("numpy .")).is_empty());
        assert_eq!(
            without_extras(&words("-e ./a[x] -e .[y]")),
            (words("-e ./a -e ."), words("x y"))
        );
    }
}
