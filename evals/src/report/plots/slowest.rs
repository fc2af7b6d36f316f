//! The slowest instances of all prediction sets, with what took the time.

use super::{Plot, WIDTH};
use crate::document::format::{letter, seconds};
use crate::document::svg::{Anchor, Svg, cut};
use crate::report::Report;
use crate::result::Seconds;

const BARS: usize = 10;

pub(super) fn plots(report: &Report) -> Vec<Plot> {
    let mut slow: Vec<(usize, &str, Seconds)> = report
        .details
        .values()
        .enumerate()
        .flat_map(|(set, details)| {
            let slowest = details.time.slowest.iter();
            slowest.map(move |s| (set, s.instance_id.as_str(), s.seconds))
        })
        .collect();
    slow.sort_by(|a, b| b.2.total.total_cmp(&a.2.total));
    slow.truncate(BARS);
    // Whatever results say of the parts, nothing leaves the picture.
    let length = |s: &Seconds| s.total.max(s.parts().iter().sum());
    let Some(longest) = slow.iter().map(|(_, _, s)| length(s)).reduce(f64::max) else {
        return Vec::new();
    };
    let scale = (WIDTH - 84.0) / longest.max(f64::MIN_POSITIVE);
    let mut svg = Svg::new(WIDTH);
    let names = Seconds::PARTS;
    for (at, name) in names.into_iter().enumerate() {
        let x = 64.0 * at as f64;
        svg.bar(&format!("part p{at}"), (x, 3.0), (11.0, 11.0), name);
        svg.text("axis", Anchor::Start, (x + 15.0, 13.0), name);
    }
    let mut description = "Slowest instances.".to_owned();
    for (row, (set, id, took)) in slow.iter().enumerate() {
        let top = 28.0 + 34.0 * row as f64;
        let label = format!("{} {}", letter(*set), cut(id, 46));
        svg.text("axis", Anchor::Start, (0.0, top + 9.0), &label);
        let mut x = 0.0;
        for (at, part) in took.parts().into_iter().enumerate() {
            let width = part * scale;
            let about = format!("{}: {}", names[at], seconds(part));
            svg.bar(
                &format!("part p{at}"),
                (x, top + 14.0),
                (width, 11.0),
                &about,
            );
            x += width;
        }
        let total = seconds(took.total);
        svg.text("value", Anchor::Start, (x + 6.0, top + 24.0), &total);
        description += &format!(" {label}: {total};");
    }
    vec![Plot {
        caption: "Slowest instances of all prediction sets".to_owned(),
        svg: svg.finish(
            28.0 + 34.0 * slow.len() as f64,
            description.trim_end_matches(';'),
        ),
    }]
}
