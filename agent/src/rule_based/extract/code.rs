//! Minimal lexing of Python: brackets, strings and comments.

/// Returns the code of a line, and its trailing comment without the `#`.
pub fn split_note(line: &str) -> (&str, &str) {
    match scan(line).comment {
        Some(at) => (line[..at].trim_end(), line[at + 1..].trim()),
        None => (line.trim_end(), ""),
    }
}

/// Returns whether all brackets are closed and no string is left open.
pub fn balanced(source: &str) -> bool {
    let mut depth = 0;
    let mut open = None;
    for line in source.lines() {
        let line_scan = scan_from(line, open);
        depth += line_scan.depth;
        open = line_scan.open;
        if depth < 0 {
            return false;
        }
    }
    depth == 0 && open.is_none()
}

/// Returns whether the code may have a string over several lines, whose white space counts.
pub fn has_long_string(code: &str) -> bool {
    code.contains("\"\"\"") || code.contains("'''")
}

/// Returns the offset after the bracket that closes the one at the start of a line.
pub(super) fn closing(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'#' => return None,
            b'"' | b'\'' => {
                let rest = &bytes[at..];
                let triple = rest.starts_with(b"\"\"\"") || rest.starts_with(b"\'\'\'");
                let mark = &rest[..if triple { 3 } else { 1 }];
                at += mark.len();
                while !bytes.get(at..)?.starts_with(mark) {
                    at += if *bytes.get(at)? == b'\\' { 2 } else { 1 };
                }
                at += mark.len();
                continue;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return line[..at].ends_with(')').then_some(at);
        }
    }
    None
}

struct LineScan {
    depth: i32,
    comment: Option<usize>,
    /// Triple quote that is still open at the end.
    open: Option<&'static str>,
}

fn scan(line: &str) -> LineScan {
    scan_from(line, None)
}

fn scan_from(line: &str, open: Option<&'static str>) -> LineScan {
    let bytes = line.as_bytes();
    let mut line_scan = LineScan {
        depth: 0,
        comment: None,
        open,
    };
    let mut quote: Option<&[u8]> = line_scan.open.map(str::as_bytes);
    let mut i = 0;
    while i < bytes.len() {
        let rest = &bytes[i..];
        match quote {
            Some(_) if rest[0] == b'\\' => i += 1,
            Some(mark) if rest.starts_with(mark) => {
                i += mark.len() - 1;
                quote = None;
            }
            Some(_) => {}
            None if rest.starts_with(b"\"\"\"") || rest.starts_with(b"'''") => {
                quote = Some(&rest[..3]);
                i += 2;
            }
            None if rest[0] == b'"' || rest[0] == b'\'' => quote = Some(&rest[..1]),
            None if rest[0] == b'#' => {
                line_scan.comment = Some(i);
                break;
            }
            None if b"([{".contains(&rest[0]) => line_scan.depth += 1,
            None if b")]}".contains(&rest[0]) => line_scan.depth -= 1,
            None => {}
        }
        i += 1;
    }
    line_scan.open = match quote {
        Some(b"\"\"\"") => Some("\"\"\""),
        Some(b"'''") => Some("'''"),
        // A single quote does not extend past the end of a line.
        _ => None,
    };
    line_scan
}
