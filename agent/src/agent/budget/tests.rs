use super::*;

fn reply(prompt: u64, completion: u64, dollars: Option<f64>) -> Reply {
    Reply {
        usage: Usage {
            prompt_tokens: prompt,
            completion_tokens: completion,
            dollars,
            ..Usage::default()
        },
        ..Reply::default()
    }
}

fn request(length: usize) -> Request {
    Request {
        messages: user(length),
        tools: Vec::new(),
        parallel_calls: true,
        temperature: None,
        max_tokens: None,
    }
}

fn user(length: usize) -> Vec<Message> {
    vec![Message::User {
        content: "x".repeat(length),
    }]
}

#[test]
fn call_over_limit_is_not_made() {
    let mut budget = Budget::new(Limits {
        steps: Some(2),
        tokens: Some(5_000),
        ..Limits::default()
    });
    assert_eq!(budget.next_call(&user(400), &[]), None);
    budget.record_call(&reply(100, 10, None), &request(400), 0.1, true);
    assert_eq!(budget.next_call(&user(20_000), &[]), Some(Limit::Tokens));
    assert_eq!(budget.next_call(&user(400), &[]), None);
    budget.record_call(&reply(100, 10, None), &request(400), 0.1, true);
    assert_eq!(budget.next_call(&user(400), &[]), Some(Limit::Steps));
    assert_eq!(budget.side_call(&user(400)), None);
}

#[test]
fn little_time_left_is_reported() {
    let mut budget = Budget::new(Limits {
        minutes: Some(30.0),
        ..Limits::default()
    });
    budget.add_earlier_time(26.0 * 60.0);
    assert_eq!(budget.nearly_spent(), None);
    budget.add_earlier_time(2.0 * 60.0);
    assert_eq!(budget.nearly_spent().as_deref(), Some("2.0 minutes"));
}

#[test]
fn huge_time_limit_is_ignored() {
    let budget = Budget::new(Limits {
        minutes: Some(1e30),
        ..Limits::default()
    });
    assert_eq!(budget.next_call(&user(400), &[]), None);
}

#[test]
fn new_tools_count_toward_token_limit() {
    let mut budget = Budget::new(Limits {
        tokens: Some(5_000),
        ..Limits::default()
    });
    let tools = [ToolSpec {
        name: "a".to_owned(),
        description: "x".repeat(40_000),
        parameters: serde_json::Value::Null,
    }];
    let limit = |budget: &Budget| budget.next_call(&user(400), &tools);
    assert_eq!(limit(&budget), Some(Limit::Tokens));
    budget.record_call(&reply(100, 10, None), &request(400), 0.1, true);
    assert_eq!(limit(&budget), Some(Limit::Tokens));
    let rest = budget.completion_tokens(&user(400), &tools, Some(4_000));
    assert_eq!(rest, Some(MIN_COMPLETION_TOKENS));
    // The provider has counted the tools of the last call.
    let with_tools = Request {
        tools: tools.to_vec(),
        ..request(400)
    };
    budget.record_call(&reply(200, 10, None), &with_tools, 0.1, true);
    assert_eq!(limit(&budget), None);
}

#[test]
fn last_calls_get_remaining_tokens() {
    let mut budget = Budget::new(Limits {
        tokens: Some(10_000),
        ..Limits::default()
    });
    assert_eq!(
        budget.completion_tokens(&user(400), &[], Some(4_000)),
        Some(4_000)
    );
    assert_eq!(budget.nearly_spent(), None);
    budget.record_call(&reply(4_000, 1_000, None), &request(16_000), 0.1, true);
    assert_eq!(budget.nearly_spent().as_deref(), Some("5000 tokens"));
    assert_eq!(
        budget.completion_tokens(&user(16_000), &[], Some(4_000)),
        Some(1_000)
    );
    assert_eq!(budget.completion_tokens(&user(16_000), &[], None), None);
    budget.limits.tokens = None;
    assert_eq!(
        budget.completion_tokens(&user(16_000), &[], Some(4_000)),
        Some(4_000)
    );
    assert_eq!(budget.nearly_spent(), None);
}

#[test]
fn dollars_are_estimated_from_token_price() {
    let mut budget = Budget::new(Limits {
        dollars: Some(1.0),
        ..Limits::default()
    });
    budget.record_call(&reply(900, 100, Some(0.5)), &request(3_600), 0.1, true);
    assert_eq!(budget.next_call(&user(3_600), &[]), Some(Limit::Dollars));
    budget.limits.dollars = Some(2.0);
    assert_eq!(budget.next_call(&user(3_600), &[]), None);
}

#[test]
fn first_call_is_estimated_from_price() {
    let mut budget = Budget::new(Limits {
        dollars: Some(0.01),
        ..Limits::default()
    });
    let long = user(80_000);
    assert_eq!(budget.next_call(&long, &[]), None);
    budget.set_prompt_price(1e-6);
    assert_eq!(budget.next_call(&long, &[]), Some(Limit::Dollars));
    assert_eq!(
        budget
            .describe_excess(Limit::Dollars, &long, &[])
            .as_deref(),
        Some("$0.0000 of $0.01 is spent, and the next call could cost $0.0203")
    );
    assert_eq!(budget.next_call(&user(400), &[]), None);
}

#[test]
fn time_includes_use_before_crash() {
    let mut budget = Budget::new(Limits {
        minutes: Some(1.0),
        ..Limits::default()
    });
    assert_eq!(budget.next_call(&user(1), &[]), None);
    budget.add_earlier_time(61.0);
    assert_eq!(budget.next_call(&user(1), &[]), Some(Limit::Minutes));
}

#[test]
fn unused_share_goes_to_others() {
    let mut budget = Budget::new(Limits {
        steps: Some(60),
        tokens: Some(9_000),
        dollars: Some(3.0),
        minutes: None,
    });
    let first = budget.share(3);
    assert_eq!(first.steps, Some(20));
    assert_eq!(first.tokens, Some(3_000));
    assert_eq!(first.dollars, Some(1.0));
    budget.record_call(&reply(900, 100, Some(0.5)), &request(10), 0.1, true);
    let second = budget.share(2);
    assert_eq!(second.steps, Some(1 + 30));
    assert_eq!(second.tokens, Some(5_000));
    assert_eq!(second.dollars, Some(1.75));
    assert_eq!(budget.share(1), budget.limits);
}

#[test]
fn hostile_token_counts_do_not_overflow() {
    let usage = Usage {
        prompt_tokens: u64::MAX,
        completion_tokens: u64::MAX,
        ..Usage::default()
    };
    let mut spent = RunUsage::default();
    spent.add(&usage);
    spent.add(&usage);
    assert_eq!(spent.tokens(), u64::MAX);
}
