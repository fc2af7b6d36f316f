use super::*;

#[tokio::test]
async fn a_hostile_number_of_calls_without_ids_gets_ids_of_its_own() {
    // Never ended where there were no more than a thousand ids.
    let call = json!({"function": {"name": "search", "arguments": "{}"}});
    let message = json!({"role": "assistant", "content": null, "tool_calls": vec![call; 2_500]});
    let reply = answer_to(Act::json(200, &whole(message, "tool_calls"))).await;
    let reply = reply.unwrap();
    let ids: std::collections::HashSet<&str> = reply.calls.iter().map(|c| c.id.as_str()).collect();
    assert_eq!((reply.calls.len(), ids.len()), (2_500, 2_500));
}

#[tokio::test]
async fn hostile_counts_of_tokens_do_not_start_again_from_nothing() {
    let mut body = whole(json!({"role": "assistant", "content": "x"}), "stop");
    body["usage"] = json!({"prompt_tokens": 1e19, "completion_tokens": 1e30, "cache_read_input_tokens": 1.2e19});
    let usage = answer_to(Act::json(200, &body)).await.unwrap().usage;
    let mut sum = usage;
    sum += usage;
    assert_eq!(
        (usage.prompt_tokens, sum.completion_tokens),
        (u64::MAX, u64::MAX)
    );
}
