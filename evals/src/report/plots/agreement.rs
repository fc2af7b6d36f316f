//! Strict against official verdicts: four fields for each prediction set and public harness, darker for more instances.

use super::{Plot, WIDTH};
use crate::document::svg::{Anchor, Svg};
use crate::report::{Report, VerdictAgreement};

const FIELD: (f64, f64) = (62.0, 34.0);

pub(super) fn plots(report: &Report, labels: &[String]) -> Vec<Plot> {
    labels
        .iter()
        .zip(report.details.values())
        .map(|(label, details)| {
            let mut svg = Svg::new(WIDTH);
            let mut description = format!("{label}: instances by verdict.");
            for (at, (name, agreement)) in [
                ("SWT-bench success", &details.strict_against_swt),
                ("TDD-Bench F→P", &details.strict_against_tdd),
            ]
            .into_iter()
            .enumerate()
            {
                matrix(&mut svg, 194.0 * at as f64, name, agreement);
                description += &format!(
                    " {name}: both {}, only strict {}, only official {}, neither {}.",
                    agreement.both,
                    agreement.only_strict,
                    agreement.only_official,
                    agreement.neither
                );
            }
            Plot {
                caption: label.clone(),
                svg: svg.finish(122.0, &description),
            }
        })
        .collect()
}

fn matrix(svg: &mut Svg, left: f64, name: &str, agreement: &VerdictAgreement) {
    let VerdictAgreement {
        both,
        only_strict,
        only_official,
        neither,
    } = *agreement;
    let most = [both, only_strict, only_official, neither]
        .into_iter()
        .max()
        .unwrap_or_default()
        .max(1);
    let x = |column: usize| left + 58.0 + (FIELD.0 + 3.0) * column as f64;
    let y = |row: usize| 44.0 + (FIELD.1 + 3.0) * row as f64;
    svg.text("head", Anchor::Start, (left, 14.0), name);
    for (at, word) in ["yes", "no"].into_iter().enumerate() {
        let official = format!("official {word}");
        svg.text(
            "axis",
            Anchor::Middle,
            (x(at) + FIELD.0 / 2.0, 38.0),
            &official,
        );
        let strict = format!("strict {word}");
        svg.text("axis", Anchor::End, (left + 53.0, y(at) + 21.0), &strict);
    }
    let fields = [
        (0, 0, both, "agree", "both"),
        (1, 0, only_strict, "differ", "only strict"),
        (0, 1, only_official, "differ", "only official"),
        (1, 1, neither, "agree", "neither"),
    ];
    for (column, row, count, class, word) in fields {
        let strength = if count == 0 {
            0.04
        } else {
            0.14 + 0.4 * count as f64 / most as f64
        };
        let about = format!("{name}, {word}: {count} instances");
        svg.faint_bar(class, (x(column), y(row)), FIELD, strength, &about);
        let middle = (x(column) + FIELD.0 / 2.0, y(row) + FIELD.1 / 2.0 + 5.0);
        svg.text("count", Anchor::Middle, middle, &count.to_string());
    }
}
