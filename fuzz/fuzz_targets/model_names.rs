//! Names of models from clients. Only names with the prefix are recordings. Every request must go to the configured
//! host, below the configured path. The first byte selects whether the service is Azure.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use testwright_config::settings::{Settings, Sources};
use testwright_models::provider::Provider;
use testwright_models::{ModelName, openai};
use testwright_server::fields::check_name;

const VARIABLES: [(&str, &str); 4] = [
    ("OPENAI_API_KEY", "k"),
    ("AZURE_OPENAI_API_KEY", "k"),
    (
        "TESTWRIGHT_MODEL_BASE_URL",
        "https://models.example.org/below/v1",
    ),
    ("TESTWRIGHT_MODEL_AZURE_API_VERSION", "2024-10-21"),
];

fn settings(number: usize) -> Settings {
    let variables = VARIABLES[..number].iter();
    let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let sources = Sources {
        variables: variables.collect(),
        ..Sources::default()
    };
    Settings::load(&sources).expect("settings")
}

fuzz_target!(init: testwright_fuzz::handle_stack_overflow(), |data: &[u8]| {
    static SETTINGS: LazyLock<[Settings; 2]> = LazyLock::new(|| [settings(3), settings(4)]);
    let Some((kind, text)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(text);
    if let Err(error) = check_name("model", &text) {
        assert!(error.render().len() < 200, "an error repeats the name");
    }
    let name = match ModelName::parse(&text) {
        Ok(name) => name,
        Err(error) => {
            assert!(error.render().len() < 2_000, "an error is as long as the name");
            return;
        }
    };
    assert_eq!(name.as_str(), text);
    assert_eq!(text.trim(), text);
    assert!(!text.contains(char::is_control));
    let says_so = text.starts_with("replay:") || text.starts_with("replay-by-order:");
    assert_eq!(name.is_recording(), says_so);
    let variable = |name: &str| {
        let found = VARIABLES.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    match Provider::new(&name, &SETTINGS[usize::from(kind % 2)], &variable) {
        Ok(Provider::OpenAi(settings)) => {
            let url = openai::address(&settings).expect("an address");
            assert_eq!(url.host_str(), Some("models.example.org"));
            assert_eq!(url.fragment(), None);
            let parts: Vec<&str> = url.path_segments().expect("a path").collect();
            assert_eq!(parts[..2], ["below", "v1"]);
            assert_eq!(parts[parts.len() - 2..], ["chat", "completions"]);
            assert_eq!(parts.len(), if settings.azure.is_some() { 7 } else { 4 });
        }
        Ok(Provider::Replay { .. }) => assert!(says_so),
        Ok(Provider::Snippet) => assert_eq!(text, "snippet"),
        Err(error) => assert!(error.render().len() < 2_000),
    }
});
