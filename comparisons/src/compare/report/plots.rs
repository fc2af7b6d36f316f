//! The cost plots of the report, as inline SVG: they show which systems are on the Pareto frontier.

use testwright_evals::document::format::{letter, percent};
use testwright_evals::document::svg::{Anchor, Svg};
use testwright_evals::document::{Plot, WIDTH, html};

use super::sections::{costs, dollars_of_runs};
use super::{ComparisonReport, SystemSummary};

/// Returns the plots of a section.
pub(super) fn plots(section: &str, report: &ComparisonReport) -> Vec<Plot> {
    if section != "cost" {
        return Vec::new();
    }
    // Without the price of a model, tokens take the place of dollars.
    let spending = match dollars_of_runs(costs(report)) > Some(0.0) {
        true => frontier(report, "dollars per run", |s| {
            s.cost.dollars.unwrap_or_default()
        }),
        false => frontier(report, "tokens per run", |s| s.cost.tokens),
    };
    let calls = frontier(report, "model calls per run", |s| s.cost.model_calls);
    spending.into_iter().chain(calls).collect()
}

/// Left edge of the cost axis.
const EDGE: f64 = 40.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 242.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 15.0;

/// Plots success against cost. The cost axis is logarithmic, since approaches differ by orders of magnitude.
fn frontier(
    report: &ComparisonReport,
    unit: &str,
    cost: fn(&SystemSummary) -> f64,
) -> Option<Plot> {
    let mut points: Vec<(usize, f64, f64)> = report
        .systems
        .iter()
        .enumerate()
        .filter(|(_, s)| s.system.has_runs())
        .filter_map(|(at, s)| Some((at, cost(s), s.fail_to_pass.value?)))
        .collect();
    let costs = || {
        points
            .iter()
            .map(|(_, cost, _)| *cost)
            .filter(|cost| *cost > 0.0)
    };
    let (least, most) = (costs().reduce(f64::min)?, costs().reduce(f64::max)?);
    let low = least.log10().floor();
    let high = most.log10().ceil().max(low + 1.0);
    // A logarithmic scale has no zero, so free systems get their own position at the edge.
    let is_free = |cost: f64| cost <= 0.0;
    let any_free = points.iter().any(|(_, cost, _)| is_free(*cost));
    let begin = if any_free { EDGE + 34.0 } else { EDGE };
    let x = |cost: f64| match is_free(cost) {
        true => EDGE,
        false => begin + (cost.log10() - low) / (high - low) * (WIDTH - 20.0 - begin),
    };
    let y = |share: f64| BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP);
    let mut svg = Svg::new(WIDTH);
    svg.text("axis", Anchor::Start, (0.0, 11.0), "Strict F→P");
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        svg.line("grid", (EDGE, y(share)), (WIDTH - 10.0, y(share)));
        let label = format!("{:.0} %", 100.0 * share);
        svg.text("axis", Anchor::End, (36.0, y(share) + 4.0), &label);
    }
    if any_free {
        svg.line("grid", (EDGE, TOP), (EDGE, BOTTOM));
        svg.text("axis", Anchor::Middle, (EDGE, BOTTOM + 15.0), "0");
        // Mark the break in the scale.
        let broken = ((EDGE + begin) / 2.0, BOTTOM + 4.0);
        svg.text("axis", Anchor::Middle, broken, "//");
    }
    let mut power = low;
    while power <= high {
        let at = x(10f64.powf(power));
        svg.line("grid", (at, TOP), (at, BOTTOM));
        let label = match power {
            p if p < 0.0 => format!("{:.*}", (-p) as usize, 10f64.powf(p)),
            p if p < 3.0 => format!("{:.0}", 10f64.powf(p)),
            p if p < 6.0 => format!("{:.0}k", 10f64.powf(p - 3.0)),
            p => format!("{:.0}M", 10f64.powf(p - 6.0)),
        };
        svg.text("axis", Anchor::Middle, (at, BOTTOM + 15.0), &label);
        power += 1.0;
    }
    svg.text("axis", Anchor::End, (WIDTH, BOTTOM + 30.0), unit);
    points.sort_by(|a, b| a.1.total_cmp(&b.1).then(b.2.total_cmp(&a.2)));
    let mut best = f64::NEG_INFINITY;
    let mut before: Option<(f64, f64)> = None;
    for (at, cost, share) in &points {
        // Upper bounds and systems with extra inputs are not alternatives in practice, so the frontier excludes them.
        let system = &report.systems[*at].system;
        if system.oracle_samples.is_some() || !system.extra_inputs.is_empty() || *share <= best {
            continue;
        }
        best = *share;
        let here = (x(*cost), y(*share));
        if let Some(before) = before {
            svg.line("set s0 whisker", before, here);
        }
        before = Some(here);
    }
    let class = |at: usize| format!("set {}", html::class(at));
    let mut description = format!("Strict F→P by {unit}.");
    let mut labels: Vec<(f64, f64)> = Vec::new();
    for (at, cost, share) in &points {
        let name = &report.systems[*at].name;
        let (value, figure) = (percent(Some(*share)), plain_figure(*cost));
        let about = format!("{name}: {value} at {figure} {unit}");
        svg.dot(&class(*at), (x(*cost), y(*share)), &about);
        let mut beside = (x(*cost) + 7.0, y(*share) - 5.0);
        // Move the label below labels that are already there.
        let is_on =
            |a: &(f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 12.0 && (a.1 - b.1).abs() < 11.0;
        while labels.iter().any(|label| is_on(label, beside)) {
            beside.1 += 11.0;
        }
        labels.push(beside);
        svg.text("letter", Anchor::Start, beside, &letter(*at));
        description.push_str(&format!(" {about};"));
    }
    // The legend is in the picture, because a paper shows it without the page around it.
    points.sort_by_key(|(at, ..)| *at);
    let mut bottom = BOTTOM + 36.0;
    for (at, ..) in &points {
        bottom += LEGEND_LINE;
        svg.dot(&class(*at), (EDGE, bottom - 4.0), &report.systems[*at].name);
        let label = report.systems[*at].label(*at);
        svg.text("axis", Anchor::Start, (EDGE + 10.0, bottom), &label);
    }
    let scale = match any_free {
        true => "logarithmic, with a separate position for 0",
        false => "logarithmic",
    };
    Some(Plot {
        name: unit.to_owned(),
        caption: format!("Strict F→P by cost ({unit}, {scale})"),
        svg: svg.finish(bottom + 6.0, &description),
    })
}

/// Formats a figure with three significant digits; larger numbers are rounded to integers.
fn plain_figure(number: f64) -> String {
    if number >= 100.0 {
        return format!("{number:.0}");
    }
    let magnitude = match number > 0.0 {
        true => number.log10().floor() as i32,
        false => 0,
    };
    let decimals = (2 - magnitude).clamp(0, 8);
    let text = format!("{number:.*}", decimals as usize);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests;
