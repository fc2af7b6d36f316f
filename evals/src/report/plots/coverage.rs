//! Instances by change coverage: a histogram for each prediction set, the successful ones below.

use super::{Plot, WIDTH};
use crate::document::svg::{Anchor, Svg};
use crate::report::{Histogram, Report};

const LEFT: f64 = 34.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 136.0;

pub(super) fn plots(report: &Report, labels: &[String]) -> Vec<Plot> {
    let histograms = report.details.values().map(|d| &d.coverage);
    let most = histograms
        .clone()
        .flat_map(|h| h.success.iter().zip(&h.other).map(|(a, b)| a + b))
        .max()
        .unwrap_or_default()
        .max(1);
    labels
        .iter()
        .zip(histograms)
        .enumerate()
        .map(|(at, (label, histogram))| plot(at, label, histogram, most))
        .collect()
}

fn plot(set: usize, label: &str, histogram: &Histogram, most: u64) -> Plot {
    let mut svg = Svg::new(WIDTH);
    let steps = histogram.success.len().max(1) as f64;
    let width = (WIDTH - LEFT - 8.0) / steps;
    let high = |count: u64| (BOTTOM - TOP) * count as f64 / most as f64;
    for count in [0, most / 2, most] {
        let y = BOTTOM - high(count);
        svg.line("grid", (LEFT, y), (WIDTH - 8.0, y));
        svg.text(
            "axis",
            Anchor::End,
            (LEFT - 5.0, y + 4.0),
            &count.to_string(),
        );
    }
    let class = format!("set s{}", set % 6);
    svg.faint_bar(&class, (LEFT, 4.0), (11.0, 11.0), 1.0, "successful");
    svg.text("axis", Anchor::Start, (LEFT + 16.0, 14.0), "successful");
    svg.faint_bar(&class, (LEFT + 90.0, 4.0), (11.0, 11.0), 0.45, "others");
    svg.text("axis", Anchor::Start, (LEFT + 106.0, 14.0), "others");
    let mut description = format!("{label}: instances by ΔC, successful and others.");
    let counts = histogram.success.iter().zip(&histogram.other);
    for (at, (success, other)) in counts.enumerate() {
        let x = LEFT + width * at as f64 + 2.0;
        let range = format!("{:.1} to {:.1}", at as f64 / steps, (at + 1) as f64 / steps);
        let about = format!("ΔC {range}: {success} successful, {other} others");
        let (below, above) = (high(*success), high(*other));
        let size = |height: f64| (width - 4.0, height);
        svg.faint_bar(&class, (x, BOTTOM - below), size(below), 1.0, &about);
        svg.faint_bar(
            &class,
            (x, BOTTOM - below - above),
            size(above),
            0.45,
            &about,
        );
        description += &format!(" {range}: {success} and {other};");
    }
    for at in 0..=4 {
        let share = f64::from(at) / 4.0;
        let x = LEFT + width * steps * share;
        svg.text(
            "axis",
            Anchor::Middle,
            (x.min(WIDTH - 16.0), BOTTOM + 15.0),
            &share.to_string(),
        );
    }
    Plot {
        caption: label.to_owned(),
        svg: svg.finish(BOTTOM + 22.0, description.trim_end_matches(';')),
    }
}
