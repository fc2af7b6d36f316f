#![allow(clippy::unwrap_used)]
use super::*;
use crate::document::svg::{Anchor, Svg};

#[test]
fn tables_and_plots_become_files() {
    let folder = tempfile::tempdir().unwrap();
    let mut table = Table::new("By class, on the old code").words("Set");
    table.row(["a".into()]);
    let mut list = Table::new("Reasons").sentences("Reason");
    list.row(["b".into()]);
    let mut second = Table::new("By class, on the old code").words("Set");
    second.row(["c".into()]);
    let section = Section::new("rates", "Rates", [list, table, second]);
    write_tables(folder.path(), "tables", &[section]).unwrap();
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert!(text("tables/rates-by-class-on-the-old-code.tex").contains("\\toprule"));
    assert!(text("tables/rates-by-class-on-the-old-code-3.tex").contains("c \\\\"));
    assert!(!folder.path().join("tables/rates.tex").exists());
    let mut svg = Svg::new(10.0);
    svg.text("axis", Anchor::Start, (1.0, 1.0), "a");
    let plot = Plot {
        name: "x per run".to_owned(),
        caption: "A".to_owned(),
        svg: svg.finish(5.0, "x > y"),
    };
    write_plots(folder.path(), "cost", &[plot]).unwrap();
    let svg = text("plots/cost-x-per-run.svg");
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox="));
    assert!(svg.contains("aria-label=\"x &gt; y\"><style>"), "{svg}");
    assert!(!svg.contains("var("), "{svg}");
}
