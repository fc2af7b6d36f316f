//! Issues from files and standard input.

use std::io::{ErrorKind, Read};
use std::path::Path;

use testwright_sandboxes::plain_file;

use super::Issue;
use testwright_config::error::{Error, Result};

/// Maximum bytes of an issue. GitHub's limit for text written by people is 65,536 characters.
const MAX_ISSUE_LEN: u64 = 1 << 20;

/// Maximum characters of a title; a longer first line is the start of the text.
const MAX_TITLE_LEN: usize = 200;

pub(super) async fn load(location: &str) -> Result<Issue> {
    let location = location.to_owned();
    tokio::task::spawn_blocking(move || load_now(&location))
        .await
        .map_err(|e| Error::infrastructure("read the issue").cause(e))?
}

fn load_now(location: &str) -> Result<Issue> {
    if location == "-" {
        return read(std::io::stdin().lock(), "standard input");
    }
    let path = Path::new(location);
    let refused =
        |cause: String| Error::usage(format!("read the issue in {location}")).cause(cause);
    let about = std::fs::metadata(path);
    if let Ok(about) = about
        && about.is_file()
        && about.len() > MAX_ISSUE_LEN
    {
        return Err(too_large(location, &megabytes(about.len())));
    }
    let text = match plain_file::read_user_file(path, MAX_ISSUE_LEN) {
        Ok(text) => text,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let error = refused("the file does not exist".to_owned());
            let other = "pass the URL of an issue, or `-` for standard input";
            return Err(error.hint(suggest(path).unwrap_or_else(|| other.to_owned())));
        }
        Err(e) if e.kind() == ErrorKind::IsADirectory => {
            return Err(refused(e.to_string()).hint("pass the file with the issue's text"));
        }
        Err(e) => return Err(refused(e.to_string())),
    };
    read(text.as_slice(), location)
}

pub(super) fn read(reader: impl Read, origin: &str) -> Result<Issue> {
    let mut bytes = Vec::new();
    reader
        .take(MAX_ISSUE_LEN + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::usage(format!("read the issue in {origin}")).cause(e))?;
    if bytes.len() as u64 > MAX_ISSUE_LEN {
        let size = format!("more than {}", megabytes(MAX_ISSUE_LEN));
        return Err(too_large(origin, &size));
    }
    let mut notes = Vec::new();
    let refused = |cause: &str, hint: &str| {
        Error::usage(format!("read the issue in {origin}"))
            .cause(cause)
            .hint(hint)
    };
    let text = decode(bytes, &mut notes).ok_or_else(|| {
        let hint = "pass a Markdown or text file";
        refused("it is not text: it contains NUL bytes", hint)
    })?;
    if text.trim().is_empty() {
        let hint = "describe what happens and what should happen instead";
        return Err(refused("it is empty", hint));
    }
    let (title, body) = split(&text);
    Ok(Issue {
        title: title.unwrap_or_else(|| "(no title)".to_owned()),
        body,
        origin: origin.to_owned(),
        notes,
        ..Issue::default()
    })
}

fn too_large(origin: &str, size: &str) -> Error {
    Error::usage(format!("read the issue in {origin}"))
        .cause(format!(
            "it has {size}, but the maximum is {}",
            megabytes(MAX_ISSUE_LEN)
        ))
        .hint("shorten it to a description, a short example and the expected result")
}

fn megabytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / (1 << 20) as f64)
}

/// Decodes bytes; `None` if they are not text. Line endings become `\n`.
fn decode(bytes: Vec<u8>, notes: &mut Vec<String>) -> Option<String> {
    let text = match bytes.as_slice() {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes)?,
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes)?,
        bytes if bytes.contains(&0) => return None,
        bytes => match std::str::from_utf8(bytes) {
            Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text).to_owned(),
            Err(e) => {
                notes.push(format!(
                    "the issue is not UTF-8 (byte {}), so it is read as Latin-1",
                    e.valid_up_to() + 1
                ));
                bytes.iter().map(|&b| char::from(b)).collect()
            }
        },
    };
    Some(text.replace("\r\n", "\n").replace('\r', "\n"))
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().map(|&pair| unit(pair)).collect();
    let text = String::from_utf16(&units).ok()?;
    (rest.is_empty() && !text.contains('\0')).then_some(text)
}

/// Returns the title of an issue with this text: the first heading or line, if it can be one. If the text is an address,
/// that is its title.
pub fn title(text: &str) -> Option<String> {
    split(text).0
}

/// Splits a text into its title (the first heading or line) and the body.
fn split(text: &str) -> (Option<String>, String) {
    let text = text.trim();
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let title = first.trim().trim_start_matches('#').trim();
    let mut other_marks = ["```", ">>>", "<!--"].iter();
    if other_marks.any(|mark| title.starts_with(mark)) || !title.contains(char::is_alphanumeric) {
        return (None, text.to_owned());
    }
    if title.chars().count() > MAX_TITLE_LEN {
        let cut: String = title.chars().take(MAX_TITLE_LEN).collect();
        return (Some(format!("{cut}…")), text.to_owned());
    }
    // The title may be an underlined heading.
    let (second, after) = rest.split_once('\n').unwrap_or((rest, ""));
    let second = second.trim_end();
    let underline =
        second.len() >= 3 && (second.chars().all(|c| c == '=') || second.chars().all(|c| c == '-'));
    let body = if underline { after } else { rest };
    // Remove only blank lines, because the first line of the body may be indented code.
    let blank = body.len() - body.trim_start().len();
    let start = body[..blank].rfind('\n').map_or(0, |i| i + 1);
    let title = Some(title.to_owned());
    (title, body[start..].trim_end().to_owned())
}

/// Suggests what the user may have meant by a file that does not exist.
fn suggest(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let Ok(entries) = std::fs::read_dir(folder) else {
        let folder = folder.display();
        return Some(format!("the folder {folder} does not exist either"));
    };
    let file_name = path.file_name()?.to_string_lossy().to_lowercase();
    let distance = |name: &str| strsim::damerau_levenshtein(&file_name, &name.to_lowercase());
    let mut near: Vec<(usize, String)> = entries
        .flatten()
        .filter(|e| e.path().is_file())
        .map(|e| e.file_name().to_string_lossy().into_owned())
        .map(|name| (distance(&name), name))
        .filter(|(distance, _)| *distance <= (file_name.chars().count() / 3).max(2))
        .collect();
    near.sort();
    near.truncate(3);
    let names = near.iter().map(|(_, name)| path.with_file_name(name));
    let names: Vec<String> = names.map(|name| name.display().to_string()).collect();
    (!names.is_empty()).then(|| format!("did you mean {}?", names.join(", ")))
}

#[cfg(test)]
mod tests;
