use super::{MAX_ENCODED_LEN, encoded};

#[test]
fn names_are_encoded_without_collisions() {
    assert_eq!(encoded("gpt-5-mini"), "gpt-5-mini");
    assert_eq!(encoded("otter:planner=off"), "otter%3Aplanner=off");
    assert_eq!(encoded(".."), "%2E.");
    assert_ne!(encoded("a/b"), encoded("a%2Fb"));
    let long = |end: &str| encoded(&format!("command:python {}{end}", "/".repeat(300)));
    assert_eq!(long("a").len(), MAX_ENCODED_LEN);
    assert_ne!(long("a"), long("b"));
}
