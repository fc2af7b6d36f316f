//! Patches as `git diff` writes them, for `git apply`.
//!
//! Files that are not UTF-8 become git binary patches, so a patch is always a string.

#![allow(unreachable_pub)] // fuzz targets use these items

use std::collections::BTreeSet;
use std::fmt::Write;

use sha1::{Digest, Sha1};
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};

use super::changes::FileChange;
use super::hex;

const CONTEXT: usize = 3;
/// Maximum characters of a hunk heading.
const MAX_HEADING_CHARS: usize = 80;

/// Implements [`super::Workspace::patch`].
pub fn patch(changes: &[FileChange]) -> String {
    let mut out = String::new();
    for changed in changes.iter().filter(|c| c.oversized.is_none()) {
        let is_link = |mode: Option<u32>| mode == Some(0o120_000);
        let kinds_differ = is_link(changed.base_mode) != is_link(changed.mode);
        if changed.base.is_some() && changed.now.is_some() && kinds_differ {
            // git shows a file that becomes a link as two steps.
            let deletion = FileChange {
                now: None,
                mode: None,
                ..changed.clone()
            };
            let new = FileChange {
                base: None,
                base_mode: None,
                ..changed.clone()
            };
            write_file(&mut out, &deletion);
            write_file(&mut out, &new);
        } else {
            write_file(&mut out, changed);
        }
    }
    out
}

fn write_file(out: &mut String, changed: &FileChange) {
    let (old, new) = (quoted("a/", &changed.path), quoted("b/", &changed.path));
    let (base_mode, mode) = (
        changed.base_mode.unwrap_or(0o100_644),
        changed.mode.unwrap_or(0o100_644),
    );
    let modes = match (&changed.base, &changed.now) {
        (None, _) => format!("new file mode {mode:06o}\n"),
        (_, None) => format!("deleted file mode {base_mode:06o}\n"),
        _ if base_mode != mode => format!("old mode {base_mode:06o}\nnew mode {mode:06o}\n"),
        _ => String::new(),
    };
    let _ = write!(out, "diff --git {old} {new}\n{modes}");
    if changed.base == changed.now {
        return;
    }
    let before = changed.base.as_deref().unwrap_or_default();
    let after = changed.now.as_deref().unwrap_or_default();
    // A file that does not exist has zeros.
    let id = |content: Option<&[u8]>| content.map_or_else(|| "0".repeat(40), blob_id);
    let ids = (id(changed.base.as_deref()), id(changed.now.as_deref()));
    let is_kept = changed.base.is_some() && changed.now.is_some() && base_mode == mode;
    let suffix = match is_kept {
        true => format!(" {mode:06o}"),
        false => String::new(),
    };
    let (Some(old_text), Some(new_text)) = (as_text(before), as_text(after)) else {
        let _ = writeln!(out, "index {}..{}{suffix}\nGIT binary patch", ids.0, ids.1);
        literal(out, after);
        return;
    };
    let _ = writeln!(out, "index {}..{}{suffix}", &ids.0[..10], &ids.1[..10]);
    if old_text.is_empty() && new_text.is_empty() {
        return;
    }
    // A tab ends a name with spaces in it.
    let end = if changed.path.contains(' ') && !old.starts_with('"') {
        "\t"
    } else {
        ""
    };
    for (sign, content, name) in [("---", &changed.base, old), ("+++", &changed.now, new)] {
        let _ = match content {
            Some(_) => writeln!(out, "{sign} {name}{end}"),
            None => writeln!(out, "{sign} /dev/null"),
        };
    }
    let is_python = changed.path.ends_with(".py");
    out.push_str(&unified(old_text, new_text, is_python));
}

