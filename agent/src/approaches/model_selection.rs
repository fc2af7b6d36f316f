//! Selects the approach and the model of a run, from the settings and the available API keys.

use super::{ALL, Approach, ModelKind, find};
use testwright_config::error::{Error, Result};
use testwright_config::settings::{Origin, Settings};
use testwright_models::ModelName;
use testwright_models::price::check_limit;
use testwright_models::provider::{azure_deployment, check_provider};

const DEFAULT_MODEL: &str = "gpt-5-mini";

/// The approach and the model of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelSelection {
    /// Name of the approach, with its options.
    pub approach: String,
    /// Model to ask.
    pub model: ModelName,
    /// Note for the user on how these were selected, in one line.
    pub note: Option<String>,
}

/// Returns the model of a run that names none: the one in the settings, or one of the provider whose API key
/// is set.
///
/// # Errors
///
/// Fails if the name in the settings is invalid.
pub fn default_model(settings: &Settings) -> Result<Option<ModelName>> {
    let of_provider = settings.model_key().is_some() && settings.model.base_url.is_none();
    let default = of_provider.then_some(DEFAULT_MODEL);
    let name = settings.run.model.as_deref().or(default);
    name.map(ModelName::parse).transpose()
}

/// Returns whether a model needs no OpenAI key. Recordings need no service, and Azure has its own variables.
fn needs_no_key(model: &ModelName, settings: &Settings) -> bool {
    model.is_recording() || is_on_azure(model, settings)
}

/// Returns whether an Azure deployment serves the model.
pub fn is_on_azure(model: &ModelName, settings: &Settings) -> bool {
    azure_deployment(model, settings, &|variable| std::env::var(variable).ok()).is_some()
}

/// A rule-based approach, and the name of its model.
type RuleBased = (&'static Approach, &'static str);

fn rule_based() -> impl Iterator<Item = RuleBased> {
    ALL.iter().filter_map(|approach| match approach.model {
        ModelKind::Rules(model) => Some((*approach, model)),
        ModelKind::Language => None,
    })
}

