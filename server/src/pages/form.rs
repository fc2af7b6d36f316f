//! Forms: what was filled in, and the numbers in it. Whoever filled in something wrong is told so by the name of the field.

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::api::{ApiResult, Problem};
use crate::request::{RunLimits, RunRequest};
use testwright_config::settings::Settings;

const STEPS: Number = Number::whole("steps", "Model calls");
const TOKENS: Number = Number::whole("tokens", "Tokens");
const DOLLARS: Number = Number::decimal("dollars", "US dollars");
const MINUTES: Number = Number::decimal("minutes", "Minutes");

/// A number that a form asks for. None is above zero and not filled in.
pub struct Number {
    name: &'static str,
    label: &'static str,
    is_whole: bool,
}

/// Its field, as the page shows it.
#[derive(Debug, Serialize)]
pub struct NumberField {
    name: &'static str,
    label: &'static str,
    /// Beside the label.
    note: String,
    /// The keys that a phone offers.
    keys: &'static str,
    value: String,
}

impl Number {
    pub const fn whole(name: &'static str, label: &'static str) -> Self {
        Number {
            name,
            label,
            is_whole: true,
        }
    }

    pub const fn decimal(name: &'static str, label: &'static str) -> Self {
        Number {
            name,
            label,
            is_whole: false,
        }
    }

    /// `given`: as it was filled in.
    pub fn field(&self, note: impl Into<String>, given: &str) -> NumberField {
        NumberField {
            name: self.name,
            label: self.label,
            note: note.into(),
            keys: if self.is_whole { "numeric" } else { "decimal" },
            value: given.to_owned(),
        }
    }

    /// A whole number from 1 to `most`.
    pub fn read_whole<T: TryFrom<u64>>(&self, given: &str, most: u64) -> ApiResult<Option<T>> {
        let Some(given) = filled(given) else {
            return Ok(None);
        };
        let number: Option<u64> = given.parse().ok();
        let number = number.filter(|number| (1..=most).contains(number));
        let up_to = match most {
            u64::MAX => "above zero".to_owned(),
            most => format!("from 1 to {most}"),
        };
        match number.and_then(|number| T::try_from(number).ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(given, &format!("a whole number {up_to}"))),
        }
    }

    pub fn read_decimal(&self, given: &str) -> ApiResult<Option<f64>> {
        let Some(given) = filled(given) else {
            return Ok(None);
        };
        let number: Option<f64> = given.parse().ok();
        match number.filter(|number| number.is_finite() && *number > 0.0) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(given, "a number above zero")),
        }
    }

    fn wrong(&self, given: &str, wanted: &str) -> Problem {
        let hint = match self.is_whole {
            true => "write one such as 10, or leave the field empty",
            false => "write one such as 2.5, or leave the field empty",
        };
        refused(self.label, &format!("“{given}” is not {wanted}"), hint)
    }
}

/// `label`: the name of the field.
pub fn refused(label: &str, what: &str, hint: &str) -> Problem {
    let detail = format!("{label}: {what}");
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).hint(hint)
}

pub fn filled(field: &str) -> Option<&str> {
    Some(field.trim()).filter(|text| !text.is_empty())
}

/// That of a new run. An empty field is one that was not filled in.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NewRunForm {
    issue: String,
    repository: String,
    commit: String,
    approach: String,
    model: String,
    steps: String,
    tokens: String,
    dollars: String,
    minutes: String,
}

impl NewRunForm {
    pub fn request(&self) -> ApiResult<RunRequest> {
        // As it was typed: what a blank around it would change is refused, as it is in JSON.
        let filled = |field: &str| filled(field).map(|_| field.to_owned());
        Ok(RunRequest {
            issue: self.issue.replace("\r\n", "\n"),
            repository: filled(&self.repository),
            commit: filled(&self.commit),
            approach: filled(&self.approach),
            model: filled(&self.model),
            limits: RunLimits {
                steps: STEPS.read_whole(&self.steps, u64::MAX)?,
                dollars: DOLLARS.read_decimal(&self.dollars)?,
                tokens: TOKENS.read_whole(&self.tokens, u64::MAX)?,
                minutes: MINUTES.read_decimal(&self.minutes)?,
            },
        })
    }

    /// The fields of the limits, beside those of the server.
    pub fn limits(&self, server: &Settings) -> [NumberField; 4] {
        let run = &server.run;
        let most = |most: Option<f64>| match most {
            Some(most) => format!("the server allows {most}"),
            None => String::new(),
        };
        let dollars = match run.max_dollars {
            Some(_) => most(run.max_dollars),
            None => "the model needs a price in the server's settings".to_owned(),
        };
        let tokens = run.max_tokens.map(|tokens| tokens as f64);
        [
            STEPS.field(most(Some(run.max_steps as f64)), &self.steps),
            TOKENS.field(most(tokens), &self.tokens),
            DOLLARS.field(dollars, &self.dollars),
            MINUTES.field(most(Some(run.max_minutes)), &self.minutes),
        ]
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_wrong_number_is_told_in_plain_words_by_its_field() {
        assert_eq!(STEPS.read_whole::<u32>(" 7 ", 10).unwrap(), Some(7));
        assert_eq!(STEPS.read_whole::<u32>("  ", 10).unwrap(), None);
        assert_eq!(MINUTES.read_decimal("2.5").unwrap(), Some(2.5));
        for wrong in ["0", "-1", "1.5", "ten", "1e3", "99999999999999999999"] {
            let told = STEPS.read_whole::<u32>(wrong, u64::MAX).unwrap_err().text();
            let wanted = format!(
                "Model calls: “{wrong}” is not a whole number above zero: write one such as 10, or leave the field empty"
            );
            assert_eq!(told, wanted);
        }
        let told = STEPS.read_whole::<u32>("11", 10).unwrap_err().text();
        assert!(
            told.contains("is not a whole number from 1 to 10"),
            "{told}"
        );
        for wrong in ["0", "-0.5", "inf", "NaN", "1,5", "half"] {
            let told = MINUTES.read_decimal(wrong).unwrap_err().text();
            assert!(told.starts_with("Minutes: “"), "{told}");
            assert!(told.contains("is not a number above zero"), "{told}");
        }
    }
}
