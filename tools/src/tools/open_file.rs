//! `open_file`: shows a numbered window of a file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::line_numbers::{count, lines_between, numbered};
use crate::tool::{Context, Effect, Reply, Result, Tool, refusal};
use crate::workspace::forward;

const DEFAULT_LINES: usize = 100;
const MAX_LINES: usize = 400;

/// A tool that shows numbered lines of a file.
pub struct OpenFile;

/// Arguments of `open_file`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenFileArgs {
    #[schemars(example = "src/package/module.py")]
    /// The file.
    path: String,
    /// First line to show.
    #[schemars(extend("plain" = true))]
    first: Option<usize>,
    /// A line to centre on, instead of `first`.
    #[schemars(extend("unlisted" = true))]
    line: Option<usize>,
    /// Number of lines.
    #[schemars(extend("plain" = true))]
    lines: Option<usize>,
}

/// Lines of a file.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct OpenedLines {
    path: String,
    /// Number of the first line in `content`, counted from 1; 0 for an empty file.
    first: usize,
    last: usize,
    /// Total number of lines in the file.
    total: usize,
    content: String,
}

impl Tool for OpenFile {
    type Args = OpenFileArgs;
    type Data = OpenedLines;
    const NAME: &'static str = "open_file";
    const TITLE: &'static str = "Open a file";
    const DESCRIPTION: &'static str = "Show lines of a file, 100 by default.";
    const EFFECT: Effect = Effect::Reads;

    fn call(&self, context: &mut Context<'_>, args: Self::Args) -> Result<Reply<Self::Data>> {
        let relative = context.workspace.resolve_file(&args.path)?;
        let display_path = forward(&relative);
        let text = context.workspace.read_text(&relative)?;
        let total = text.lines().count();
        if total == 0 {
            let text = format!("{display_path} is empty.\n");
            let data = OpenedLines {
                path: display_path,
                ..OpenedLines::default()
            };
            return Ok(Reply::new(text, data));
        }
        let size = args.lines.unwrap_or(DEFAULT_LINES).clamp(1, MAX_LINES);
        let requested_line = args.line.or(args.first).unwrap_or(1);
        if requested_line > total {
            let lines = count(total, "line");
            return Err(refusal!("{display_path} has only {lines}."));
        }
        let first = match args.line {
            Some(line) => line
                .saturating_sub(size / 2)
                .min((total + 1).saturating_sub(size)),
            None => args.first.unwrap_or(1),
        }
        .max(1);
        let last = (first + size - 1).min(total);
        let mut out = format!("{display_path}, lines {first}-{last} of {total}\n");
        out.push_str(&numbered(&text, first, last));
        let below = total - last;
        if below > 0 {
            let next = last + 1;
            out.push_str(&format!("({below} more; continue with first={next})\n"));
        }
        let data = OpenedLines {
            path: display_path,
            first,
            last,
            total,
            content: lines_between(&text, first, last),
        };
        Ok(Reply::new(out, data))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use serde_json::json;

    use crate::testing::Fixture;

    #[test]
    fn windows_mention_remaining_lines() {
        let text: String = (1..=250).map(|n| format!("line {n}\n")).collect();
        let mut f = Fixture::new(&[("a.txt", text.as_bytes()), ("empty", b""), ("bin", b"\0")]);
        let mut open = |args| f.text("open_file", args);
        let top = open(json!({"path": "a.txt"}));
        assert!(
            top.starts_with("a.txt, lines 1-100 of 250\n  1  line 1\n"),
            "{top}"
        );
        assert!(
            top.ends_with("(150 more; continue with first=101)\n"),
            "{top}"
        );
        assert!(
            open(json!({"path": "a.txt", "line": 120, "lines": 3}))
                .contains("119  line 119\n120  line 120\n121")
        );
        assert!(
            open(json!({"path": "a.txt", "line": 249, "lines": 10}))
                .starts_with("a.txt, lines 241-250 of 250")
        );
        assert!(open(json!({"path": "a.txt", "first": 245})).ends_with("250  line 250\n"));
        assert_eq!(open(json!({"path": "empty"})), "empty is empty.\n");
        f.refuses(
            "open_file",
            json!({"path": "a.txt", "first": 251}),
            "only 250 lines",
        );
        f.refuses("open_file", json!({"path": "bin"}), "binary");
        f.refuses("open_file", json!({"path": "a.tx"}), "nearest are: a.txt");
        f.refuses("open_file", json!({"path": "../base.tar"}), "outside");
    }
}
