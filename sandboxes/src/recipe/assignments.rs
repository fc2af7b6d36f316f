//! Assignments of environment variables in text files.

use regex::Captures;

use crate::pattern::Pattern;

/// `NAME=value` or `NAME: value`, as in shell scripts, .env files, YAML, tox.ini and Dockerfiles.
static ASSIGNMENT: Pattern = Pattern::new(
    r#"(?m)^\s*(?:export |set |ENV |- |["'])*([A-Z][A-Z0-9_]+)\s*[=:]\s*(?:"([^"\n]*)"|'([^'\n]*)'|([^\s"'#,]+))["']?,?\s*(?:#.*)?$"#,
);

/// Assignments before a command, as in `NAME=value pytest`.
static BEFORE_COMMAND: Pattern = Pattern::new(
    r#"\b([A-Z][A-Z0-9_]+)=["']?([^\s"'$`]+)["']?\s+(?:\S+=\S+\s+)*(?:python|pytest|py\.test|coverage|tox|flask|\./manage|uv|poetry)"#,
);

/// Returns the variables that a text sets, with literal values.
pub(super) fn assignments(text: &str) -> Vec<(String, String)> {
    let patterns = [&ASSIGNMENT, &BEFORE_COMMAND].into_iter();
    let captures = patterns.flat_map(|pattern| pattern.captures_iter(text));
    let assignment = |captures: Captures<'_>| {
        let value = captures.iter().skip(2).flatten().next()?.as_str().trim();
        // Values that refer to others, or that a person must fill in, are of no use.
        let is_useless =
            value.is_empty() || value.contains(['$', '{', '<', '`']) || is_block_scalar(value);
        (!is_useless).then(|| (captures[1].to_owned(), value.to_owned()))
    };
    captures.filter_map(assignment).collect()
}

/// Returns whether a value only starts a text on the next lines of a YAML file.
fn is_block_scalar(value: &str) -> bool {
    value.starts_with(['|', '>']) && value.len() <= 2
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn assignments_are_recognized() {
        for (line, value) in [
            ("NAME=localhost", "localhost"),
            ("export NAME=\"a b\"", "a b"),
            (
                "        NAME: 'postgres://x:y@localhost/z'",
                "postgres://x:y@localhost/z",
            ),
            ("      - NAME=1  # why", "1"),
            ("    NAME = a.b", "a.b"),
            ("ENV NAME=x", "x"),
            ("      TZ: UTC", "UTC"),
            ("    \"NAME=x\",", "x"),
        ] {
            let captures = ASSIGNMENT.captures(line);
            let value_of = |c: regex::Captures<'_>| {
                c.iter()
                    .skip(2)
                    .flatten()
                    .next()
                    .map(|m| m.as_str().to_owned())
            };
            assert_eq!(
                captures.and_then(value_of).as_deref(),
                Some(value),
                "{line}"
            );
        }
        let command = BEFORE_COMMAND
            .captures("\tA_B=1 NAME=x pytest tests")
            .unwrap();
        assert_eq!((&command[1], &command[2]), ("A_B", "1"));
    }
}
