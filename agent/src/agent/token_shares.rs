//! Attribution of tokens to purposes. A provider counts a prompt as a whole, so its parts share the count by
//! their length.

use std::collections::{BTreeMap, HashMap};

use testwright_models::{Message, Request, Usage};

/// Tokens by purpose: `tool schemas`, `system prompt`, `issue`, `remarks`, `earlier replies`, `answers of
/// TOOL`, `replies`, `review`.
pub type TokenShares = BTreeMap<String, u64>;

/// Adds the tokens of one call.
pub(super) fn add_shares(
    shares: &mut TokenShares,
    request: &Request,
    usage: &Usage,
    is_step: bool,
) {
    if !is_step {
        add_side_call(shares, usage);
        return;
    }
    let mut add = |what: String, tokens: u64| add_tokens(shares, what, tokens);
    add("replies".to_owned(), usage.completion_tokens);
    let lengths = lengths(request);
    let mut remaining_tokens = usage.prompt_tokens;
    let mut rest: u64 = lengths.values().sum();
    for (what, length) in lengths {
        // A share of the remainder, so that the sum equals the provider's count.
        let share = u128::from(remaining_tokens) * u128::from(length) / u128::from(rest.max(1));
        let share = u64::try_from(share).unwrap_or(remaining_tokens);
        add(what, share);
        remaining_tokens -= share;
        rest -= length;
    }
}

/// Adds the tokens of a side call, whose prompt is not divided.
pub(super) fn add_side_call(shares: &mut TokenShares, usage: &Usage) {
    let tokens = usage.prompt_tokens.saturating_add(usage.completion_tokens);
    add_tokens(shares, "review".to_owned(), tokens);
}

fn add_tokens(shares: &mut TokenShares, what: String, tokens: u64) {
    if tokens > 0 {
        let total = shares.entry(what).or_default();
        *total = total.saturating_add(tokens);
    }
}

/// Returns the length of each part in bytes.
fn lengths(request: &Request) -> BTreeMap<String, u64> {
    let mut byte_counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |what: &str, bytes: usize| {
        *byte_counts.entry(what.to_owned()).or_default() += bytes as u64;
    };
    let schemas = serde_json::to_string(&request.tools).unwrap_or_default();
    if !request.tools.is_empty() {
        add("tool schemas", schemas.len());
    }
    let mut tools: HashMap<&str, &str> = HashMap::new();
    let mut is_first = true;
    for message in &request.messages {
        match message {
            Message::System { content } => add("system prompt", content.len()),
            Message::User { content } => {
                add(if is_first { "issue" } else { "remarks" }, content.len());
                is_first = false;
            }
            Message::Assistant {
                content,
                calls,
                extra,
            } => {
                let arguments = calls.iter().map(|call| call.arguments.as_str().len());
                let length = content.len() + arguments.sum::<usize>() + extra.length();
                add("earlier replies", length);
                let names = calls.iter();
                tools.extend(names.map(|call| (call.id.as_str(), call.name.as_str())));
            }
            Message::Tool(result) => {
                let tool = tools.get(result.id.as_str()).copied().unwrap_or("tools");
                add(&format!("answers of {tool}"), result.content.len());
            }
        }
    }
    byte_counts
}

#[cfg(test)]
mod tests;
