//! A text file: its text, and how the file stores it (encoding, byte order mark, line ends).
//!
//! Tools see texts with `\n` line ends and without a byte order mark. A changed text is stored as the file was before.

use std::path::Path;

use super::encoding::{Codec, EncodingError, declaration, mark};
use super::line_ending::LineEnding;
use super::regular;

/// Maximum number of neighbours that a new file follows, and the bytes read of each.
const MAX_NEIGHBOURS: usize = 20;
const MAX_NEIGHBOUR_LEN: u64 = 1 << 20;

/// A file's text and its format.
pub(super) struct TextFile {
    pub text: String,
    codec: Codec,
    mark: &'static [u8],
    ends: LineEnding,
}

impl TextFile {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    ///
    /// Fails if the bytes are not text.
    pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<TextFile, EncodingError> {
        let (codec, mark) = match mark(bytes) {
            Some((codec, mark)) => (codec, mark),
            None => (Codec::from_bytes(bytes, is_python(path))?, &b""[..]),
        };
        let content = &bytes[mark.len()..];
        if codec == Codec::Utf8 && content.contains(&0) {
            return Err(EncodingError::Binary);
        }
        let (text, ends) = LineEnding::split(&codec.decode(content)?);
        Ok(TextFile {
            text,
            codec,
            mark,
            ends,
        })
    }

    /// Returns the format of a new file in a folder: the line ends and the byte order mark of its neighbours.
    pub(super) fn new_in(root: &Path, path: &Path) -> TextFile {
        let mut new = TextFile {
            text: String::new(),
            codec: Codec::Utf8,
            mark: b"",
            ends: LineEnding::Lf,
        };
        let folders = path.ancestors().skip(1);
        let neighbours = folders.map(|folder| neighbours(&root.join(folder), path));
        let Some(neighbours) = neighbours.into_iter().find(|group| !group.is_empty()) else {
            return new;
        };
        let is_crlf = |file: &&TextFile| file.ends == LineEnding::CrLf;
        if neighbours.iter().filter(is_crlf).count() * 2 > neighbours.len() {
            new.ends = LineEnding::CrLf;
        }
        let utf8_mark = b"\xef\xbb\xbf";
        if neighbours.iter().all(|file| file.mark == utf8_mark) {
            new.mark = utf8_mark;
        }
        new
    }

    /// Returns the bytes of a changed text.
    ///
    /// # Errors
    ///
    /// Fails if the file's encoding lacks a character.
    pub(super) fn encode(&self, path: &Path, text: &str) -> Result<Vec<u8>, EncodingError> {
        let text = self.ends.join(text);
        let mut bytes = self.mark.to_vec();
        let codec = self.codec_of(path, &text);
        bytes.extend(codec.encode(&text, &self.text)?);
        Ok(bytes)
    }

    /// Returns the encoding of a changed text: Python reads a file in the encoding that it declares.
    fn codec_of(&self, path: &Path, text: &str) -> Codec {
        if !is_python(path) || !self.mark.is_empty() {
            return self.codec.clone();
        }
        let now = declaration(text.as_bytes());
        if now == declaration(self.text.as_bytes()) {
            return self.codec.clone();
        }
        now.map_or(Codec::Utf8, |name| Codec::named(&name))
    }
}

/// Decodes the source of a Python file for inspection; invalid bytes are replaced.
pub fn decode_source(bytes: &[u8]) -> String {
    match TextFile::read(Path::new("source.py"), bytes) {
        Ok(file) => file.text,
        Err(_) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

/// Reads a file as text; `None` on any failure.
pub(crate) fn read_text(path: &Path, max_bytes: u64) -> Option<String> {
    let bytes = regular::read(path, max_bytes).ok()?.ok()?;
    Some(TextFile::read(path, &bytes).ok()?.text)
}

/// Returns the text of a file whose bytes cannot be searched as they are; `None` for others.
pub(crate) fn transcoded(path: &Path, head: &[u8], max_bytes: u64) -> Option<String> {
    let is_other =
        is_python(path) && declaration(head).is_some_and(|name| Codec::named(&name) != Codec::Utf8);
    if !(is_other || mark(head).is_some() || head.contains(&b'\r')) {
        return None;
    }
    read_text(path, max_bytes)
}

fn is_python(path: &Path) -> bool {
    let extension = path.extension().and_then(|end| end.to_str());
    matches!(
        extension,
        Some("py" | "pyi" | "pyw" | "pyx" | "pxd" | "pxi")
    )
}

/// Returns the files in a folder with the extension of `path` that have any text.
fn neighbours(folder: &Path, path: &Path) -> Vec<TextFile> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|other| other.extension() == path.extension());
    paths.sort_unstable();
    let read = |path: &std::path::PathBuf| {
        let bytes = regular::read(path, MAX_NEIGHBOUR_LEN).ok()?.ok()?;
        TextFile::read(path, &bytes).ok()
    };
    let files = paths.iter().filter_map(read);
    let has_text = |file: &TextFile| file.text.contains('\n');
    files.filter(has_text).take(MAX_NEIGHBOURS).collect()
}

#[cfg(test)]
mod tests;
