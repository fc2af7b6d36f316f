//! Assembles a reply from the pieces of a stream.

use std::collections::HashMap;

use async_openai::error::OpenAIError;
use futures::{Stream, StreamExt};
use serde_json::Value;

use super::fault;
use super::response::{self, Raw, RawCall};

/// Reads a stream to its end.
pub(super) async fn collect(
    mut chunks: impl Stream<Item = Result<Value, OpenAIError>> + Unpin,
) -> Result<Raw, OpenAIError> {
    let mut raw = Raw::default();
    let mut pieces = Calls::default();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk?;
        response::error_in(&chunk)?;
        if let Some(usage) = response::usage_in(&chunk) {
            raw.usage = Some(usage.clone());
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            continue;
        };
        if let Some(finish) = choice.get("finish_reason").and_then(Value::as_str) {
            raw.finish = Some(finish.to_owned());
        }
        // Some servers send the complete message at the end, or instead of deltas.
        let Some(delta) = choice.get("delta").or(choice.get("message")) else {
            continue;
        };
        raw.content.push_str(&response::text_of(delta));
        match delta.get("tool_calls").and_then(Value::as_array) {
            Some(calls) => calls.iter().for_each(|call| pieces.add(call)),
            None => {
                if let Some(function) = delta.get("function_call").filter(|f| f.is_object()) {
                    pieces.add(&serde_json::json!({ "index": 0, "function": function }));
                }
            }
        }
    }
    if raw.finish.is_none() {
        let why = "the stream ended before the reply was complete";
        return Err(fault(502, why, String::new()));
    }
    raw.calls = pieces.into_calls();
    Ok(raw)
}

/// Calls that arrive in pieces: the first has id and name, the others add to the arguments.
#[derive(Default)]
struct Calls {
    calls: Vec<(Option<u64>, RawCall)>,
    /// Position of the last call by index.
    last: HashMap<u64, usize>,
}

impl Calls {
    fn add(&mut self, piece: &Value) {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or("");
        let function = piece.get("function").unwrap_or(&Value::Null);
        let name = function.get("name").and_then(Value::as_str).unwrap_or("");
        let at = self.place(index, id, name).unwrap_or_else(|| {
            self.calls.push((index, RawCall::default()));
            let at = self.calls.len() - 1;
            self.last.extend(index.map(|index| (index, at)));
            at
        });
        let call = &mut self.calls[at].1;
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name != name {
            call.name.push_str(name);
        }
        call.arguments.push_str(&response::arguments(function));
    }

    /// Returns the call that a piece belongs to; `None` for a new one.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let last = match index {
            Some(index) => *self.last.get(&index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[last].1;
        let other_id = !id.is_empty() && id != call.id;
        // Servers without indices, or with the same index for all, start a call with its id or name.
        let begins = !name.is_empty() && (other_id || (index.is_none() && id.is_empty()));
        if begins && !call.name.is_empty() {
            return None;
        }
        Some(last)
    }

    fn into_calls(mut self) -> Vec<RawCall> {
        self.calls
            .sort_by_key(|(index, _)| index.unwrap_or(u64::MAX));
        self.calls.into_iter().map(|(_, call)| call).collect()
    }
}
