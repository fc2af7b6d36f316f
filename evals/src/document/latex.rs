//! Renders tables as LaTeX, for papers. They need the packages `booktabs` and `graphicx`.

use super::{MAX_TEXT_LEN, Table};
use crate::untrusted_text::excerpt;

/// Shrinks a table that is wider than the line, and leaves others at their size.
const FITTING: &str = "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%";

/// Renders a table as a `tabular`, with its caption and the packages that it needs as comments.
pub(super) fn latex(table: &Table) -> String {
    let columns = table.columns.iter();
    let columns: String = columns.map(|c| if c.right { 'r' } else { 'l' }).collect();
    let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
    let head = table.columns.iter().map(|c| escape(&c.title)).collect();
    let rows = table.rows.iter().map(|row| {
        let cells = row.iter().map(|cell| escape(&cell.text));
        line(cells.collect())
    });
    format!(
        "% {}\n% Needs \\usepackage{{booktabs,graphicx}}\n{FITTING}\n\\setlength{{\\tabcolsep}}{{4pt}}%\n\
         \\begin{{tabular}}{{{columns}}}\n\\toprule\n{}\\midrule\n{}\\bottomrule\n\\end{{tabular}}}}%\n",
        excerpt(&table.caption, MAX_TEXT_LEN),
        line(head),
        rows.collect::<String>()
    )
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
mod tests {
    use super::*;

    #[test]
    fn table_is_escaped_for_latex() {
        let mut table = Table::new("A & B\n\\input{x}")
            .words("Set")
            .figures(&["F→P"]);
        table.labelled("a_b\\[1]", ["37.0 %"]);
        table.labelled("*|x", ["0"]);
        assert_eq!(
            latex(&table),
            "% A & B \\input{x}\n% Needs \\usepackage{booktabs,graphicx}\n\
             \\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n\\setlength{\\tabcolsep}{4pt}%\n\
             \\begin{tabular}{lr}\n\\toprule\nSet & F$\\rightarrow$P \\\\\n\\midrule\n\
             a\\_b\\textbackslash{}{[}1] & 37.0 \\% \\\\\n{*}\\textbar{}x & 0 \\\\\n\\bottomrule\n\\end{tabular}}%\n"
        );
    }
}
