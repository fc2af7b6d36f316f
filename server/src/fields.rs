//! Validation of short texts in requests: the same rules for JSON, forms, MCP and queries.

use testwright_evals::untrusted_text::{MAX_NAME_CHARS, find_invisible};

use testwright_config::error::{Error, Result};

/// Maximum bytes of a request body.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Maximum bytes of a patch or a test file.
pub const MAX_PATCH_LEN: usize = 1 << 20;
/// Maximum bytes of an issue.
pub const MAX_ISSUE_LEN: usize = 1 << 20;
/// Maximum characters of the name of a test, a patch or a comparison.
pub const MAX_NAME_LEN: usize = 100;
/// Maximum characters of a path or an address.
pub const MAX_PATH_LEN: usize = 2_048;

/// Checks a short text: a model, an approach, a commit, an owner, or an id.
///
/// # Errors
///
/// Fails with a usage error that names the field and does not repeat the text.
pub fn check_name(field: &str, text: &str) -> Result<()> {
    check(field, text, MAX_NAME_CHARS)
}

/// Checks a path or an address, which may be longer than a name.
///
/// # Errors
///
/// Fails for the same reasons as [`check_name`].
pub fn check_path(field: &str, text: &str) -> Result<()> {
    check(field, text, MAX_PATH_LEN)
}

fn check(field: &str, text: &str, max: usize) -> Result<()> {
    let refused = |cause: String| Err(Error::usage(format!("read `{field}`")).cause(cause));
    if text.chars().nth(max).is_some() {
        return refused(format!("it is longer than {max} characters"));
    }
    if let Some(c) = find_invisible(text) {
        let code = u32::from(c);
        return refused(format!("it contains an invisible character (U+{code:04X})"));
    }
    if text.trim() != text {
        return refused("it begins or ends with whitespace".to_owned());
    }
    Ok(())
}

/// Checks the number of items of a request, such as sets of tests.
///
/// # Errors
///
/// Fails with a usage error if the number is zero or too large.
pub fn check_count(items: &str, number: usize, max: usize) -> Result<()> {
    if (1..=max).contains(&number) {
        return Ok(());
    }
    Err(Error::usage("read the request").cause(format!(
        "there are {number} {items}; the allowed number is 1 to {max}"
    )))
}

/// Shortens a text for a list; titles of issues have any length.
pub fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
