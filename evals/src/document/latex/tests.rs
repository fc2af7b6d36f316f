use super::*;

#[test]
fn table_is_escaped_for_latex() {
    let mut table = Table::new("A & B\n\\input{x}")
        .words("Set")
        .figures(&["F→P"]);
    table.labelled(["a_b\\[1]"], ["37.0 %"]);
    table.labelled(["*|x"], ["0"]);
    assert_eq!(
        latex(&table),
        "% A & B \\input{x}\n% Needs \\usepackage{booktabs,graphicx}\n\
             \\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n\
             \\footnotesize\\setlength{\\tabcolsep}{4pt}%\n\
             \\begin{tabular}{lr}\n\\toprule\nSet & F$\\rightarrow$P \\\\\n\\midrule\n\
             a\\_b\\textbackslash{}{[}1] & 37.0 \\% \\\\\n{*}\\textbar{}x & 0 \\\\\n\\bottomrule\n\\end{tabular}}%\n"
    );
}

#[test]
fn wide_table_is_split_and_repeats_labels() {
    let rate = "37.0 % (n = 449, 32.6–41.5)";
    let mut table = Table::new("Rates").words("System").figures(&[
        "F→P, strict",
        "SWT-bench success",
        "TDD-Bench F→P",
        "Runs not graded",
    ]);
    table.labelled(["testwright@gpt-5-mini"], [rate, rate, rate, "0"]);
    assert_eq!(column_groups(&table), [vec![0, 1, 2], vec![0, 3, 4]]);
    let text = latex(&table);
    assert_eq!(text.matches("testwright@gpt-5-mini & ").count(), 2);
    assert!(
        text.contains("}%\n\\par\\medskip\\noindent\n\\resizebox"),
        "{text}"
    );
    assert!(
        text.contains("& \\shortstack[r]{Runs\\\\not\\\\graded} \\\\\n\\midrule"),
        "{text}"
    );
    let mut remarks = Table::new("Remarks").words("Remark");
    remarks.labelled(["word ".repeat(30)], [""; 0]);
    assert!(latex(&remarks).contains("\\begin{tabular}{p{\\linewidth}}"));
    // A long label leaves room for figures.
    table.labelled(["x".repeat(90)], [rate, rate, rate, "0"]);
    assert_eq!(column_groups(&table).len(), 2);
}
