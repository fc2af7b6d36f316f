//! Paths in the headers of a patch, for a project in a subfolder of its repository.

use super::patch::{split_header_names, unquote};

/// Returns the patch of a subfolder as a patch of the whole repository. `prefix` ends in `/`, or is empty.
pub fn with_prefix(patch: &str, prefix: &str) -> String {
    let moved = rewrite(patch, &|path| Some(format!("{prefix}{path}")));
    moved.unwrap_or_else(|| patch.to_owned())
}

/// Returns the patch of the whole repository as a patch of a subfolder, or `None` if it names a file elsewhere.
pub fn without_prefix(patch: &str, prefix: &str) -> Option<String> {
    rewrite(patch, &|path| path.strip_prefix(prefix).map(str::to_owned))
}

type Change<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Rewrites all paths in headers. Lines of hunks can look like headers, so they are counted.
fn rewrite(patch: &str, change: Change<'_>) -> Option<String> {
    let mut text = String::with_capacity(patch.len());
    // Lines of the old and of the new file that are still to come in the hunk.
    let (mut old, mut new) = (0_usize, 0_usize);
    for line in patch.split_inclusive('\n') {
        if old > 0 || new > 0 {
            let kind = line.as_bytes().first();
            old = old.saturating_sub(usize::from(!matches!(kind, Some(b'+' | b'\\'))));
            new = new.saturating_sub(usize::from(!matches!(kind, Some(b'-' | b'\\'))));
            text.push_str(line);
        } else if let Some(lengths) = hunk_lengths(line) {
            (old, new) = lengths;
            text.push_str(line);
        } else {
            let content = line.trim_end_matches(['\r', '\n']);
            text.push_str(&header(content, change)?);
            text.push_str(&line[content.len()..]);
        }
    }
    Some(text)
}

/// Returns the numbers of old and new lines of a hunk that begins with this line.
fn hunk_lengths(line: &str) -> Option<(usize, usize)> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, _) = rest.split_once(" @@")?;
    let length = |range: &str| match range.split_once(',') {
        Some((_, length)) => length.parse().ok(),
        None => Some(1),
    };
    Some((length(old)?, length(new)?))
}

fn header(line: &str, change: Change<'_>) -> Option<String> {
    if let Some(names) = line.strip_prefix("diff --git ") {
        let (old, new) = split_header_names(names);
        return Some(format!(
            "diff --git {} {}",
            below_letter(old, change)?,
            below_letter(new, change)?
        ));
    }
    for start in ["--- ", "+++ "] {
        if let Some(rest) = line.strip_prefix(start) {
            // git ends a name with blanks by a tab; other programs append a date.
            let (name, after) = rest.split_at(rest.find('\t').unwrap_or(rest.len()));
            return Some(format!("{start}{}{after}", below_letter(name, change)?));
        }
    }
    for start in ["rename from ", "rename to ", "copy from ", "copy to "] {
        if let Some(name) = line.strip_prefix(start) {
            return Some(format!("{start}{}", quote(&change(&unquote(name))?)));
        }
    }
    Some(line.to_owned())
}

/// Rewrites the path after `a/` or `b/`.
fn below_letter(name: &str, change: Change<'_>) -> Option<String> {
    let plain = unquote(name);
    match plain.split_once('/') {
        Some((letter, path)) if name != "/dev/null" => {
            Some(quote(&format!("{letter}/{}", change(path)?)))
        }
        _ => Some(name.to_owned()),
    }
}

/// Quotes a name as git does, if it needs quotes.
fn quote(name: &str) -> String {
    if !name.contains(|c: char| c.is_ascii_control() || c == '"' || c == '\\') {
        return name.to_owned();
    }
    let mut text = String::from("\"");
    for c in name.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_ascii_control() => text.push_str(&format!("\\{:03o}", u32::from(c))),
            c => text.push(c),
        }
    }
    text + "\""
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn only_headers_get_prefix() {
        let patch = "diff --git a/t/x.py b/t/x.py\nindex 1..2 100644\n--- a/t/x.py\n+++ b/t/x.py\n\
                     @@ -1,2 +1,2 @@ def f():\n-- a/old\n+++ b/new\n same\n\\ No newline at end of file\n\
                     diff --git a/n y.py b/n y.py\nnew file mode 100644\n--- /dev/null\n+++ b/n y.py\t\n@@ -0,0 +1 @@\n+x\n\
                     diff --git \"a/\\303\\244\\\".py\" b/z.py\nrename from \"\\303\\244\\\".py\"\nrename to z.py\n";
        let expected = "diff --git a/p/b/t/x.py b/p/b/t/x.py\nindex 1..2 100644\n--- a/p/b/t/x.py\n+++ b/p/b/t/x.py\n\
                     @@ -1,2 +1,2 @@ def f():\n-- a/old\n+++ b/new\n same\n\\ No newline at end of file\n\
                     diff --git a/p/b/n y.py b/p/b/n y.py\nnew file mode 100644\n--- /dev/null\n+++ b/p/b/n y.py\t\n@@ -0,0 +1 @@\n+x\n\
                     diff --git \"a/p/b/ä\\\".py\" b/p/b/z.py\nrename from \"p/b/ä\\\".py\"\nrename to p/b/z.py\n";
        assert_eq!(with_prefix(patch, "p/b/"), expected);
        assert_eq!(without_prefix(patch, "p/b/"), None);
        let back = without_prefix(expected, "p/b/").unwrap();
        assert_eq!(with_prefix(&back, "p/b/"), expected);
    }
}
