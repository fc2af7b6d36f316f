#![allow(clippy::unwrap_used, clippy::expect_used)]
use secrecy::ExposeSecret;

use super::*;
use testwright_config::settings::{Settings, Sources};

fn provider(name: &str, variables: &[(&str, &str)]) -> Result<Provider> {
    let variables: std::collections::BTreeMap<String, String> = variables
        .iter()
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect();
    let sources = Sources {
        variables: variables.clone(),
        ..Sources::default()
    };
    let settings = Settings::load(&sources).unwrap();
    let name = ModelName::parse(name)?;
    Provider::new(&name, &settings, &|name| variables.get(name).cloned())
}

fn openai(name: &str, variables: &[(&str, &str)]) -> OpenAiSettings {
    match provider(name, variables) {
        Ok(Provider::OpenAi(settings)) => *settings,
        other => panic!("{other:?}"),
    }
}

#[test]
fn plain_names_use_openai() {
    for name in ["gpt-5-mini", "openai/gpt-5-mini"] {
        let it = openai(name, &[("OPENAI_API_KEY", "sk-x")]);
        assert_eq!(
            (it.model.as_str(), it.base_url.as_str()),
            ("gpt-5-mini", OPENAI_BASE_URL)
        );
        assert_eq!(it.api_key.unwrap().expose_secret(), "sk-x");
        assert_eq!(it.azure, None);
    }
    let it = openai(
        "Qwen/Qwen2.5",
        &[("OPENAI_BASE_URL", "http://127.0.0.1:8085/v1")],
    );
    assert_eq!(it.model, "Qwen/Qwen2.5", "other slashes belong to the name");
}

#[test]
fn only_openai_needs_key() {
    let it = openai("m", &[("OPENAI_BASE_URL", "http://127.0.0.1:8085/v1")]);
    assert!(it.api_key.is_none());
    let error = provider("gpt-5-mini", &[]).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(
        error.render().contains("OPENAI_API_KEY is not set"),
        "{}",
        error.render()
    );
    // A resumed run cannot change its model.
    assert!(!error.render().contains("--model"), "{}", error.render());
}

#[test]
fn models_of_others_are_not_requested_from_openai() {
    let key = ("OPENAI_API_KEY", "k");
    let error = provider("claude-sonnet-4-5", &[key]).unwrap_err().render();
    assert!(error.contains("a model of Anthropic"), "{error}");
    assert!(error.contains("OPENAI_BASE_URL to https://api.anthropic.com/v1 "));
    let base = ("OPENAI_BASE_URL", "https://gateway.example.org/v1");
    let it = openai("claude-sonnet-4-5", &[key, base]);
    assert_eq!(it.base_url, "https://gateway.example.org/v1");
}

#[test]
fn azure_is_selected_by_variables_or_name() {
    let variables = [
        ("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com"),
        ("AZURE_OPENAI_API_KEY", "k"),
        ("AZURE_OPENAI_API_VERSION", "2025-01-01-preview"),
    ];
    for name in ["my-gpt", "azure/my-gpt"] {
        let it = openai(name, &variables);
        assert_eq!(it.base_url, "https://me.openai.azure.com");
        assert_eq!(
            it.azure,
            Some(Azure {
                deployment: Deployment::parse("my-gpt").unwrap(),
                api_version: "2025-01-01-preview".to_owned()
            })
        );
        assert_eq!(it.key_variable, AZURE_KEY);
    }
    let error = provider("azure/my-gpt", &variables[..1]).unwrap_err();
    assert!(error.render().contains(AZURE_KEY), "{}", error.render());
    let both = [&variables[..], &[("OPENAI_API_KEY", "sk-x")]].concat();
    assert_eq!(
        openai("gpt-5-mini", &both).azure,
        None,
        "OpenAI's own key comes first"
    );
}

#[test]
fn reported_deployment_matches_calls() {
    let endpoint = ("AZURE_OPENAI_ENDPOINT", "https://me.openai.azure.com");
    let (key, variable) = (
        ("AZURE_OPENAI_API_KEY", "k"),
        ("AZURE_OPENAI_DEPLOYMENT", "prod"),
    );
    let setting = ("TESTWRIGHT_MODEL_AZURE_DEPLOYMENT", "set");
    for (name, variables, expected) in [
        ("gpt-5", vec![endpoint, key], "gpt-5"),
        ("gpt-5", vec![endpoint, key, variable], "prod"),
        ("azure/gpt-5", vec![endpoint, key, variable], "gpt-5"),
        ("azure/gpt-5", vec![endpoint, key, variable, setting], "set"),
    ] {
        let azure = openai(name, &variables).azure.unwrap();
        assert_eq!(azure.deployment, Deployment::parse(expected).unwrap());
    }
}

/// Names composed of parts with a meaning in names, paths or addresses.
#[test]
fn hostile_names_reach_no_other_target() {
    let parts = [
        "replay:",
        "replay-by-order:",
        "azure/",
        "openai/",
        "snippet",
        "gpt-5",
        "m",
        "/",
        "..",
        ".",
        "?",
        "#",
        "%2f",
        "%",
        "@",
        ":",
        "\\",
        " ",
        "\t",
        "\n",
        "\0",
        "\u{a0}",
        "\u{200b}",
        "ä",
        "//",
        "etc",
        ";",
        "&a=b",
        "http://h/",
    ];
    let base = (
        "TESTWRIGHT_MODEL_BASE_URL",
        "https://models.example.org/below/v1",
    );
    let version = ("TESTWRIGHT_MODEL_AZURE_API_VERSION", "1");
    let keys = [
        ("OPENAI_API_KEY", "k"),
        ("AZURE_OPENAI_API_KEY", "k"),
        base,
        version,
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut counts = [0; 2];
    for _ in 0..4_000 {
        let number = random.usize(1..6);
        let name: String = (0..number)
            .map(|_| parts[random.usize(..parts.len())])
            .collect();
        for (is_azure, variables) in [&keys[..3], &keys[..]].into_iter().enumerate() {
            match provider(&name, variables) {
                Ok(Provider::Replay { .. }) => assert!(name.starts_with("replay"), "{name:?}"),
                Ok(Provider::OpenAi(settings)) => {
                    let url = crate::openai::address(&settings).unwrap();
                    assert_eq!(url.host_str(), Some("models.example.org"), "{name:?}");
                    let parts: Vec<&str> = url.path_segments().unwrap().collect();
                    let is_own = match settings.azure {
                        None => parts == ["below", "v1", "chat", "completions"],
                        Some(_) => {
                            parts[..4] == ["below", "v1", "openai", "deployments"]
                                && parts[5..] == ["chat", "completions"]
                        }
                    };
                    assert!(is_own && url.fragment().is_none(), "{name:?}: {url}");
                    counts[is_azure] += 1;
                }
                Ok(Provider::Snippet) => assert_eq!(name, "snippet"),
                Err(error) => assert_eq!(error.exit_code(), 2, "{name:?}"),
            }
        }
    }
    assert!(counts.iter().all(|number| *number > 100), "{counts:?}");
}

#[test]
fn other_names_are_parsed() {
    assert!(matches!(provider("snippet", &[]), Ok(Provider::Snippet)));
    assert!(provider("openai/", &[]).is_err());
    let file = tempfile::NamedTempFile::new().unwrap();
    let name = format!("replay:{}", file.path().display());
    assert!(matches!(
        provider(&name, &[]),
        Ok(Provider::Replay { lenient: false, .. })
    ));
}
