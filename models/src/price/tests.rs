#![allow(clippy::unwrap_used, clippy::expect_used)]
use super::*;

fn settings() -> Settings {
    let prices = toml::from_str(
        "[gpt-5-mini]\nprompt = 0.25\ncached = 0.025\ncompletion = 2.0\ndate = \"2026-11-01\"\n[\"qwen/coder\"]\nprompt = 1\ncompletion = 0\n",
    )
    .unwrap();
    let mut settings = Settings::default();
    settings.prices = prices;
    settings
}

fn dollars(model: &str, usage: &Usage) -> Option<f64> {
    let settings = settings();
    let price = price_of(&settings, &ModelName::parse(model).unwrap())?;
    Some(cost(price, usage))
}

const USAGE: Usage = Usage {
    prompt_tokens: 1_000_000,
    cached_tokens: 400_000,
    completion_tokens: 100_000,
    dollars: None,
    estimated: false,
};

#[test]
fn cached_tokens_have_own_price() {
    let mini = dollars("gpt-5-mini", &USAGE).unwrap();
    assert!((mini - (0.6 * 0.25 + 0.4 * 0.025 + 0.1 * 2.0)).abs() < 1e-12);
    assert_eq!(dollars("qwen/coder", &USAGE), Some(1.0));
}

#[test]
fn price_ignores_provider_and_date() {
    for name in [
        "openai/gpt-5-mini",
        "azure/gpt-5-mini",
        "gpt-5-mini-2025-08-07",
        "openai/gpt-5-mini-2025-08-07",
        "openai/qwen/coder",
    ] {
        assert!(dollars(name, &USAGE).is_some(), "{name}");
    }
    for name in ["gpt-5-mini-pro", "coder", "gpt-5-mini-2025-08", "snippet"] {
        assert_eq!(dollars(name, &USAGE), None, "{name}");
    }
}

#[test]
fn settings_override_table() {
    let own = Price {
        prompt: 1.0,
        cached: None,
        completion: 1.0,
        date: None,
    };
    let model = ModelName::parse("claude-sonnet-4-5-20250929").unwrap();
    let mut settings = Settings::default();
    let price = price_of(&settings, &model).unwrap();
    assert_eq!((price.prompt, price.completion), (3.0, 15.0));
    assert!(price.date.is_some());
    let name = "claude-sonnet-4-5".to_owned();
    settings.prices.insert(name, own.clone());
    assert_eq!(price_of(&settings, &model), Some(&own));
}

#[test]
fn limit_needs_price() {
    let mut settings = Settings::default();
    let check =
        |settings: &Settings, name: &str| check_limit(settings, &ModelName::parse(name).unwrap());
    assert!(check(&settings, "local").is_ok());
    settings.run.max_dollars = Some(1.0);
    let error = check(&settings, "local").unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.hint.unwrap().contains("set both to 0"));
    for name in ["gpt-5-mini", "snippet", "replay:a.jsonl"] {
        assert!(check(&settings, name).is_ok(), "{name}");
    }
}

#[test]
fn sum_needs_all_prices() {
    let priced = Usage {
        dollars: Some(1.0),
        ..USAGE
    };
    let mut sum = Usage::default();
    sum += priced;
    sum += priced;
    assert_eq!(sum.dollars, Some(2.0));
    sum += Usage {
        estimated: true,
        ..USAGE
    };
    assert_eq!(sum.dollars, None);
    assert!(sum.estimated);
    sum += priced;
    assert_eq!(sum.dollars, None, "what is unknown stays unknown");
}
