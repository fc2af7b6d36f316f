//! The plots of the report, as inline SVG: each stands for a table that is on the page too.

use testwright_evals::document::format::{letter, percent};
use testwright_evals::document::svg::{Anchor, Svg};
use testwright_evals::document::{Plot, WIDTH};

use super::{Report, SystemSummary};

/// The plots of a section.
pub fn plots(section: &str, report: &Report) -> Vec<Plot> {
    match section {
        "rates" => vec![rates(report)],
        "cost" => [spending(report), calls(report)]
            .into_iter()
            .flatten()
            .collect(),
        "confidence" => vec![precision(report)],
        "overlap" => upset(report).into_iter().collect(),
        "classes" => vec![classes(report)],
        _ => Vec::new(),
    }
}

fn class(at: usize) -> String {
    format!("set s{}", at % 6)
}

const LEFT: f64 = 30.0;
const RIGHT: f64 = 310.0;

/// A forest plot: a dot and a whisker a system.
fn rates(report: &Report) -> Plot {
    let mut svg = Svg::new(WIDTH);
    let x = |share: f64| LEFT + share.clamp(0.0, 1.0) * (RIGHT - LEFT);
    let bottom = 10.0 + 18.0 * report.systems.len() as f64;
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        svg.line("grid", (x(share), 4.0), (x(share), bottom));
        let label = format!("{:.0} %", 100.0 * share);
        svg.text("axis", Anchor::Middle, (x(share), bottom + 14.0), &label);
    }
    let mut description = "Strict F→P.".to_owned();
    for (at, s) in report.systems.iter().enumerate() {
        let y = 14.0 + 18.0 * at as f64;
        let value = percent(s.fail_to_pass.value);
        let about = format!("{}: {value}", s.name);
        svg.text("letter", Anchor::Start, (4.0, y + 4.0), &letter(at));
        if let Some([low, high]) = s.fail_to_pass.interval {
            let class = format!("{} whisker", class(at));
            svg.line(&class, (x(low), y), (x(high), y));
        }
        if let Some(share) = s.fail_to_pass.value {
            svg.dot(&class(at), (x(share), y), &about);
        }
        svg.text("value", Anchor::End, (WIDTH, y + 4.0), &value);
        description.push_str(&format!(" {about};"));
    }
    Plot {
        caption: "Strict F→P with 95 % intervals".to_owned(),
        svg: svg.finish(bottom + 20.0, &description),
    }
}

/// Where the scale of costs begins.
const EDGE: f64 = 40.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 230.0;

/// Success against dollars, or against tokens where something has no price.
fn spending(report: &Report) -> Option<Plot> {
    let priced = report.systems.iter().all(|s| s.cost.dollars.is_some());
    let priced = priced && report.systems.iter().any(|s| s.cost.dollars > Some(0.0));
    match priced {
        true => frontier(report, "dollars a run", |s| {
            s.cost.dollars.unwrap_or_default()
        }),
        false => frontier(report, "tokens a run", |s| s.cost.tokens),
    }
}

fn calls(report: &Report) -> Option<Plot> {
    frontier(report, "model calls a run", |s| s.cost.model_calls)
}

