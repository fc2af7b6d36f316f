//! A Sankey diagram: how the outcomes of contributed tests change from the old code (left) to the new (right), as ribbons as
//! thick as tests are many, in the colour of the outcome on the old code.

use std::collections::BTreeMap;

use testwright_tools::outcomes::report::Outcome;

use super::{Plot, WIDTH};
use crate::document::format::outcome;
use crate::document::svg::{Anchor, Svg};
use crate::report::{Flow, Report};

const LEFT: f64 = 104.0;
const RIGHT: f64 = WIDTH - 104.0;
const NODE: f64 = 9.0;
/// Thickness of all tests together.
const TOGETHER: f64 = 150.0;

pub(super) fn plots(report: &Report, labels: &[String]) -> Vec<Plot> {
    labels
        .iter()
        .zip(report.details.values())
        .filter(|(_, details)| !details.flows.is_empty())
        .map(|(label, details)| plot(label, &details.flows))
        .collect()
}

/// Where the outcomes of one side are.
struct Side {
    /// By outcome: top of its node, and how far it is used up by ribbons.
    nodes: BTreeMap<Outcome, (f64, f64)>,
    bottom: f64,
}

fn side(counts: &BTreeMap<Outcome, u64>, scale: f64) -> Side {
    let mut nodes = BTreeMap::new();
    let mut y = 22.0;
    for (outcome, count) in counts {
        nodes.insert(*outcome, (y, 0.0));
        // A label needs its line, however thin the node.
        y += (*count as f64 * scale).max(13.0) + 5.0;
    }
    Side { nodes, bottom: y }
}

impl Side {
    /// The next free piece of a node.
    fn take(&mut self, outcome: Outcome, thick: f64) -> f64 {
        let Some((top, used)) = self.nodes.get_mut(&outcome) else {
            return 0.0;
        };
        *used += thick;
        *top + *used - thick
    }
}

fn plot(label: &str, flows: &[Flow]) -> Plot {
    let (mut old, mut new) = (BTreeMap::new(), BTreeMap::new());
    for flow in flows {
        *old.entry(flow.old).or_default() += flow.tests;
        *new.entry(flow.new).or_default() += flow.tests;
    }
    let total: u64 = old.values().sum();
    let scale = TOGETHER / total.max(1) as f64;
    let (mut left, mut right) = (side(&old, scale), side(&new, scale));
    let mut svg = Svg::new(WIDTH);
    svg.text("head", Anchor::End, (LEFT, 14.0), "old code");
    svg.text("head", Anchor::Start, (RIGHT, 14.0), "new code");
    let mut description = format!("{label}: contributed tests by outcome.");
    let middle = (LEFT + RIGHT) / 2.0;
    for flow in flows {
        let thick = flow.tests as f64 * scale;
        let (y1, y2) = (left.take(flow.old, thick), right.take(flow.new, thick));
        let (from, to) = (LEFT + NODE, RIGHT - NODE);
        let shown = thick.max(0.8);
        let d = format!(
            "M{from:.1} {y1:.1}C{middle:.1} {y1:.1} {middle:.1} {y2:.1} {to:.1} {y2:.1}V{:.1}\
             C{middle:.1} {:.1} {middle:.1} {:.1} {from:.1} {:.1}Z",
            y2 + shown,
            y2 + shown,
            y1 + shown,
            y1 + shown
        );
        let about = format!(
            "{} → {}: {} tests",
            outcome(flow.old),
            outcome(flow.new),
            flow.tests
        );
        svg.path(&format!("ribbon {}", outcome(flow.old)), &d, &about);
        description += &format!(" {about};");
    }
    for (counts, side, x, label_at, anchor) in [
        (&old, &left, LEFT, LEFT - 6.0, Anchor::End),
        (&new, &right, RIGHT - NODE, RIGHT + 6.0, Anchor::Start),
    ] {
        for (which, count) in counts {
            let (top, _) = side.nodes.get(which).copied().unwrap_or_default();
            let height = (*count as f64 * scale).max(1.5);
            let about = format!("{}: {count} tests", outcome(*which));
            svg.bar(outcome(*which), (x, top), (NODE, height), &about);
            let y = top + height.max(11.0) / 2.0 + 4.0;
            let text = format!("{} {count}", outcome(*which));
            svg.text("axis", anchor, (label_at, y), &text);
        }
    }
    Plot {
        caption: label.to_owned(),
        svg: svg.finish(
            left.bottom.max(right.bottom),
            description.trim_end_matches(';'),
        ),
    }
}
