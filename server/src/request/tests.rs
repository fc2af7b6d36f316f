#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn request_overrides_settings_and_options() {
    let allowed = AllowList::new(&["/srv/git/*".to_owned()], true).unwrap();
    let mut server = Settings::default();
    server.run.min_confidence = Some(0.6);
    let request = |fields: serde_json::Value| {
        let mut request = serde_json::json!({
            "issue": "it fails", "repository": "/srv/git/one", "project": "packages/a",
            "approach": "testwright", "model": "replay:recorded.jsonl",
        });
        let fields = fields.as_object().unwrap().clone();
        request.as_object_mut().unwrap().extend(fields);
        serde_json::from_value::<RunRequest>(request).unwrap()
    };
    let check = |fields| request(fields).check(&server, &allowed, "me", None);
    let settings = request(serde_json::json!({})).settings(&server);
    assert_eq!(settings.run.min_confidence, Some(0.6));
    assert_eq!(settings.run.project.as_deref(), Some("packages/a"));
    let high = serde_json::json!({"min_confidence": 0.8, "effort": "high"});
    let settings = request(high.clone()).settings(&server);
    assert_eq!(settings.run.min_confidence, Some(0.8));
    assert_eq!(check(high).unwrap().approach, "testwright:drafts=on");
    let wrong = serde_json::json!({"min_confidence": 1.5});
    assert!(check(wrong).is_err());
    let no_levels = serde_json::json!({"approach": "otter", "effort": "low"});
    assert!(check(no_levels).is_err());
}

#[test]
fn hint_for_missing_model_is_for_clients() {
    let mut settings = Settings::default();
    let hint = |settings: &Settings| {
        let error = Error::usage("choose a model").hint("add --model NAME");
        hint_for_client(error, settings).hint.unwrap_or_default()
    };
    assert_eq!(
        hint(&settings),
        "set OPENAI_API_KEY or model.base-url for the server"
    );
    settings.run.model = Some("gpt-5".to_owned());
    assert_eq!(hint(&settings), "add --model NAME");
}

#[test]
fn deployment_named_by_variable_has_one_model() {
    let variables = |name: &str| {
        let value = match name {
            "AZURE_OPENAI_ENDPOINT" => "https://me.openai.azure.com",
            "AZURE_OPENAI_DEPLOYMENT" => "prod",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let allowed = AllowList::new(&[], false).unwrap();
    let mut settings = Settings::default();
    settings.run.model = Some("gpt-5".to_owned());
    let is_allowed = |name: &str, variable: Variable<'_>| {
        allowed_model_with("model", name, &settings, &allowed, variable).is_ok()
    };
    assert!(!is_allowed("cheap", &variables));
    for name in ["prod", "gpt-5", "azure/cheap"] {
        assert!(is_allowed(name, &variables), "{name}");
    }
    // The variable has no effect without an Azure endpoint.
    let deployment = |name: &str| (name == "AZURE_OPENAI_DEPLOYMENT").then(|| "prod".to_owned());
    assert!(is_allowed("cheap", &deployment));
}
