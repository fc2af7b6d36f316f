//! Renders tables as LaTeX, for papers. They need the packages `booktabs` and `graphicx`.

use super::{Column, MAX_TEXT_LEN, Table};
use crate::untrusted_text::excerpt;

/// Shrinks a table that is wider than the line, and leaves others at their size.
const FITTING: &str = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%";
/// Characters on a line of an article (345 pt) at the size of footnotes.
const LINE_CHARS: usize = 86;
/// Minimum characters for figures: two rates with their intervals. Longer labels are shrunk.
const FIGURES_CHARS: usize = 58;
/// Characters that the space between two columns takes.
const GAP_CHARS: usize = 2;

/// Renders a table as a `tabular`, with its caption and the packages that it needs as comments. A table that is wider
/// than the line becomes several, one below the other.
pub(super) fn latex(table: &Table) -> String {
    let parts: Vec<String> = column_groups(table)
        .iter()
        .map(|columns| tabular(table, columns))
        .collect();
    format!(
        "% {}\n% Needs \\usepackage{{booktabs,graphicx}}\n{}",
        excerpt(&table.caption, MAX_TEXT_LEN),
        parts.join("\\par\\medskip\\noindent\n")
    )
}

/// Splits the columns into groups that fit on a line. Each group starts with the leading columns of words.
fn column_groups(table: &Table) -> Vec<Vec<usize>> {
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|at| width(table, at) + GAP_CHARS)
        .collect();
    let words = table.columns.iter().take_while(|c| !c.right).count();
    let labels: usize = widths.iter().take(words).sum();
    let max = LINE_CHARS.max(labels + FIGURES_CHARS);
    let mut groups = Vec::new();
    let mut group: Vec<usize> = (0..words).collect();
    let mut used = labels;
    for (at, width) in widths.iter().enumerate().skip(words) {
        if used + width > max && group.len() > words {
            groups.push(group);
            group = (0..words).collect();
            used = labels;
        }
        group.push(at);
        used += width;
    }
    groups.push(group);
    groups
}

/// Returns the width of a column in characters: of its longest cell, or of the longest word in its heading.
fn width(table: &Table, at: usize) -> usize {
    let words = table.columns[at].title.split_whitespace();
    let cells = table.rows.iter().filter_map(|row| row.get(at));
    let texts = words.chain(cells.map(|cell| cell.text.as_str()));
    texts.map(|text| text.chars().count()).max().unwrap_or(0)
}

fn tabular(table: &Table, columns: &[usize]) -> String {
    let alignment = columns.iter().map(|at| match is_prose(table, *at) {
        true => "p{\\linewidth}",
        false => alignment(&table.columns[*at]),
    });
    let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
    let head = columns
        .iter()
        .map(|at| heading(&table.columns[*at], width(table, *at)));
    let rows = table.rows.iter().map(|row| {
        let cells = columns.iter().filter_map(|at| row.get(*at));
        line(cells.map(|cell| escape(&cell.text)).collect())
    });
    format!(
        "{FITTING}\n\\footnotesize\\setlength{{\\tabcolsep}}{{4pt}}%\n\
         \\begin{{tabular}}{{{}}}\n\\toprule\n{}\\midrule\n{}\\bottomrule\n\\end{{tabular}}}}%\n",
        alignment.collect::<String>(),
        line(head.collect()),
        rows.collect::<String>()
    )
}

fn alignment(column: &Column) -> &'static str {
    if column.right { "r" } else { "l" }
}

/// Returns whether the column is the whole table, and its sentences need several lines.
fn is_prose(table: &Table, at: usize) -> bool {
    table.columns.len() == 1 && width(table, at) > LINE_CHARS
}

/// Renders the heading of a column. It is broken between words if it is wider than the column.
fn heading(column: &Column, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in column.title.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    let escaped: Vec<String> = lines.iter().map(|line| escape(line)).collect();
    match escaped.len() {
        0 | 1 => escaped.concat(),
        _ => format!(
            "\\shortstack[{}]{{{}}}",
            alignment(column),
            escaped.join("\\\\")
        ),
    }
}

/// Escapes characters with a meaning in LaTeX, and symbols that its default fonts lack.
fn escape(text: &str) -> String {
    let text = excerpt(text, MAX_TEXT_LEN);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                escaped.push('\\');
                escaped.push(c);
            }
            // At the start of a row, these would be arguments of the line break before it.
            '[' => escaped.push_str("{[}"),
            '*' => escaped.push_str("{*}"),
            // The default font has a dash in its place.
            '|' => escaped.push_str("\\textbar{}"),
            '\\' => escaped.push_str("\\textbackslash{}"),
            '~' => escaped.push_str("\\textasciitilde{}"),
            '^' => escaped.push_str("\\textasciicircum{}"),
            '<' => escaped.push_str("$<$"),
            '>' => escaped.push_str("$>$"),
            '→' => escaped.push_str("$\\rightarrow$"),
            'Δ' => escaped.push_str("$\\Delta$"),
            '×' => escaped.push_str("$\\times$"),
            '−' => escaped.push_str("$-$"),
            '≤' => escaped.push_str("$\\leq$"),
            '–' => escaped.push_str("--"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
