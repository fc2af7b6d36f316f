//! A forest plot: rates as dots with their intervals as whiskers, one row for each prediction set, under the name of what is
//! measured.

use super::{Plot, WIDTH};
use crate::document::format::{letter, percent};
use crate::document::svg::{Anchor, Svg, cut};
use crate::report::details::{Details, Group};
use crate::report::sections::names;
use crate::report::{Report, Summary};
use crate::statistics::{Mean, Rate};

/// What one dot stands for.
struct Dot {
    /// The set's position in the report.
    set: usize,
    value: Option<f64>,
    interval: Option<[f64; 2]>,
    /// Behind the value, e.g. its denominator.
    beside: String,
}

impl Dot {
    fn rate(set: usize, rate: &Rate) -> Dot {
        Dot {
            set,
            value: rate.rate,
            interval: rate.interval,
            beside: format!("{}/{}", rate.numerator, rate.denominator),
        }
    }

    fn mean(set: usize, mean: &Mean) -> Dot {
        Dot {
            set,
            value: mean.mean,
            interval: mean.interval,
            beside: format!("n = {}", mean.denominator),
        }
    }
}

type Measure = (&'static str, fn(usize, &Summary) -> Dot);

const RATES: [Measure; 10] = [
    ("Applicability", |at, s| Dot::rate(at, &s.applicability)),
    ("F→×", |at, s| Dot::rate(at, &s.fail_to_any)),
    ("F→P, strict", |at, s| Dot::rate(at, &s.fail_to_pass)),
    ("SWT-bench success", |at, s| Dot::rate(at, &s.success)),
    ("SWT-bench F→P", |at, s| {
        Dot::rate(at, &s.swt_fail_to_pass)
    }),
    ("P→P", |at, s| Dot::rate(at, &s.pass_to_pass)),
    ("ΔC, all", |at, s| Dot::mean(at, &s.coverage_delta_all)),
    ("TDD-Bench F→P", |at, s| {
        Dot::rate(at, &s.tdd_fail_to_pass)
    }),
    ("tddScore", |at, s| Dot::mean(at, &s.tdd_score)),
    ("Adequacy", |at, s| Dot::mean(at, &s.adequacy)),
];

pub(super) fn rates(report: &Report) -> Vec<Plot> {
    let rows: Vec<(String, Vec<Dot>)> = RATES
        .into_iter()
        .map(|(name, of)| {
            let summaries = report.summary.values().enumerate();
            (
                name.to_owned(),
                summaries.map(|(at, s)| of(at, s)).collect(),
            )
        })
        .collect();
    // Two columns where there is room.
    let half = rows.len().div_ceil(2);
    rows.chunks(half)
        .zip([
            "Rates with 95 % intervals",
            "Rates and means with 95 % intervals",
        ])
        .map(|(rows, caption)| plot(caption, rows))
        .collect()
}

pub(super) fn repositories(report: &Report) -> Vec<Plot> {
    let caption = "Strict F→P by repository, 95 % intervals";
    grouped(caption, report, |d| &d.by_repository)
}

pub(super) fn lengths(report: &Report) -> Vec<Plot> {
    let caption = "Strict F→P by length of the issue in tokens, 95 % intervals";
    grouped(caption, report, |d| &d.by_issue_length)
}

fn grouped(caption: &str, report: &Report, of: fn(&Details) -> &[Group]) -> Vec<Plot> {
    let rows: Vec<(String, Vec<Dot>)> = names(report, of)
        .into_iter()
        .map(|name| {
            let details = report.details.values().enumerate();
            let dots = details.filter_map(|(at, d)| {
                let group = of(d).iter().find(|g| g.name == name)?;
                Some(Dot::rate(at, &group.fail_to_pass))
            });
            (name.to_owned(), dots.collect())
        })
        .collect();
    let columns = if rows.len() > 5 { 2 } else { 1 };
    rows.chunks(rows.len().div_ceil(columns).max(1))
        .map(|rows| plot(caption, rows))
        .collect()
}

const LEFT: f64 = 30.0;
const RIGHT: f64 = 254.0;

fn plot(caption: &str, rows: &[(String, Vec<Dot>)]) -> Plot {
    let mut svg = Svg::new(WIDTH);
    let x = |share: f64| LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT);
    let height = |dots: &[Dot]| 22.0 + 16.0 * dots.len() as f64 + 6.0;
    let bottom: f64 = rows.iter().map(|(_, dots)| height(dots)).sum();
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        svg.line("grid", (x(share), 18.0), (x(share), bottom));
        let label = format!("{:.0} %", 100.0 * share);
        svg.text("axis", Anchor::Middle, (x(share), bottom + 14.0), &label);
    }
    let mut description = format!("{caption}.");
    let mut top = 0.0;
    for (name, dots) in rows {
        svg.text("head", Anchor::Start, (0.0, top + 14.0), &cut(name, 44));
        description += &format!(" {name}:");
        for (at, dot) in dots.iter().enumerate() {
            let y = top + 22.0 + 16.0 * at as f64 + 7.0;
            let (set, value) = (letter(dot.set), percent(dot.value));
            let class = format!("set s{}", dot.set % 6);
            let about = match dot.interval {
                Some([low, high]) => format!(
                    "{set}: {value} ({:.1} to {:.1}), {}",
                    100.0 * low,
                    100.0 * high,
                    dot.beside
                ),
                None => format!("{set}: {value}, {}", dot.beside),
            };
            svg.text("letter", Anchor::Start, (4.0, y + 4.0), &set);
            if let Some([low, high]) = dot.interval {
                svg.line(&format!("{class} whisker"), (x(low), y), (x(high), y));
            }
            if let Some(value) = dot.value {
                svg.dot(&class, (x(value), y), &about);
            }
            svg.text("value", Anchor::End, (RIGHT + 64.0, y + 4.0), &value);
            svg.text("axis", Anchor::End, (WIDTH, y + 4.0), &dot.beside);
            description += &format!(" {about};");
        }
        top += height(dots);
    }
    Plot {
        caption: caption.to_owned(),
        svg: svg.finish(bottom + 20.0, description.trim_end_matches(';')),
    }
}
