//! Decodes and encodes text files: UTF-8, or Latin-1 if a coding cookie (PEP 263) says so.

use std::str::Utf8Error;

/// The reason why bytes cannot be decoded, or text cannot be encoded; the message follows the file's name.
#[derive(Debug, thiserror::Error)]
pub(super) enum EncodingError {
    #[error("is a binary file")]
    Binary,
    #[error("is written in the encoding `{0}`, which cannot be shown")]
    Unsupported(String),
    #[error("is not UTF-8 text (first bad byte at offset {})", .0.valid_up_to())]
    NotUtf8(#[source] Utf8Error),
    #[error("is written in Latin-1, which has no `{0}`")]
    NotInLatin1(char),
}

/// Decodes text in the encoding that its cookie names.
pub(super) fn decode(bytes: Vec<u8>) -> Result<String, EncodingError> {
    if bytes.contains(&0) {
        return Err(EncodingError::Binary);
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        Err(e) => {
            let bytes = e.as_bytes();
            if is_latin1(bytes) {
                return Ok(bytes.iter().map(|&b| char::from(b)).collect());
            }
            Err(match cookie(bytes) {
                Some(name) => EncodingError::Unsupported(name),
                None => EncodingError::NotUtf8(e.utf8_error()),
            })
        }
    }
}

/// Encodes `text` in the encoding of `now`, the file's current content.
pub(super) fn encode(text: &str, now: &[u8]) -> Result<Vec<u8>, EncodingError> {
    if std::str::from_utf8(now).is_ok() || !is_latin1(now) {
        return Ok(text.as_bytes().to_vec());
    }
    text.chars()
        .map(|c| u8::try_from(c).map_err(|_| EncodingError::NotInLatin1(c)))
        .collect()
}

fn is_latin1(bytes: &[u8]) -> bool {
    cookie(bytes).is_some_and(|name| {
        let name = name.to_ascii_lowercase().replace('_', "-");
        matches!(
            name.as_str(),
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1"
        ) || name.starts_with("iso-latin-1")
    })
}

fn cookie(bytes: &[u8]) -> Option<String> {
    for line in bytes.split(|&b| b == b'\n').take(2) {
        let line = String::from_utf8_lossy(line);
        let line = line.trim_start();
        if !line.starts_with('#') {
            continue;
        }
        if let Some(at) = line.find("coding")
            && let Some(rest) = line[at + "coding".len()..].strip_prefix([':', '='])
        {
            let name: String = rest
                .trim_start()
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c))
                .collect();
            return (!name.is_empty()).then_some(name);
        }
    }
    None
}
