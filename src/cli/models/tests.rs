#![allow(clippy::unwrap_used)]
use super::*;

fn list(variables: &[(&str, &str)]) -> (ModelList, String) {
    let variables = variables.iter();
    let sources = Sources {
        variables: variables
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..Sources::default()
    };
    let mut settings = Settings::load(&sources).unwrap();
    let own = Price {
        prompt: 0.0,
        cached: None,
        completion: 0.0,
        date: None,
    };
    settings.prices.insert("gpt-5-mini".to_owned(), own);
    let list = ModelList {
        models: rows(&settings),
        selected: selected(&settings),
    };
    let text = render(&list);
    (list, text)
}

#[test]
fn settings_replace_row_of_table() {
    let (list, text) = list(&[]);
    let mini = list.models.iter().filter(|row| row.name == "gpt-5-mini");
    let mini: Vec<&ModelRow> = mini.collect();
    assert_eq!((mini.len(), mini[0].provider), (1, None));
    assert!(text.contains("your settings"), "{text}");
    assert!(text.contains("claude-sonnet-4-5"), "{text}");
    assert!(
        text.contains("selected: snippet (no model is configured"),
        "{text}"
    );
}

#[test]
fn selection_states_reason() {
    let variables = [("OPENAI_API_KEY", "k"), ("OPENAI_MODEL", "gpt-4.1")];
    let (_, text) = list(&variables);
    assert!(
        text.contains("selected: gpt-4.1 (set by OPENAI_MODEL)"),
        "{text}"
    );
    let (list, _) = list(&variables[..1]);
    assert_eq!(list.selected.model.as_deref(), Some("gpt-5-mini"));
    assert_eq!(list.selected.reason, "no model is given: using gpt-5-mini");
}
