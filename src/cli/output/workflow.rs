//! GitHub Actions: groups and errors in the log of a step, and escapes for untrusted text.
//!
//! The runner executes a line of the log as a command if it begins with `::` after white space, or if it contains `##[`
//! (`TryParseV2` and `TryParse` of its `ActionCommand.cs`). A command can mask words, mark files and stop other
//! commands, so untrusted text must not contain one.

use std::os::fd::AsFd;

use rustix::fs::FileType;

/// Returns whether the runner may read this stream: in a step of GitHub Actions, unless the stream is a file.
pub(super) fn reads(stream: impl AsFd) -> bool {
    let is_step = std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    let is_file = || {
        let stat = rustix::fs::fstat(stream);
        stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    };
    is_step && !is_file()
}

/// Formats a command, such as `::group::` and its title.
pub(super) fn command(name: &str, text: &str) -> String {
    let text = text.replace('%', "%25");
    let text = text.replace('\r', "%0D").replace('\n', "%0A");
    format!("::{name}::{text}")
}

/// Escapes the older form of commands in JSON text, where it can occur only in strings.
pub(super) fn escape_json(text: &str) -> String {
    text.replace("##[", "##\\u005b")
}

/// Escapes text that the runner would execute. Text may come in several parts.
#[derive(Default)]
pub(super) struct CommandEscaper {
    /// Whether the current line has a visible character already.
    is_in_line: bool,
    /// Number of `#` just before.
    hashes: usize,
}

impl CommandEscaper {
    /// Escapes the next part of a text.
    pub(super) fn escape(&mut self, text: &str) -> String {
        let mut result = String::with_capacity(text.len());
        for c in text.chars() {
            let is_command = (c == ':' && !self.is_in_line) || (c == '[' && self.hashes >= 2);
            if is_command {
                result.extend(c.escape_unicode());
            } else {
                result.push(c);
            }
            self.is_in_line = match c {
                '\n' | '\r' => false,
                c => self.is_in_line || !c.is_whitespace(),
            };
            self.hashes = if c == '#' { self.hashes + 1 } else { 0 };
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_text_are_escaped() {
        let escape = |parts: &[&str]| -> String {
            let mut escaper = CommandEscaper::default();
            parts.iter().map(|part| escaper.escape(part)).collect()
        };
        let cases: [(&[&str], &str); 7] = [
            (&["::add-mask::a"], "\\u{3a}:add-mask::a"),
            (&["a\n \u{a0}\t::error::b"], "a\n \u{a0}\t\\u{3a}:error::b"),
            (&["a\r\n", "  ", "::error::b"], "a\r\n  \\u{3a}:error::b"),
            (&["", ":", ":error::b"], "\\u{3a}:error::b"),
            (&["x ##", "[group]y"], "x ##\\u{5b}group]y"),
            (&["###[a] #[b]"], "###\\u{5b}a] #[b]"),
            (&["tests/test_a.py::test_b"], "tests/test_a.py::test_b"),
        ];
        for (parts, expected) in cases {
            assert_eq!(escape(parts), expected);
        }
        assert_eq!(escape_json("\"##[a]\""), "\"##\\u005ba]\"");
    }

    #[test]
    fn command_text_stays_on_one_line() {
        assert_eq!(command("error", "50 %\r\n::b"), "::error::50 %25%0D%0A::b");
    }
}