/// Success against cost; on a logarithmic scale, since approaches differ by orders of magnitude.
fn frontier(report: &Report, unit: &str, cost: fn(&SystemSummary) -> f64) -> Option<Plot> {
    let mut points: Vec<(usize, f64, f64)> = report
        .systems
        .iter()
        .enumerate()
        .filter_map(|(at, s)| Some((at, cost(s), s.fail_to_pass.value?)))
        .collect();
    let costs = || {
        points
            .iter()
            .map(|(_, cost, _)| *cost)
            .filter(|cost| *cost > 0.0)
    };
    let (least, most) = (costs().reduce(f64::min)?, costs().reduce(f64::max)?);
    let (low, high) = (
        least.log10().floor(),
        most.log10().ceil().max(least.log10().floor() + 1.0),
    );
    // What costs nothing has a place of its own at the edge: a logarithmic scale has none.
    let is_free = |cost: f64| cost <= 0.0;
    let any_free = points.iter().any(|(_, cost, _)| is_free(*cost));
    let begin = if any_free { EDGE + 34.0 } else { EDGE };
    let x = |cost: f64| match is_free(cost) {
        true => EDGE,
        false => begin + (cost.log10() - low) / (high - low) * (WIDTH - 20.0 - begin),
    };
    let y = |share: f64| BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP);
    let mut svg = Svg::new(WIDTH);
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        svg.line("grid", (EDGE, y(share)), (WIDTH - 10.0, y(share)));
        let label = format!("{:.0} %", 100.0 * share);
        svg.text("axis", Anchor::End, (36.0, y(share) + 4.0), &label);
    }
    if any_free {
        svg.line("grid", (EDGE, TOP), (EDGE, BOTTOM));
        svg.text("axis", Anchor::Middle, (EDGE, BOTTOM + 15.0), "0");
        // The scale is broken here.
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
        // An upper bound, and who is given more than the issue, is no system that one could use.
        let system = &report.systems[*at].system;
        if system.oracle_samples.is_some() || !system.given.is_empty() || *share <= best {
            continue;
        }
        best = *share;
        let here = (x(*cost), y(*share));
        if let Some(before) = before {
            svg.line("set s0 whisker", before, here);
        }
        before = Some(here);
    }
    let mut description = format!("Strict F→P by {unit}.");
    let mut labels: Vec<(f64, f64)> = Vec::new();
    for (at, cost, share) in &points {
        let name = &report.systems[*at].name;
        let (value, figure) = (percent(Some(*share)), plain_figure(*cost));
        let about = format!("{name}: {value} at {figure} {unit}");
        svg.dot(&class(*at), (x(*cost), y(*share)), &about);
        let mut beside = (x(*cost) + 7.0, y(*share) - 5.0);
        // Below those that are there.
        let is_on =
            |a: &(f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 12.0 && (a.1 - b.1).abs() < 11.0;
        while labels.iter().any(|label| is_on(label, beside)) {
            beside.1 += 11.0;
        }
        labels.push(beside);
        svg.text("letter", Anchor::Start, beside, &letter(*at));
        description.push_str(&format!(" {about};"));
    }
    let scale = match any_free {
        true => "logarithmic, with 0 apart from it",
        false => "logarithmic",
    };
    Some(Plot {
        caption: format!("Strict F→P against cost ({unit}, {scale})"),
        svg: svg.finish(BOTTOM + 36.0, &description),
    })
}

/// As people write it: three digits say enough of a mean, and a larger number is whole.
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

/// Precision against recall: a line a system that is more confident of one test than of another, a dot for the others.
fn precision(report: &Report) -> Plot {
    let mut svg = Svg::new(WIDTH);
    let x = |share: f64| 40.0 + share.clamp(0.0, 1.0) * (WIDTH - 60.0);
    let y = |share: f64| BOTTOM - share.clamp(0.0, 1.0) * (BOTTOM - TOP);
    for quarter in 0..=4 {
        let share = f64::from(quarter) / 4.0;
        let label = format!("{:.0} %", 100.0 * share);
        svg.line("grid", (40.0, y(share)), (WIDTH - 20.0, y(share)));
        svg.line("grid", (x(share), TOP), (x(share), BOTTOM));
        svg.text("axis", Anchor::End, (36.0, y(share) + 4.0), &label);
        svg.text("axis", Anchor::Middle, (x(share), BOTTOM + 15.0), &label);
    }
    svg.text("axis", Anchor::End, (WIDTH, BOTTOM + 30.0), "recall");
    let mut description = "Precision by recall.".to_owned();
    for (at, s) in report.systems.iter().enumerate() {
        let shares = s.by_confidence.iter().filter_map(|point| {
            let (precision, recall) = (point.precision.rate?, point.recall.rate?);
            let least = point
                .least
                .map_or_else(|| "any".to_owned(), |least| format!("{least:.2}"));
            Some((recall, precision, least))
        });
        let shares: Vec<(f64, f64, String)> = shares.collect();
        for pair in shares.windows(2) {
            let end = |(recall, precision, _): &(f64, f64, String)| (x(*recall), y(*precision));
            let class = format!("{} whisker", class(at));
            svg.line(&class, end(&pair[0]), end(&pair[1]));
        }
        for (first, (recall, precision, least)) in shares.iter().enumerate() {
            let (of_found, of_all) = (percent(Some(*precision)), percent(Some(*recall)));
            let about = format!(
                "{}, confidence {least}: precision {of_found}, recall {of_all}",
                s.name
            );
            svg.dot(&class(at), (x(*recall), y(*precision)), &about);
            if first == 0 {
                let beside = (x(*recall) + 7.0, y(*precision) - 5.0);
                svg.text("letter", Anchor::Start, beside, &letter(at));
            }
            description.push_str(&format!(" {about};"));
        }
    }
    Plot {
        caption: "Precision against recall, by the least confidence".to_owned(),
        svg: svg.finish(BOTTOM + 36.0, &description),
    }
}

/// Groups of an UpSet plot.
const COLUMNS: usize = 20;

