//! The user's words to the model.

use std::path::Path;

use testwright_config::error::{Error, Result};
use testwright_sandboxes::plain_file;

/// Maximum bytes of a hint.
const MAX_HINT_LEN: usize = 8 << 10;

/// Reads a hint: a text, or `@FILE` for the text of a file.
///
/// # Errors
///
/// Fails if the file cannot be read, or the hint is not usable.
pub fn read(argument: &str) -> Result<String> {
    let Some(path) = argument.strip_prefix('@') else {
        return check(argument);
    };
    let read = plain_file::read_user_file(Path::new(path), MAX_HINT_LEN as u64);
    let bytes = read.map_err(|error| {
        Error::usage(format!("read the hint in {path}"))
            .cause(error.to_string())
            .hint("pass a text, or @ and the path of a text file")
    })?;
    check(&String::from_utf8_lossy(&bytes))
}

/// Returns a hint without surrounding whitespace.
///
/// # Errors
///
/// Fails if the hint is empty, too long, or binary.
pub fn check(text: &str) -> Result<String> {
    let text = text.trim();
    let cause = match text.len() {
        0 => "it is empty".to_owned(),
        length if length > MAX_HINT_LEN => {
            format!("it has {length} bytes; the maximum is {MAX_HINT_LEN}")
        }
        _ if text.contains('\0') => "it is not a text".to_owned(),
        _ => return Ok(text.to_owned()),
    };
    Err(Error::usage("read the hint")
        .cause(cause)
        .hint("say in a few words what the test should be like"))
}

/// Returns one hint of what the user said before and says now. Earlier words still apply, so none are dropped.
///
/// # Errors
///
/// Fails if the new words are not usable, or the whole hint is too long.
pub fn join(earlier: Option<&str>, words: &str) -> Result<String> {
    let words = check(words)?;
    let Some(earlier) = earlier else {
        return Ok(words);
    };
    let joined = format!("{earlier}\n\n{words}");
    let length = joined.len();
    if length > MAX_HINT_LEN {
        let cause = format!("together they have {length} bytes; the maximum is {MAX_HINT_LEN}");
        return Err(Error::usage("add to the earlier hints")
            .cause(cause)
            .hint("start a new run with one shorter hint"));
    }
    Ok(joined)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hint_is_text_or_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hint.txt");
        std::fs::write(&path, "No mocks.\n").unwrap();
        assert_eq!(read(&format!("@{}", path.display())).unwrap(), "No mocks.");
        assert_eq!(read(" No mocks. ").unwrap(), "No mocks.");
        let cause = |text: &str| read(text).unwrap_err().cause.unwrap();
        assert_eq!(cause(" "), "it is empty");
        assert_eq!(cause("a\0b"), "it is not a text");
        assert_eq!(
            cause(&"a".repeat(MAX_HINT_LEN + 1)),
            "it has 8193 bytes; the maximum is 8192"
        );
        assert!(read("@gone.txt").is_err());
    }

    #[test]
    fn joined_hints_have_same_limit() {
        assert_eq!(join(None, " Shorter. ").unwrap(), "Shorter.");
        let half = "a".repeat(MAX_HINT_LEN / 2 - 1);
        let joined = join(Some(&half), &half).unwrap();
        assert_eq!(joined.len(), MAX_HINT_LEN);
        assert_eq!(
            join(Some(&joined), "Shorter.").unwrap_err().with_cause(),
            "failed to add to the earlier hints: together they have 8202 bytes; the maximum is 8192"
        );
        let cause = join(Some("No mocks."), " ").unwrap_err().cause.unwrap();
        assert_eq!(cause, "it is empty");
    }
}
