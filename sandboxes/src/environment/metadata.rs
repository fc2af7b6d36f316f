//! The metadata of the code under test, as produced by its build.

use serde::Deserialize;

use super::build::Build;
use super::build_sandbox::BuildSandbox;
use crate::pattern::Pattern;
use crate::recipe::normalized_name;
use crate::sandbox::Result;

const SCRIPT: &str = include_str!("metadata.py");
const MARK: &str = "testwright-metadata: ";

#[derive(Debug, Default, PartialEq, Deserialize)]
pub(super) struct Metadata {
    /// The package name, or `None` if the code is not installed in editable mode.
    pub name: Option<String>,
    pub extras: Vec<String>,
    /// The `Requires-Dist` lines.
    pub requires: Vec<String>,
}

impl Metadata {
    /// Reads the metadata of the project in a folder of the workspace.
    pub(super) async fn read(
        build: &Build<'_>,
        builder: &BuildSandbox,
        folder: &str,
    ) -> Result<Metadata> {
        let command = builder.script("metadata.py", SCRIPT, folder).await?;
        let steps = build.steps(builder);
        let printed = steps.run("read the package's metadata", &command).await?;
        let json = printed.lines().find_map(|line| line.strip_prefix(MARK));
        Ok(json
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default())
    }

    /// Returns the requirements that apply without an extra.
    pub(super) fn base(&self) -> Vec<String> {
        let plain = |line: &&String| extra_of(line).is_none();
        self.requires.iter().filter(plain).cloned().collect()
    }

    /// Returns the additional requirements of these extras. The condition on the extra is removed, other conditions
    /// stay.
    pub(super) fn extra_requirements(&self, extras: &[String]) -> Vec<String> {
        let wanted = |line: &&String| {
            let named = extra_of(line).map(|extra| normalized_name(&extra));
            named.is_some_and(|named| extras.iter().any(|e| normalized_name(e) == named))
        };
        let lines = self.requires.iter().filter(wanted);
        lines.map(|line| without_extra(line)).collect()
    }
}

static CONDITION: Pattern = Pattern::new(r#"extra\s*==\s*['"]([^'"]+)['"]"#);

fn extra_of(line: &str) -> Option<String> {
    Some(CONDITION.captures(line)?[1].to_owned())
}

/// Neutralises the condition: `x>=1; python_version < "3.9" and extra == "test"` becomes `x>=1; python_version < "3.9"
/// and python_version > '0'`.
fn without_extra(line: &str) -> String {
    let neutral = "python_version > '0'";
    CONDITION.replace_all(line, neutral).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extras_select_their_requirements() {
        let metadata = Metadata {
            name: Some("x".to_owned()),
            extras: vec!["test".to_owned()],
            requires: vec![
                "a>=1".to_owned(),
                "b; python_version < '3.9'".to_owned(),
                "c (>=2) ; (sys_platform == 'linux') and extra == 'Test_All'".to_owned(),
                "d; extra == \"doc\"".to_owned(),
            ],
        };
        assert_eq!(metadata.base(), ["a>=1", "b; python_version < '3.9'"]);
        assert_eq!(
            metadata.extra_requirements(&["test-all".to_owned()]),
            ["c (>=2) ; (sys_platform == 'linux') and python_version > '0'"]
        );
    }
}
