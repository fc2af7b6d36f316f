//! Short texts of requests: one rule for all fields, whether they come as JSON, in a form, over MCP or in a query.

use testwright_evals::foreign_text::{NAME, unseen};

use testwright_config::error::{Error, Result};

/// Maximum bytes of a request body.
pub const MAX_REQUEST_BYTES: usize = 4 << 20;
/// Maximum characters of a path or an address.
pub const MAX_PATH_LEN: usize = 2_048;

/// Checks a name: a model, an approach, a commit, an owner, an id.
///
/// # Errors
/// A usage error that names the field and does not repeat the text.
pub fn check_name(field: &str, text: &str) -> Result<()> {
    check(field, text, NAME)
}

/// Checks a path or an address, which may be longer than a name.
///
/// # Errors
/// Those of [`check_name`].
pub fn check_path(field: &str, text: &str) -> Result<()> {
    check(field, text, MAX_PATH_LEN)
}

fn check(field: &str, text: &str, max: usize) -> Result<()> {
    let refused = |cause: String| Err(Error::usage(format!("read `{field}`")).cause(cause));
    if text.chars().nth(max).is_some() {
        return refused(format!("it is longer than {max} characters"));
    }
    if let Some(c) = unseen(text) {
        let code = u32::from(c);
        return refused(format!(
            "it has a character that cannot be seen (U+{code:04X})"
        ));
    }
    if text.trim() != text {
        return refused("it begins or ends with a blank".to_owned());
    }
    Ok(())
}

/// Cuts a text for a list: the title of an issue may have any length.
pub fn shortened(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
