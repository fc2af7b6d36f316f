//! Commands in comments.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Command {
    /// Asks for a test in a comment.
    Test,
    /// Asks for a draft pull request as well.
    PullRequest,
    /// Asks for a change of the newest test, in these words.
    Revise(String),
}

/// Parses the first line that is not empty. Later lines may be quoted text, and are ignored.
pub(super) fn parse(comment: &str, word: &str) -> Option<Command> {
    let line = comment.lines().find(|line| !line.trim().is_empty())?;
    let mut words = line.split_whitespace();
    if words.next() != Some(word) {
        return None;
    }
    if words.clone().next() == Some("revise") {
        let wish: Vec<&str> = words.skip(1).collect();
        return (!wish.is_empty()).then(|| Command::Revise(wish.join(" ")));
    }
    match (words.next(), words.next()) {
        (None, _) => Some(Command::Test),
        (Some("pr"), None) => Some(Command::PullRequest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_first_line_is_command() {
        for (comment, command) in [
            ("/testwright", Some(Command::Test)),
            ("\n /testwright \r\nplease", Some(Command::Test)),
            ("/testwright pr\n", Some(Command::PullRequest)),
            ("/testwright pr now", None),
            (
                "/testwright revise no  mocks\nlater",
                Some(Command::Revise("no mocks".to_owned())),
            ),
            ("/testwright revise", None),
            ("/testwright push", None),
            ("/testwrightpr", None),
            ("> /testwright", None),
            ("Say\n/testwright", None),
            ("", None),
        ] {
            assert_eq!(parse(comment, "/testwright"), command, "{comment:?}");
        }
    }
}