fn upset(report: &Report) -> Option<Plot> {
    let groups: Vec<_> = report.overlap.groups.iter().take(COLUMNS).collect();
    let most = groups.iter().map(|group| group.instances.len()).max()?;
    let rows: Vec<usize> = (0..report.systems.len())
        .filter(|at| report.systems[*at].system.oracle_samples.is_none())
        .collect();
    let step = ((WIDTH - 40.0) / groups.len() as f64).min(26.0);
    let x = |column: usize| 36.0 + step * (column as f64 + 0.5);
    let base = 110.0;
    let y = |row: usize| base + 16.0 + 14.0 * row as f64;
    let mut svg = Svg::new(WIDTH);
    for (row, at) in rows.iter().enumerate() {
        svg.text("letter", Anchor::Start, (6.0, y(row) + 4.0), &letter(*at));
        svg.line(
            "grid",
            (30.0, y(row)),
            (x(groups.len() - 1) + step / 2.0, y(row)),
        );
    }
    let mut description = "Instances solved by exactly these systems.".to_owned();
    for (column, group) in groups.iter().enumerate() {
        let count = group.instances.len();
        let height = 90.0 * count as f64 / most as f64;
        let names: Vec<&str> = group
            .systems
            .iter()
            .map(|at| report.systems[*at].name.as_str())
            .collect();
        let about = format!("{count} by {}", names.join(", "));
        let (left, width) = (x(column) - step * 0.35, step * 0.7);
        svg.bar("set s0", (left, base - height), (width, height), &about);
        let above = (x(column), base - height - 4.0);
        svg.text("axis", Anchor::Middle, above, &count.to_string());
        let in_group: Vec<usize> = (0..rows.len())
            .filter(|row| group.systems.contains(&rows[*row]))
            .collect();
        if let (Some(first), Some(last)) = (in_group.first(), in_group.last()) {
            let x = x(column);
            svg.line("set s0 whisker", (x, y(*first)), (x, y(*last)));
        }
        for row in in_group {
            svg.dot("set s0", (x(column), y(row)), &about);
        }
        description.push_str(&format!(" {about};"));
    }
    Some(Plot {
        caption: format!("Instances solved by exactly these systems, the {COLUMNS} largest groups"),
        svg: svg.finish(y(rows.len()) + 4.0, &description),
    })
}

/// Bars: how tests end on the old code, and below each class the share that is F→P.
fn classes(report: &Report) -> Plot {
    let mut svg = Svg::new(WIDTH);
    let names = ["pass", "assertion", "failure", "error", "no test"];
    let colours = ["passed", "failed", "xfailed", "error", "absent"];
    for (at, (name, colour)) in names.iter().zip(colours).enumerate() {
        let left = LEFT + 68.0 * at as f64;
        svg.bar(colour, (left, 2.0), (10.0, 10.0), name);
        svg.text("axis", Anchor::Start, (left + 13.0, 11.0), name);
    }
    let mut description = "Submitted tests by how they end on the old code.".to_owned();
    for (at, s) in report.systems.iter().enumerate() {
        let y = 22.0 + 18.0 * at as f64;
        svg.text("letter", Anchor::Start, (4.0, y + 10.0), &letter(at));
        let all: u64 = s.classes.iter().map(|(_, rate)| rate.denominator).sum();
        let mut left = LEFT;
        for ((_, rate), (name, colour)) in s.classes.iter().zip(names.iter().zip(colours)) {
            let width = (WIDTH - LEFT - 40.0) * rate.denominator as f64 / all.max(1) as f64;
            let about = format!(
                "{}, {name}: {} of {all}, {} of them F→P",
                s.name, rate.denominator, rate.numerator
            );
            if rate.denominator > 0 {
                svg.bar(colour, (left, y), (width, 13.0), &about);
                description.push_str(&format!(" {about};"));
            }
            left += width;
        }
        svg.text("axis", Anchor::End, (WIDTH, y + 10.0), &all.to_string());
    }
    let height = 22.0 + 18.0 * report.systems.len() as f64;
    Plot {
        caption: "Submitted tests by how they end on the old code".to_owned(),
        svg: svg.finish(height + 4.0, &description),
    }
}

#[cfg(test)]
mod tests {
    use super::plain_figure;

    #[test]
    fn figures_are_plain() {
        for (number, wanted) in [
            (0.0, "0"),
            (1620.0, "1620"),
            (1620.4, "1620"),
            (100.0, "100"),
            (99.94, "99.9"),
            (12.0, "12"),
            (12.34, "12.3"),
            (2.5, "2.5"),
            (1.0, "1"),
            (0.25, "0.25"),
            (0.012345, "0.0123"),
            (0.0001, "0.0001"),
        ] {
            assert_eq!(plain_figure(number), wanted);
        }
    }
}
