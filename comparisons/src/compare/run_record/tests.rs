use super::*;
use testwright_agent::issues::Issue;
use testwright_agent::trajectory::Started;
use testwright_models::Reply;

#[test]
fn fixed_rules_make_no_model_calls() {
    let calls = |model: &str| {
        let started = Event::Started(Box::new(Started {
            format: 1,
            at: String::new(),
            testwright: String::new(),
            approach: "snippet".to_owned(),
            model: model.to_owned(),
            issue: Issue::default(),
            repository: String::new(),
            commit: None,
            digest: String::new(),
            settings: serde_json::Value::Null,
            tools: Vec::new(),
            environment_repair: None,
        }));
        let reply = Event::Reply {
            purpose: Purpose::Step,
            request: String::new(),
            messages: Vec::new(),
            reply: Reply::default(),
            seconds: 0.1,
        };
        let (cost, stages) = costs(&[started, reply]);
        (cost.model_calls, stages["step"].model_calls)
    };
    assert_eq!(calls("snippet"), (0, 0));
    assert_eq!(calls("gpt-5"), (1, 1));
}
