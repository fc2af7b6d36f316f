//! Notes on what an issue names and the environment does not have.

use testwright_sandboxes::environment::{Environment, uninstalled};
use testwright_sandboxes::repository::Source;

use crate::issues::Issue;

/// Maximum packages named in a note.
const MAX_NAMED: usize = 5;

/// Returns notes for the user and the model, one line each: another Python version, and packages that are not
/// installed.
pub(super) fn issue_notes(
    issue: &Issue,
    source: &Source,
    environment: &Environment,
) -> Vec<String> {
    // A note is not worth the failure of a run.
    let missing = source.tree().and_then(|tree| {
        let names = issue.named_packages();
        uninstalled(&names, &tree, &environment.packages)
    });
    let missing: Vec<String> = missing.unwrap_or_default().into_iter().collect();
    let on_python = issue.note_on_python(&environment.python_version);
    on_python
        .into_iter()
        .chain(note_on_packages(&missing))
        .collect()
}

fn note_on_packages(missing: &[String]) -> Option<String> {
    let missing = &missing[..missing.len().min(MAX_NAMED)];
    let options: Vec<String> = (missing.iter())
        .map(|name| format!("--requirement {name}"))
        .collect();
    let (be, them) = match missing.len() {
        0 => return None,
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    Some(format!(
        "the issue names {}, which {be} not installed (`{}` adds {them})",
        missing.join(", "),
        options.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::note_on_packages;

    #[test]
    fn missing_packages_have_one_note() {
        let note = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            note_on_packages(&names)
        };
        assert_eq!(note(&[]), None);
        assert_eq!(
            note(&["pandas"]).as_deref(),
            Some("the issue names pandas, which is not installed (`--requirement pandas` adds it)")
        );
        assert_eq!(
            note(&["numpy", "pandas"]).as_deref(),
            Some(
                "the issue names numpy, pandas, which are not installed (`--requirement numpy --requirement pandas` \
                 adds them)"
            )
        );
    }
}
