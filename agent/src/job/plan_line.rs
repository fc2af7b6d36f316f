//! The plan of a run in one line, for people.

use testwright_models::ModelSource;
use testwright_models::price::price_of;

use super::RunJob;

impl RunJob {
    /// Describes the model, the approach and the limits in one line, with the price if it is known. Returns
    /// `None` if the run calls no model.
    pub fn describe_plan(&self) -> Option<String> {
        if matches!(self.model.source(), ModelSource::Rules) {
            return None;
        }
        let run = &self.settings.run;
        let mut limits = vec![
            match run.max_steps {
                1 => "at most 1 step".to_owned(),
                steps => format!("at most {steps} steps"),
            },
            format!("{} min", run.max_minutes),
        ];
        limits.extend(run.max_tokens.map(|tokens| format!("{tokens} tokens")));
        limits.push(match run.max_dollars {
            Some(dollars) => format!("${dollars}"),
            None => "no dollar limit".to_owned(),
        });
        let mut parts = vec![
            self.model.to_string(),
            format!("approach {}", self.approach.name()),
            limits.join(", "),
        ];
        if let Some(price) = price_of(&self.settings, &self.model) {
            let model = &self.settings.model;
            parts.push(match (model.context_window, model.max_tokens) {
                (Some(window), Some(answer)) => {
                    let most = window as f64 * price.prompt + answer as f64 * price.completion;
                    format!("at most ${:.2} a call", most / 1e6)
                }
                _ => format!(
                    "${} in, ${} out per million tokens",
                    price.prompt, price.completion
                ),
            });
        }
        Some(parts.join(" · "))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use testwright_config::settings::Settings;
    use testwright_models::ModelName;

    use super::*;
    use crate::approaches::Variant;
    use crate::issues::Issue;
    use crate::setup::RepositoryLocation;

    fn plan(settings: &Settings, model: &str) -> Option<String> {
        let place = RepositoryLocation {
            location: ".".to_owned(),
            revision: None,
        };
        let job = RunJob::new(
            settings.clone(),
            Issue::default(),
            place,
            Variant::parse("testwright").unwrap(),
            ModelName::parse(model).unwrap(),
            "out".into(),
        );
        job.describe_plan()
    }

    #[test]
    fn plan_states_limits_and_known_cost() {
        let mut settings = Settings::default();
        let line = |settings: &Settings, model: &str| plan(settings, model).unwrap();
        assert_eq!(
            line(&settings, "gpt-5-mini"),
            "gpt-5-mini · approach testwright · at most 60 steps, 30 min, no dollar limit · $0.25 in, $2 out per million tokens"
        );
        settings.run.max_dollars = Some(0.5);
        settings.model.context_window = Some(400_000);
        settings.model.max_tokens = Some(10_000);
        let text = line(&settings, "gpt-5-mini");
        assert!(text.ends_with(", $0.5 · at most $0.12 a call"), "{text}");
        let text = line(&settings, "local");
        assert!(text.ends_with("30 min, $0.5"), "{text}");
        assert_eq!(plan(&settings, "snippet"), None);
    }
}
