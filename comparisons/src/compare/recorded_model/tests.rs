#![allow(clippy::unwrap_used)]
use super::*;
use testwright_agent::trajectory::Purpose;

#[tokio::test]
async fn missing_replies_keep_their_position() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = RunFolder::create(folder.path()).unwrap();
    let reply = |purpose, content: &str| Event::Reply {
        purpose,
        request: String::new(),
        messages: Vec::new(),
        reply: Reply {
            content: content.to_owned(),
            ..Reply::default()
        },
        seconds: 0.0,
    };
    let missing = |purpose, cause| Event::NoReply { purpose, cause };
    let message = "too long".to_owned();
    let full = NoReplyCause::ContextFull { message };
    for event in [
        reply(Purpose::Step, "one"),
        missing(Purpose::Review, full),
        reply(Purpose::Step, "two"),
        Event::Compacted { until: 2 },
        reply(Purpose::Step, "three"),
        missing(Purpose::Step, NoReplyCause::TimeUp { call_started: true }),
    ] {
        run.append(&event).unwrap();
    }
    drop(run);
    let model = RecordedModel::open(folder.path(), "m").unwrap();
    let request = Request {
        messages: Vec::new(),
        tools: Vec::new(),
        parallel_calls: false,
        temperature: None,
        max_tokens: None,
    };
    let mut replies = Vec::new();
    for _ in 0..7 {
        replies.push(match model.complete(&request).await {
            Ok(reply) => reply.content,
            Err(error) => error.to_string(),
        });
    }
    let full = |why| format!("the prompt does not fit into the model's context: {why}");
    assert_eq!(
        replies,
        [
            "one".to_owned(),
            full("too long"),
            "two".to_owned(),
            full("as recorded"),
            "three".to_owned(),
            "the time of the recorded run was up".to_owned(),
            "the recorded run has no more replies".to_owned(),
        ]
    );
}
