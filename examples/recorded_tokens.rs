//! Counts the tokens of recorded runs by part of the prompt, with one tokenizer.
//!
//! This makes programs comparable on the same replies, independent of each provider's own counts.
//!
//! ```text
//! testwright run … --model replay-by-order:REPLIES.jsonl --record TRAFFIC.jsonl
//! cargo run --example recorded_tokens -- TRAFFIC.jsonl…
//! ```
//!
//! Only prompts are counted. The output has a line for each part and the sum: tokens of `o200k_base`, and characters
//! divided by four.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::Value;
use testwright_agent::retrieval::tokens;

/// Tokens and characters by part of the prompt.
type Shares = BTreeMap<String, (usize, usize)>;

fn main() {
    let mut all = Shares::new();
    for file in std::env::args().skip(1) {
        let mut shares = Shares::new();
        let calls = count(&std::fs::read_to_string(&file).unwrap(), &mut shares);
        println!("{file}: {calls} calls");
        print(&shares);
        for (part, (tokens, characters)) in shares {
            let sum = all.entry(part).or_default();
            *sum = (sum.0 + tokens, sum.1 + characters);
        }
    }
    println!("all");
    print(&all);
}

fn print(shares: &Shares) {
    let sum = |of: fn(&(usize, usize)) -> usize| shares.values().map(of).sum::<usize>();
    let all = (sum(|share| share.0), sum(|share| share.1));
    let all = [("all".to_owned(), all)];
    for (part, (tokens, characters)) in shares.clone().into_iter().chain(all) {
        println!("  {part:<28} {tokens:>8} {:>8}", characters / 4);
    }
}

/// Adds the parts of each prompt. Returns the number of prompts.
fn count(traffic: &str, shares: &mut Shares) -> usize {
    let (mut messages, mut tools) = (Vec::<Value>::new(), Value::Null);
    let mut calls = 0;
    for line in traffic.lines() {
        let exchange: Value = serde_json::from_str(line).unwrap();
        if let Some(setting) = exchange.get("setting") {
            tools = setting["tools"].clone();
        }
        let retained_count = exchange["kept"].as_u64().unwrap();
        messages.truncate(usize::try_from(retained_count).unwrap());
        messages.extend(exchange["messages"].as_array().unwrap().iter().cloned());
        if exchange.get("reply").is_some() {
            calls += 1;
            add_prompt(&messages, tools.as_array().unwrap(), shares);
        }
    }
    calls
}

fn add_prompt(messages: &[Value], tools: &[Value], shares: &mut Shares) {
    let mut add = |part: &str, text: &str| {
        let share = shares.entry(part.to_owned()).or_default();
        share.0 += tokens::count(text);
        share.1 += text.chars().count();
    };
    for tool in tools {
        let sent = serde_json::json!({ "type": "function", "function": tool });
        add("tool schemas", &sent.to_string());
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    let mut is_first = true;
    for message in messages {
        let content = message["content"].as_str().unwrap_or_default();
        match message["role"].as_str().unwrap() {
            "system" => add("system prompt", content),
            // Only the reviewer has no tools.
            "user" if tools.is_empty() => add("review", content),
            "user" => {
                add(if is_first { "issue" } else { "remarks" }, content);
                is_first = false;
            }
            "assistant" => {
                add("earlier replies", content);
                for call in message["calls"].as_array().into_iter().flatten() {
                    let name = call["name"].as_str().unwrap();
                    names.insert(call["id"].as_str().unwrap(), name);
                    add("earlier replies", &call["arguments"].to_string());
                }
            }
            "tool" => {
                let of = names.get(message["id"].as_str().unwrap()).unwrap_or(&"?");
                add(&format!("answers of {of}"), content);
            }
            _ => {}
        }
    }
}
