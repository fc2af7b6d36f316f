//! Renders documents as Markdown with short tables that a forge can display. Long tables are cut.

use super::{MAX_TEXT_LEN, Section, Table};
use crate::untrusted_text::excerpt;

/// Maximum rows of a table.
const ROWS: usize = 25;

/// Renders a document. `full_file` names the file with the complete data.
pub fn markdown(
    title: &str,
    facts: &[(impl AsRef<str>, String)],
    sections: &[Section],
    full_file: &str,
) -> String {
    let mut text = format!("# {}\n\n", escape(title));
    for (name, value) in facts {
        text += &format!("- {}: {}\n", escape(name.as_ref()), escape(value));
    }
    for section in sections {
        text += &format!("\n## {}\n", section.title);
        for note in &section.notes {
            text += &format!("\n{}\n", escape(note));
        }
        for of in &section.tables {
            text += &table(of, full_file);
        }
    }
    text
}

fn table(table: &Table, full_file: &str) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = format!("\n{}:\n\n", escape(&table.caption));
    text += &line(table.columns.iter().map(|c| escape(&c.title)).collect());
    let rules = table.columns.iter().map(|column| match column.right {
        true => "---:".to_owned(),
        false => "---".to_owned(),
    });
    text += &line(rules.collect());
    for row in table.rows.iter().take(ROWS) {
        text += &line(row.iter().map(|cell| escape(&cell.text)).collect());
    }
    let more = table.rows.len().saturating_sub(ROWS);
    if more > 0 {
        text += &format!("\nand {more} more: see `{full_file}`.\n");
    }
    text
}

/// Escapes Markdown, HTML and line breaks.
fn escape(text: &str) -> String {
    let text = excerpt(text, MAX_TEXT_LEN);
    let mut escaped = String::with_capacity(text.len());
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied().unwrap_or(' ');
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        match c {
            // An underscore inside a word has no meaning in Markdown.
            '_' if in_word(before) && in_word(after) => escaped.push('_'),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '~' | '@' | '$' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c => escaped.push(c),
        }
        before = c;
    }
    escaped
}

#[cfg(test)]
mod tests;
