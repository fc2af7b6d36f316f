//! The explanation of a run's outcome.

use serde_json::Value;

use testwright_agent::agent::{Limit, Outcome};

/// Returns the paragraphs of the explanation; `record` is `run.json` or its replacement.
pub(super) fn explanation(record: &Value, outcome: Option<&Outcome>) -> Vec<String> {
    match outcome {
        Some(Outcome::OutOfBudget { limit }) => vec![
            format!(
                "The run reached its limit of {} before a test was accepted.",
                limit_in_words(*limit, &record["settings"]["run"])
            ),
            "You can start a new run with a higher limit, up to the limits in the server's settings.".to_owned(),
        ],
        Some(Outcome::Refused { findings, .. }) => {
            let first = "The gate refused the submitted test:".to_owned();
            std::iter::once(first)
                .chain(findings.iter().cloned())
                .collect()
        }
        Some(withheld @ Outcome::Withheld { .. }) => vec![withheld.summary()],
        Some(Outcome::Abstained {
            reason,
            python,
            calls,
        }) => {
            let first =
                format!("The model says that the issue cannot be reproduced here, with Python {python}.");
            let calls = (!calls.is_empty()).then(|| format!("It ran:\n{}", calls.join("\n")));
            [first, reason.clone()].into_iter().chain(calls).collect()
        }
        _ => ["reason", "message", "hint"]
            .iter()
            .filter_map(|name| record[*name].as_str().map(str::to_owned))
            .collect(),
    }
}

/// Formats a limit with its value from the settings of the run. The budget of a comparison is not part of these
/// settings.
fn limit_in_words(limit: Limit, settings: &Value) -> String {
    let (key, unit) = match limit {
        Limit::Steps => ("max-steps", "model calls"),
        Limit::Dollars => ("max-dollars", "US dollars"),
        Limit::Tokens => ("max-tokens", "tokens"),
        Limit::Minutes => ("max-minutes", "minutes"),
    };
    match settings[key].as_f64() {
        Some(most) => format!("{most} {unit}"),
        None => unit.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn explained(record: &Value) -> Vec<String> {
        let outcome: Option<Outcome> = serde_json::from_value(record.clone()).ok();
        explanation(record, outcome.as_ref())
    }

    #[test]
    fn out_of_budget_names_the_limit() {
        let settings = json!({"run": {"max-steps": 12, "max-minutes": 2.5, "max-tokens": 5000, "max-dollars": 0.25}});
        for (limit, words) in [
            ("steps", "12 model calls"),
            ("minutes", "2.5 minutes"),
            ("tokens", "5000 tokens"),
            ("dollars", "0.25 US dollars"),
        ] {
            let record = json!({"outcome": "out_of_budget", "limit": limit, "settings": settings});
            let expected_text =
                format!("The run reached its limit of {words} before a test was accepted.");
            assert_eq!(explained(&record)[0], expected_text);
        }
        let record = json!({"outcome": "out_of_budget", "limit": "dollars"});
        assert!(explained(&record)[0].contains("its limit of US dollars before"));
    }

    #[test]
    fn findings_and_failures_are_listed() {
        let record =
            json!({"outcome": "refused", "patch": "p", "findings": ["it passes", "it is skipped"]});
        assert_eq!(explained(&record)[1..], ["it passes", "it is skipped"]);
        let record =
            json!({"outcome": "infrastructure", "message": "no disk", "hint": "make room"});
        assert_eq!(explained(&record), ["no disk", "make room"]);
        let record = json!({"outcome": "nothing", "reason": "no draft"});
        assert_eq!(explained(&record), ["no draft"]);
        assert_eq!(explained(&Value::Null), Vec::<String>::new());
    }
}
