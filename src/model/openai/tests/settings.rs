use super::*;

#[test]
fn settings_that_cannot_work_are_refused_at_once() {
    let with = |change: &dyn Fn(&mut OpenAiSettings)| {
        let mut settings = OpenAiSettings::new("m");
        change(&mut settings);
        OpenAi::new(settings).map(|_| ()).unwrap_err().to_string()
    };
    assert!(with(&|s| s.base_url = "localhost:8080".to_owned()).contains("localhost"));
    assert!(with(&|s| s.api_key = Some(SecretString::from("a\nb"))).contains("cannot be sent"));
    assert!(with(&|s| s.ca_bundle = Some("/nowhere.pem".into())).contains("/nowhere.pem"));
    let header = ("bad header".to_owned(), "x".to_owned());
    assert!(with(&|s| s.headers.extend([header.clone()])).contains("bad header"));
}