fn as_text(bytes: &[u8]) -> Option<&str> {
    if bytes.contains(&0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// Returns the line numbers in `after`, from 1, of lines that `before` does not have.
pub fn added_lines(before: &str, after: &str) -> BTreeSet<usize> {
    let ops = capture_diff_slices(Algorithm::Myers, &lines(before), &lines(after));
    let added = ops.iter().filter(|op| op.tag() != DiffTag::Equal);
    added
        .flat_map(|op| op.new_range().map(|at| at + 1))
        .collect()
}

/// Returns the hunks of a unified diff, without file names. For Python code, hunks name their function or class.
pub fn unified(before: &str, after: &str, is_python: bool) -> String {
    let (old, new) = (lines(before), lines(after));
    let ops = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut out = String::new();
    for group in group_diff_ops(ops, CONTEXT) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else {
            continue;
        };
        let start = first.old_range().start;
        let heading = match is_python {
            true => heading(&old[..start]),
            false => String::new(),
        };
        let _ = writeln!(
            out,
            "@@ -{} +{} @@{heading}",
            span(start, last.old_range().end),
            span(first.new_range().start, last.new_range().end)
        );
        for op in &group {
            write_op(&mut out, op, &old, &new);
        }
    }
    out
}

/// Returns the last line before a hunk that begins a function or class, as git shows it for files of the type `python`.
fn heading(before: &[&str]) -> String {
    let is_head = |line: &&&str| {
        let line = line.trim_start();
        let line = line.strip_prefix("async ").map_or(line, str::trim_start);
        line.starts_with("def ") || line.starts_with("class ")
    };
    let head_line = before.iter().rev().find(is_head);
    let line = head_line.map(|line| line.trim()).unwrap_or_default();
    let heading: String = line.chars().take(MAX_HEADING_CHARS).collect();
    match heading.is_empty() {
        true => heading,
        false => format!(" {heading}"),
    }
}

fn write_op(out: &mut String, op: &DiffOp, old: &[&str], new: &[&str]) {
    let mut put = |sign: char, lines: &[&str]| {
        for line in lines {
            out.push(sign);
            out.push_str(line);
            if !line.ends_with('\n') {
                out.push_str("\n\\ No newline at end of file\n");
            }
        }
    };
    match op.tag() {
        DiffTag::Equal => put(' ', &old[op.old_range()]),
        _ => {
            put('-', &old[op.old_range()]);
            put('+', &new[op.new_range()]);
        }
    }
}

/// Splits text into lines with their line ends; a lone carriage return is not a line end.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn span(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        n => format!("{},{n}", start + 1),
    }
}

/// Returns git's id of a file with this content.
pub fn blob_id(content: &[u8]) -> String {
    let mut hash = Sha1::new();
    hash.update(format!("blob {}\0", content.len()));
    hash.update(content);
    hex(&hash.finalize())
}

/// Formats a name like git: quoted in C style if it contains unusual characters.
fn quoted(prefix: &str, path: &str) -> String {
    let plain = path
        .bytes()
        .all(|b| (0x20..0x7f).contains(&b) && b != b'"' && b != b'\\');
    if plain {
        return format!("{prefix}{path}");
    }
    let mut out = format!("\"{prefix}");
    for b in path.bytes() {
        match b {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\t' => out.push_str("\\t"),
            b'\r' => out.push_str("\\r"),
            0x20..0x7f => out.push(char::from(b)),
            _ => {
                let _ = write!(out, "\\{b:03o}");
            }
        }
    }
    out.push('"');
    out
}

/// Writes a whole content in the format of git's binary patches: deflated, in lines of base 85.
fn literal(out: &mut String, content: &[u8]) {
    const DIGITS: &[u8; 85] =
        b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~";
    let packed = miniz_oxide::deflate::compress_to_vec_zlib(content, 9);
    let _ = writeln!(out, "literal {}", content.len());
    for line in packed.chunks(52) {
        let length = u8::try_from(line.len()).unwrap_or(52);
        out.push(char::from(if length <= 26 {
            b'A' + length - 1
        } else {
            b'a' + length - 27
        }));
        for group in line.chunks(4) {
            let mut word = [0; 4];
            word[..group.len()].copy_from_slice(group);
            let mut value = u32::from_be_bytes(word);
            let mut digits = [0; 5];
            for digit in digits.iter_mut().rev() {
                *digit = DIGITS[(value % 85) as usize];
                value /= 85;
            }
            out.extend(digits.map(char::from));
        }
        out.push('\n');
    }
    out.push('\n');
}
