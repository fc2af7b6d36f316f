use super::*;
use testwright_agent::trajectory::FileState;

#[test]
fn answer_is_the_last_file_content() {
    let state = |path: &str, text: Option<&str>, base: bool| Event::State {
        files: vec![FileState {
            path: path.to_owned(),
            content: text.map(|text| BASE64_STANDARD.encode(text)),
            base,
        }],
        omitted: Vec::new(),
    };
    let mut events = vec![
        state("t.py", Some("first"), false),
        state("t.py", Some("second"), false),
        state("other.py", Some("third"), false),
    ];
    assert_eq!(last_content(&events, "t.py").as_deref(), Some("second"));
    events.push(state("t.py", None, true));
    assert_eq!(last_content(&events, "t.py"), None);
    events.push(state("t.py", None, false));
    assert_eq!(last_content(&events, "t.py"), None);
}
