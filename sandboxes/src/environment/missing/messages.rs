//! Packages that error messages ask for in words, such as "'babel' package is required in order to use CurrencyType".
//!
//! Only messages of exceptions count, because prose and compared values contain such words too.

use crate::pattern::Pattern;

/// A name that a message asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestedName {
    pub name: String,
    /// Whether the message is beyond doubt about a package, not about a program, a file or a server.
    pub is_package: bool,
}

/// The message of an exception, up to the end of the lines that pytest marks as its own.
static MESSAGE: Pattern =
    Pattern::new(r"(?m)^(?:E\s+)?([A-Za-z_][\w.]*): (.+(?:\n(?:E\s+[^\s:]+ .*|E\s*$))*)");

/// Exceptions that tests raise themselves, with compared values.
const OF_TESTS: [&str; 4] = ["AssertionError", "Failed", "Skipped", "KeyError"];

/// Sentences that begin with the name.
static SUBJECT: Pattern = Pattern::new(concat!(
    r#"(?i)["'`]?\b([a-z][\w.-]*\w)\b(?:\[[\w,-]+\])?["'`]?"#,
    r"(?:\s+(?:python\s+)?(package|library|module|dependency|plugin))?",
    r"(?:\s+(?:is|are)\s+(?:required|needed|missing|unavailable)\b",
    r"|\s+(?:(?:must|should|needs\s+to|has\s+to|to)\s+be\s+)?installed\b",
    r"|\s+(?:(?:is|are|was|could|can?)\s*)?n(?:o|')t\s+(?:be\s+)?(?:available|found|installed|imported)\b)",
));

/// Sentences that end with the name, or with two of them.
static OBJECT: Pattern = Pattern::new(concat!(
    r"(?i)\b(?:requires?|requiring|needs?|install|installing|depends\s+on|missing|import|find|load)",
    r"(?:\s+(?:the|a|an|either|one|of|required|optional|additional|third-party|python|dependency|dependencies:",
    r"|package|library|module|version\s+\S+\s+or\s+newer))*",
    r#"\s+["'`]?\b([a-z][\w.-]*\w)\b(?:\[[\w,-]+\])?["'`]?"#,
    r"(?:\s+(package|library|module|dependency|plugin)\b)?",
    r#"(?:(?:,|\s+and|\s+or)\s+["'`]?([a-z][\w.-]*\w)\b)?"#,
));

/// Returns the names that the messages of exceptions in a text ask for.
pub(super) fn requested_names(text: &str) -> Vec<RequestedName> {
    let mut all = Vec::new();
    for message in MESSAGE.captures_iter(text) {
        let exception = message.get(1).map_or("", |name| name.as_str());
        let exception = exception.rsplit('.').next().unwrap_or(exception);
        let is_exception = exception.starts_with(|c: char| c.is_uppercase());
        if !is_exception || OF_TESTS.contains(&exception) {
            continue;
        }
        let is_import = exception.ends_with("ImportError") || exception == "ModuleNotFoundError";
        let words = message.get(2).map_or("", |words| words.as_str());
        let words = words.replace("\nE ", "\n");
        for pattern in [&SUBJECT, &OBJECT] {
            for sentence in pattern.captures_iter(&words) {
                let names = [1, 3].into_iter().filter_map(|group| sentence.get(group));
                all.extend(names.map(|name| RequestedName {
                    name: name.as_str().to_owned(),
                    is_package: is_import || sentence.get(2).is_some(),
                }));
            }
        }
    }
    all
}

#[cfg(test)]
mod tests;
