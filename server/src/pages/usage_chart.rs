//! The chart of a run's tokens over time.

use serde_json::{Value, json};

use testwright_agent::trajectory::UsagePoint;

const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 140.0;
/// Margin for dots at the edge.
const MARGIN: f64 = 6.0;

/// Returns the chart for a page; `None` if no tokens were used, as with rule-based approaches. Its line rises when a reply
/// arrives.
pub(super) fn usage_chart(points: &[UsagePoint]) -> Option<Value> {
    let last = points.last().filter(|last| last.tokens > 0)?;
    let place = |seconds: f64, tokens: u64| {
        let x = seconds / last.seconds.max(f64::MIN_POSITIVE);
        let y = tokens as f64 / last.tokens.max(1) as f64;
        let within = |share: f64, length: f64| MARGIN + share * (length - 2.0 * MARGIN);
        (
            format!("{:.1}", within(x.min(1.0), WIDTH)),
            format!("{:.1}", HEIGHT - within(y, HEIGHT)),
        )
    };
    let (mut line, mut before) = (Vec::new(), 0);
    for point in points {
        for tokens in [before, point.tokens] {
            let (x, y) = place(point.seconds, tokens);
            line.push(format!("{x},{y}"));
        }
        before = point.tokens;
    }
    let (x, y) = place(0.0, 0);
    line.insert(0, format!("{x},{y}"));
    let dot = |point: &UsagePoint| {
        let (x, y) = place(point.seconds, point.tokens);
        let title = format!("{} tokens after {:.1} s", point.tokens, point.seconds);
        json!({ "x": x, "y": y, "title": title })
    };
    let row = |point: &UsagePoint| {
        json!({
            "purpose": point.purpose,
            "tool_seconds": format!("{:.1}", point.tool_seconds),
            "model_seconds": format!("{:.1}", point.model_seconds),
            "prompt_tokens": point.prompt_tokens,
            "completion_tokens": point.completion_tokens,
            "tokens": point.tokens,
            "dollars": point.dollars.map_or(String::new(), |d| format!("{d:.4}")),
        })
    };
    Some(json!({
        "width": WIDTH,
        "height": HEIGHT,
        "tokens": last.tokens,
        "seconds": format!("{:.1}", last.seconds),
        "line": line.join(" "),
        "points": points.iter().map(dot).collect::<Vec<_>>(),
        "rows": points.iter().map(row).collect::<Vec<_>>(),
    }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use testwright_agent::trajectory::Purpose;

    use super::*;

    #[test]
    fn line_rises_to_corner() {
        let point = |seconds, tokens| UsagePoint {
            purpose: Purpose::Step,
            prompt_tokens: tokens,
            completion_tokens: 0,
            model_seconds: 0.0,
            tool_seconds: 0.0,
            seconds,
            tokens,
            dollars: None,
        };
        assert!(usage_chart(&[]).is_none());
        let chart = usage_chart(&[point(1.0, 50), point(2.0, 100)]).unwrap();
        assert_eq!(
            chart["line"],
            "6.0,134.0 450.0,134.0 450.0,70.0 894.0,70.0 894.0,6.0"
        );
        assert!(usage_chart(&[point(1.0, 0)]).is_none());
        let chart = usage_chart(&[point(0.0, 10)]).unwrap();
        assert_eq!(chart["line"], "6.0,134.0 6.0,134.0 6.0,6.0");
    }
}
