//! Form fields and their validation. Errors name the field.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::api::{ApiResult, Problem};
use crate::request::{RunLimits, RunRequest};
use testwright_config::settings::Settings;

const STEPS: Number = Number::integer("steps", "Steps");
const TOKENS: Number = Number::integer("tokens", "Tokens");
const DOLLARS: Number = Number::decimal("dollars", "US dollars");
const MINUTES: Number = Number::decimal("minutes", "Minutes");

/// A number field. The number must be greater than zero; an empty field is allowed.
pub(super) struct Number {
    name: &'static str,
    label: &'static str,
    is_whole: bool,
}

impl Number {
    pub(super) const fn integer(name: &'static str, label: &'static str) -> Self {
        Number {
            name,
            label,
            is_whole: true,
        }
    }

    pub(super) const fn decimal(name: &'static str, label: &'static str) -> Self {
        Number {
            name,
            label,
            is_whole: false,
        }
    }

    /// Returns the field for a page, with a note beside the label and the value that the user entered. `keys` is the
    /// keyboard that a phone offers.
    pub(super) fn field(&self, note: &str, value: &str) -> Value {
        json!({
            "name": self.name,
            "label": self.label,
            "note": note,
            "keys": if self.is_whole { "numeric" } else { "decimal" },
            "value": value,
        })
    }

    /// Parses a whole number from 1 to `most`; `None` if the field is empty.
    pub(super) fn read_whole<T: TryFrom<u64>>(
        &self,
        text: &str,
        most: u64,
    ) -> ApiResult<Option<T>> {
        let Some(text) = filled(text) else {
            return Ok(None);
        };
        let number: Option<u64> = text.parse().ok();
        let number = number.filter(|number| (1..=most).contains(number));
        let up_to = match most {
            u64::MAX => "above zero".to_owned(),
            most => format!("from 1 to {most}"),
        };
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.invalid_number(text, &format!("a whole number {up_to}"))),
        }
    }

    pub(super) fn read_decimal(&self, text: &str) -> ApiResult<Option<f64>> {
        let Some(text) = filled(text) else {
            return Ok(None);
        };
        let number: Option<f64> = text.parse().ok();
        match number.filter(|number| number.is_finite() && *number > 0.0) {
            Some(number) => Ok(Some(number)),
            None => Err(self.invalid_number(text, "a number above zero")),
        }
    }

    fn invalid_number(&self, text: &str, requirement: &str) -> Problem {
        let hint = match self.is_whole {
            true => "enter a number such as 10, or leave the field empty",
            false => "enter a number such as 2.5, or leave the field empty",
        };
        refused(self.label, &format!("“{text}” is not {requirement}"), hint)
    }
}

/// Creates a problem for the field with this label.
pub(super) fn refused(label: &str, what: &str, hint: &str) -> Problem {
    let detail = format!("{label}: {what}");
    Problem::unprocessable(detail).hint(hint)
}

pub(super) fn filled(field: &str) -> Option<&str> {
    Some(field.trim()).filter(|text| !text.is_empty())
}

/// The form for a new run. Empty fields count as missing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct NewRunForm {
    issue: String,
    repository: String,
    commit: String,
    approach: String,
    model: String,
    hint: String,
    steps: String,
    tokens: String,
    dollars: String,
    minutes: String,
}

impl NewRunForm {
    pub(super) fn request(&self) -> ApiResult<RunRequest> {
        // Surrounding whitespace is kept, so that it is refused as in JSON.
        let filled = |field: &str| filled(field).map(|_| field.to_owned());
        Ok(RunRequest {
            issue: self.issue.replace("\r\n", "\n"),
            repository: filled(&self.repository),
            commit: filled(&self.commit),
            approach: filled(&self.approach),
            model: filled(&self.model),
            hint: filled(&self.hint).map(|hint| hint.replace("\r\n", "\n")),
            limits: RunLimits {
                steps: STEPS.read_whole(&self.steps, u64::MAX)?,
                dollars: DOLLARS.read_decimal(&self.dollars)?,
                tokens: TOKENS.read_whole(&self.tokens, u64::MAX)?,
                minutes: MINUTES.read_decimal(&self.minutes)?,
            },
            ..RunRequest::default()
        })
    }

    /// Returns the fields for limits, with the server's own limits as notes.
    pub(super) fn limits(&self, server: &Settings) -> [Value; 4] {
        let run = &server.run;
        let most = |most: Option<f64>| match most {
            Some(most) => format!("at most {most}"),
            None => String::new(),
        };
        let dollars = match run.max_dollars {
            Some(_) => most(run.max_dollars),
            None => "the model needs a price in the server's settings".to_owned(),
        };
        let tokens = run.max_tokens.map(|tokens| tokens as f64);
        [
            STEPS.field(&most(Some(run.max_steps as f64)), &self.steps),
            TOKENS.field(&most(tokens), &self.tokens),
            DOLLARS.field(&dollars, &self.dollars),
            MINUTES.field(&most(Some(run.max_minutes)), &self.minutes),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn invalid_number_names_its_field() {
        assert_eq!(STEPS.read_whole::<u32>(" 7 ", 10).unwrap(), Some(7));
        assert_eq!(STEPS.read_whole::<u32>("  ", 10).unwrap(), None);
        assert_eq!(MINUTES.read_decimal("2.5").unwrap(), Some(2.5));
        for wrong in ["0", "-1", "1.5", "ten", "1e3", "99999999999999999999"] {
            let message = STEPS.read_whole::<u32>(wrong, u64::MAX).unwrap_err().text();
            let expected_message = format!(
                "Steps: “{wrong}” is not a whole number above zero: enter a number such as 10, or leave the field empty"
            );
            assert_eq!(message, expected_message);
        }
        let message = STEPS.read_whole::<u32>("11", 10).unwrap_err().text();
        assert!(
            message.contains("is not a whole number from 1 to 10"),
            "{message}"
        );
        for wrong in ["0", "-0.5", "inf", "NaN", "1,5", "half"] {
            let message = MINUTES.read_decimal(wrong).unwrap_err().text();
            assert!(message.starts_with("Minutes: “"), "{message}");
            assert!(message.contains("is not a number above zero"), "{message}");
        }
    }
}
