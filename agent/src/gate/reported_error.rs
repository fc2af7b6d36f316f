//! Errors that an issue shows, compared with the one that a test fails with.

use testwright_sandboxes::Pattern;
use testwright_tools::outcomes::report::FailureClass;

use super::TestEvidence;

/// Returns a note if the test fails with an exception that the issue does not mention, and the issue shows
/// another. This is not a fault by itself, because the issue's error may be a consequence of the test's.
pub(super) fn other_error(test: &TestEvidence, issue: &str) -> Option<String> {
    let name = test.exception.rsplit('.').next().unwrap_or_default();
    if test.class == FailureClass::Assertion || name.is_empty() || issue.contains(name) {
        return None;
    }
    let reported_errors = errors(issue);
    (!reported_errors.is_empty()).then(|| {
        format!(
            "{} fails with a {name}, which the issue does not mention; it shows {}",
            test.id,
            reported_errors.join(", ")
        )
    })
}

/// Returns the last lines of tracebacks: `ValueError: message`, `package.SomeError`.
fn errors(issue: &str) -> Vec<&str> {
    static LAST_LINE: Pattern =
        Pattern::new(r"(?m)^(?:[>\s]|E\s)*(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception))(?::|\s*$)");
    let mut names = Vec::new();
    for name in LAST_LINE
        .captures_iter(issue)
        .filter_map(|captures| captures.get(1))
    {
        if !names.contains(&name.as_str()) {
            names.push(name.as_str());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_end_tracebacks() {
        let issue = "It raises a KeyError: sometimes.\n```\nTraceback (most recent call last):\n  File \"a.py\"\n\
                     ValueError: Number of processes must be at least 1\n```\nE   a.b.OwnError\n> ValueError: again\nEOFError\n";
        assert_eq!(errors(issue), ["ValueError", "OwnError", "EOFError"]);
        assert!(errors("An Error: it is wrong.\nTypeErrors happen").is_empty());
    }
}
