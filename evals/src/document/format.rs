//! Formats figures for people.

use super::table::Figure;
use crate::statistics::{Mean, Rate};
use crate::verdict::OldClass;
use testwright_tools::outcomes::report::Outcome;

/// Placeholder for a missing figure.
pub const NONE: &str = "–";

/// Formats a table for a terminal, and returns its lines. The first column has the labels of the rows, the others have
/// right-aligned figures of `width` characters. As many columns as fit into `columns` characters are shown.
pub fn text_table<'r, R: 'r>(
    label: &str,
    figures: &[Figure<R>],
    rows: impl IntoIterator<Item = (String, &'r R)>,
    width: usize,
    columns: Option<usize>,
) -> Vec<String> {
    let rows: Vec<(String, &R)> = rows.into_iter().collect();
    let labels = rows.iter().map(|(label, _)| label.chars().count());
    let label_width = labels.max().unwrap_or_default().max(label.len());
    let shown = &figures[..fitting_cells(figures.len(), label_width, width, columns)];
    let mut lines = vec![format!("{label:label_width$}")];
    lines.extend(
        rows.iter()
            .map(|(label, _)| format!("{label:label_width$}")),
    );
    for (title, figure) in shown {
        lines[0].push_str(&format!("  {title:>width$}"));
        for (line, (_, row)) in lines[1..].iter_mut().zip(&rows) {
            line.push_str(&format!("  {:>width$}", figure(row)));
        }
    }
    lines
}

/// Returns how many cells of a table row fit a width, at least one. Each has `cell` characters and two blanks, and
/// follows a first cell of `first` characters. Without a width, all fit.
fn fitting_cells(cells: usize, first: usize, cell: usize, width: Option<usize>) -> usize {
    match width {
        None => cells,
        Some(width) => (width.saturating_sub(first) / (cell + 2)).clamp(1, cells),
    }
}

/// Formats a share as a percentage: `37.0 %`.
pub fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| NONE.to_owned(), |s| format!("{:.1} %", 100.0 * s))
}

/// Formats a difference in percentage points, with its sign.
pub fn points(difference: Option<f64>) -> String {
    match difference {
        None => NONE.to_owned(),
        Some(d) => {
            let sign = if d < 0.0 { "−" } else { "+" };
            format!("{sign}{:.1}", 100.0 * d.abs())
        }
    }
}

fn interval(interval: Option<[f64; 2]>) -> String {
    interval.map_or_else(String::new, |[low, high]| {
        format!(", {:.1}–{:.1}", 100.0 * low, 100.0 * high)
    })
}

/// Formats a rate with its counts and interval: `37.0 % (166/449, 32.6–41.5)`.
pub fn rate(rate: &Rate) -> String {
    let (share, between) = (percent(rate.rate), interval(rate.interval));
    format!("{share} ({}/{}{between})", rate.numerator, rate.denominator)
}

/// Formats a rate with its counts: `37.0 % (166/449)`.
pub fn short_rate(rate: &Rate) -> String {
    let share = percent(rate.rate);
    format!("{share} ({}/{})", rate.numerator, rate.denominator)
}

/// Formats a mean with its interval, as [`share_of`] does.
pub fn mean(mean: &Mean) -> String {
    share_of(mean.mean, mean.denominator, mean.interval)
}

/// Formats a share over a number of instances, with its interval: `32.4 % (n = 449, 28.2–36.7)`.
pub fn share_of(share: Option<f64>, instances: u64, between: Option<[f64; 2]>) -> String {
    let (share, between) = (percent(share), interval(between));
    format!("{share} (n = {instances}{between})")
}

/// Formats a p-value with four decimals, or as `< 0.0001`.
pub fn p_value(p: f64) -> String {
    if p < 0.0001 {
        "< 0.0001".to_owned()
    } else {
        format!("{p:.4}")
    }
}

/// Formats a duration: `8.4 s`, `3 min 20 s`, `2 h 5 min`.
pub fn seconds(seconds: f64) -> String {
    let whole_seconds = seconds.round().max(0.0) as u64;
    match whole_seconds {
        0..60 => format!("{seconds:.1} s"),
        60..3600 => format!("{} min {} s", whole_seconds / 60, whole_seconds % 60),
        _ => format!(
            "{} h {} min",
            whole_seconds / 3600,
            whole_seconds % 3600 / 60
        ),
    }
}

/// Formats a score with at most two decimals: `3`, `1.8`, `0.25`.
pub fn score(score: f64) -> String {
    let text = format!("{score:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}

/// Returns the word for an outcome in reports.
pub fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Absent => "absent",
        other => other.as_str(),
    }
}

/// Returns the words for a class of outcomes on the old code in reports.
pub fn old_class(class: OldClass) -> &'static str {
    match class {
        OldClass::Pass => "pass",
        OldClass::Assertion => "assertion failure",
        OldClass::Failure => "other failure",
        OldClass::Error => "error",
        OldClass::None => "no test ran",
    }
}

/// Returns the letter of a prediction set in plots and narrow columns: A, B, …, Z, A1, ….
pub fn letter(at: usize) -> String {
    let letter = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => letter.to_string(),
        round => format!("{letter}{round}"),
    }
}

#[cfg(test)]
mod tests;
