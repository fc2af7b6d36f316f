//! The title of a matrix, and the run whose tests it uses.

use serde::Serialize;

use crate::fields::shortened;
use crate::matrix::request::{MatrixInput, NamedPatch};
use crate::store::{JobId, Store};
use testwright_agent::issues;
use testwright_config::error::Result;

/// Maximum characters of a title.
const MAX_SHOWN_LEN: usize = 200;

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct MatrixOrigin {
    /// Title of the issue or of the run; otherwise the names of the tests.
    pub title: String,
    /// Id of the first run whose tests it uses.
    pub run: Option<String>,
}

impl MatrixOrigin {
    pub(super) async fn load(store: &Store, input: &MatrixInput) -> Result<Self> {
        // Tests from a run have its id as their name, unless the request names them.
        let id = input.tests.iter().find_map(|of| JobId::parse(&of.name));
        let run = match id {
            Some(id) => store.run(&id).await?,
            None => None,
        };
        let of_run = run.as_ref().map(|run| run.title.as_str());
        Ok(MatrixOrigin {
            title: title(input.issue.as_deref(), of_run, &input.tests),
            run: run.map(|run| run.id.to_string()),
        })
    }
}

fn title(issue: Option<&str>, of_run: Option<&str>, tests: &[NamedPatch]) -> String {
    let issue_title = issue.and_then(issues::title);
    let of_run = of_run.filter(|title| !title.is_empty()).map(str::to_owned);
    let names = || {
        let names = tests.iter().map(|tests| tests.name.as_str());
        names.collect::<Vec<_>>().join(", ")
    };
    shortened(&issue_title.or(of_run).unwrap_or_else(names), MAX_SHOWN_LEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_is_issue_run_or_tests() {
        let tests: Vec<NamedPatch> = ["good", "weak"]
            .map(|name| NamedPatch {
                name: name.to_owned(),
                patch: String::new(),
            })
            .into();
        let issue = Some("\n## It fails\n\nAlways.");
        assert_eq!(title(issue, Some("of the run"), &tests), "It fails");
        assert_eq!(title(None, Some("of the run"), &tests), "of the run");
        assert_eq!(title(Some(" "), Some(""), &tests), "good, weak");
        let long = "ä".repeat(MAX_SHOWN_LEN + 1);
        let cut = format!("{}…", "ä".repeat(MAX_SHOWN_LEN));
        assert_eq!(title(Some(&long), None, &tests), cut);
    }
}