/// Selects the approach and the model. If no approach, model, API key or endpoint is set, selects the first
/// rule-based approach.
///
/// # Errors
///
/// Fails if the approach is unknown, if no usable model is configured for it, or if dollars are limited and the
/// model has no price.
pub fn select(settings: &Settings) -> Result<ModelSelection> {
    let approach = settings.run.approach.clone();
    let is_approach_set = settings.origin("run.approach") != Origin::Default;
    let key = settings.model_key().is_some();
    let endpoint = settings.model.base_url.is_some();
    let key_variable = &settings.model.api_key_env;
    let by_rules = |(approach, model): RuleBased, note: Option<String>| {
        Ok(ModelSelection {
            approach: approach.name.to_owned(),
            model: ModelName::parse(model)?,
            note,
        })
    };
    let missing = |what: &str, or: Option<String>| {
        let or = or.map_or_else(String::new, |flag| format!(", or use {flag}"));
        Error::usage(what)
            .cause(format!(
                "{key_variable} is not set, and no model.base-url is configured"
            ))
            .hint(format!(
                "set {key_variable}, or model.base-url for another server{or}"
            ))
    };
    let fallback = rule_based().next();
    let name = approach.split(':').next().unwrap_or_default();
    // `testwright cover` has no other approach.
    let alternative = fallback.filter(|_| ALL.iter().any(|known| known.name == name));
    if is_approach_set
        && let Some(approach) = find(name)
        && let ModelKind::Rules(model) = approach.model
    {
        return by_rules((approach, model), None);
    }
    let requested_model = settings.run.model.as_deref().map(ModelName::parse);
    let Some(model) = requested_model.transpose()? else {
        return match fallback {
            _ if endpoint => Err(Error::usage("choose a model")
                .cause("model.base-url is set, but no model is given")
                .hint("add --model NAME, or set TESTWRIGHT_MODEL")),
            _ if key => Ok(ModelSelection {
                approach,
                model: ModelName::parse(DEFAULT_MODEL)?,
                note: Some(format!("no model is given: using {DEFAULT_MODEL}")),
            }),
            Some(fallback) if !is_approach_set => by_rules(
                fallback,
                Some(format!(
                    "no model is configured ({key_variable} is not set): using the rules of `{}`",
                    fallback.1
                )),
            ),
            _ => Err(missing(
                &format!("use the approach `{approach}`"),
                alternative.map(|(approach, _)| format!("--approach {}", approach.name)),
            )),
        };
    };
    if let Some(rules) = rule_based().find(|(_, name)| *name == model.as_str()) {
        if !is_approach_set {
            return by_rules(rules, None);
        }
        return Err(Error::usage(format!("use the approach `{approach}`"))
            .cause(format!(
                "the model `{model}` follows fixed rules and knows only the approach `{}`",
                rules.0.name
            ))
            .hint("choose another --model, or omit --approach"));
    }
    if !needs_no_key(&model, settings) {
        check_provider(&model, settings)?;
        if !key && !endpoint {
            return Err(missing(
                &format!("reach the model `{model}`"),
                alternative.map(|(_, model)| format!("--model {model}")),
            ));
        }
    }
    check_limit(settings, &model)?;
    Ok(ModelSelection {
        approach,
        model,
        note: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde::Serialize;

    use super::*;
    use testwright_config::settings::Sources;

    #[derive(Default)]
    struct TestSources(Sources);

    impl TestSources {
        fn variable(mut self, name: &str, value: &str) -> Self {
            self.0.variables.insert(name.to_owned(), value.to_owned());
            self
        }

        fn flag<T: Serialize>(mut self, key: &str, value: T) -> Self {
            self.0.flags.set(key, Some(value));
            self
        }
    }

    #[test]
    fn selection_depends_on_settings_and_keys() {
        let choice = |sources: TestSources| {
            let settings = Settings::load(&sources.0).unwrap();
            select(&settings).map_err(|e| e.render())
        };
        let ok = |place: TestSources| {
            let choice = choice(place).unwrap();
            (
                choice.approach,
                choice.model.to_string(),
                choice.note.is_some(),
            )
        };
        let is = |approach: &str, model: &str, note| (approach.to_owned(), model.to_owned(), note);
        let with_key = || TestSources::default().variable("OPENAI_API_KEY", "k");
        assert_eq!(ok(TestSources::default()), is("snippet", "snippet", true));
        assert_eq!(
            ok(TestSources::default().flag("run.approach", "snippet")),
            is("snippet", "snippet", false)
        );
        assert_eq!(
            ok(TestSources::default().flag("run.model", "snippet")),
            is("snippet", "snippet", false)
        );
        assert_eq!(ok(with_key()), is("testwright", "gpt-5-mini", true));
        assert_eq!(
            ok(with_key().flag("run.approach", "snippet")),
            is("snippet", "snippet", false)
        );
        assert_eq!(
            ok(with_key().variable("OPENAI_MODEL", "m")),
            is("testwright", "m", false)
        );
        let deployment = TestSources::default().flag("model.azure-deployment", "mine");
        assert_eq!(
            ok(deployment.flag("run.model", "gpt-4o")),
            is("testwright", "gpt-4o", false)
        );
        let server =
            || TestSources::default().variable("OPENAI_BASE_URL", "http://127.0.0.1:8080/v1");
        assert_eq!(
            ok(server().flag("run.model", "qwen")),
            is("testwright", "qwen", false)
        );

        insta::assert_snapshot!(choice(server()).unwrap_err(), @r"
        error: failed to choose a model
          cause: model.base-url is set, but no model is given
          hint: add --model NAME, or set TESTWRIGHT_MODEL
        ");
        insta::assert_snapshot!(choice(TestSources::default().flag("run.model", "gpt-5")).unwrap_err(), @r"
        error: failed to reach the model `gpt-5`
          cause: OPENAI_API_KEY is not set, and no model.base-url is configured
          hint: set OPENAI_API_KEY, or model.base-url for another server, or use --model snippet
        ");
        insta::assert_snapshot!(choice(TestSources::default().flag("run.approach", "testwright")).unwrap_err(), @r"
        error: failed to use the approach `testwright`
          cause: OPENAI_API_KEY is not set, and no model.base-url is configured
          hint: set OPENAI_API_KEY, or model.base-url for another server, or use --approach snippet
        ");
        insta::assert_snapshot!(choice(TestSources::default().flag("run.model", "deepseek-chat")).unwrap_err(), @r"
        error: failed to reach the model `deepseek-chat`
          cause: it is a model of DeepSeek, but requests go to OpenAI, because no base URL is set
          hint: set OPENAI_BASE_URL to https://api.deepseek.com/v1 (the OpenAI-compatible endpoint of DeepSeek), and OPENAI_API_KEY to your key for it
        ");
        let limited = server()
            .flag("run.model", "qwen")
            .flag("run.max-dollars", 1.0);
        let refused = choice(limited).unwrap_err();
        assert!(refused.contains("`qwen` has no price"), "{refused}");
        assert!(choice(with_key().flag("run.max-dollars", 1.0)).is_ok());
        insta::assert_snapshot!(choice(with_key().flag("run.approach", "testwright").flag("run.model", "snippet")).unwrap_err(), @r"
        error: failed to use the approach `testwright`
          cause: the model `snippet` follows fixed rules and knows only the approach `snippet`
          hint: choose another --model, or omit --approach
        ");
    }

    #[test]
    fn comparison_uses_model_of_run() {
        let default = |sources: TestSources| {
            let name = default_model(&Settings::load(&sources.0).unwrap()).unwrap();
            name.map(|name| name.to_string())
        };
        let with_key = || TestSources::default().variable("OPENAI_API_KEY", "k");
        assert_eq!(default(TestSources::default()), None);
        assert_eq!(default(with_key()).as_deref(), Some(DEFAULT_MODEL));
        let with_model = with_key().flag("run.model", "other");
        assert_eq!(default(with_model).as_deref(), Some("other"));
        let elsewhere = with_key().flag("model.base-url", "http://127.0.0.1:1/v1");
        assert_eq!(default(elsewhere), None);
    }
}
