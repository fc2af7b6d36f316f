//! `amend_environment`: replaces keys of the recipe and builds with them.

use serde_json::{Map, Value};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::recipe::{IMAGE_KEYS, Recipe};
use testwright_tools::tool::{ToolError, ToolSpec};

/// Name of the tool.
pub(super) const NAME: &str = "amend_environment";

/// Returns the specification: the keys of `[environment]`, without those that only the user may set.
pub(super) fn spec() -> ToolSpec {
    let mut spec = ToolSpec::of_host::<Recipe>(
        NAME,
        "Replaces keys of the recipe, builds the environment and tries some tests. An amendment stays in force for the \
         next ones. Builds start from the installed requirements if you only add to them, which takes seconds.",
    );
    let properties = spec.parameters.get_mut("properties");
    if let Some(properties) = properties.and_then(Value::as_object_mut) {
        properties.retain(|key, _| key != "untested" && !IMAGE_KEYS.contains(&key.as_str()));
    }
    spec
}

/// Returns the keys to replace.
pub(super) fn keys(arguments: Value) -> Result<toml::Table, ToolError> {
    let arguments = spec().check(arguments)?;
    let is_empty = arguments.as_object().is_none_or(Map::is_empty);
    if is_empty {
        return Err(ToolError::Refused(
            "This call was not carried out: it names no key.".to_owned(),
        ));
    }
    toml::Table::try_from(arguments)
        .map_err(|error| ToolError::Refused(format!("This call was not carried out: {error}")))
}

/// Returns the answer for an invalid amendment, or `None` if the build failed.
pub(super) fn refusal(error: &SandboxError) -> Option<String> {
    let hint = error.hint.as_deref();
    let hint = hint.map_or_else(String::new, |hint| format!(" ({hint})"));
    matches!(error.kind, ErrorKind::Input | ErrorKind::NotFound)
        .then(|| format!("This call was not carried out: {}{hint}", error.message))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_checked_by_type() {
        let table = keys(json!({"python": "3.9", "requirements": "attrs<20", "git": "true"}));
        let table = table.unwrap();
        assert_eq!(table["requirements"].as_array().unwrap().len(), 1);
        assert_eq!(table["git"].as_bool(), Some(true));
        for wrong in [
            json!({}),
            json!({"image": "evil"}),
            json!({"pyhton": "3.9"}),
            json!({"git": [1]}),
        ] {
            assert!(matches!(keys(wrong), Err(ToolError::Refused(_))));
        }
    }

    #[test]
    fn schema_has_all_keys_that_repositories_may_set() {
        let spec = spec();
        let properties = spec.parameters["properties"].as_object().unwrap();
        let recipe = Recipe::default();
        let all = serde_json::to_value(recipe).unwrap();
        for key in all.as_object().unwrap().keys() {
            let is_offered = properties.contains_key(key);
            let is_of_user = IMAGE_KEYS.contains(&key.as_str()) || key == "untested";
            assert_ne!(is_offered, is_of_user, "{key}");
        }
    }
}
