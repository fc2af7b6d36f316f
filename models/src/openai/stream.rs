//! Assembles a reply from the pieces of a stream.

use std::collections::HashMap;

use async_openai::error::OpenAIError;
use futures::{Stream, StreamExt};
use serde_json::Value;

use super::extra_fields;
use super::fault;
use super::reply_errors;
use super::response::{self, Raw, RawCall};

/// Fault of a stream that ended without the reason why the reply ended.
pub(super) const UNFINISHED: &str = "the stream ended before the reply was complete";

/// Fault of a stream in which nothing was found.
pub(super) const EMPTY: &str = "the stream ended without a reply";

/// Reads a stream to its end. For a reply without calls, `is_done` tells afterwards whether its last event was
/// `[DONE]`, and `needs_finish` whether it needs a reason for its end.
pub(super) async fn collect(
    mut chunks: impl Stream<Item = Result<Value, OpenAIError>> + Unpin,
    is_done: impl Fn() -> bool,
    needs_finish: bool,
) -> Result<Raw, OpenAIError> {
    let mut raw = Raw::default();
    let mut pieces = Calls::default();
    while let Some(chunk) = chunks.next().await {
        let chunk = match chunk {
            // Keep-alive messages and unusual forms of `[DONE]` are not chunks.
            Err(OpenAIError::JSONDeserialize(_, data)) if !data.trim_start().starts_with('{') => {
                continue;
            }
            chunk => chunk?,
        };
        reply_errors::error_in(&chunk)?;
        if let Some(usage) = response::usage_in(&chunk) {
            raw.usage = Some(usage.clone());
        }
        let Some(choice) = chunk.pointer("/choices/0") else {
            continue;
        };
        reply_errors::error_in_choice(choice)?;
        let finish = choice.get("finish_reason").and_then(Value::as_str);
        if let Some(finish) = finish.filter(|finish| !matches!(*finish, "" | "null")) {
            raw.finish = Some(finish.to_owned());
        }
        // Some servers send the complete message at the end, or instead of deltas.
        let is_object = |value: &&Value| value.is_object();
        let delta = choice.get("delta").filter(is_object);
        let whole = choice.get("message").filter(is_object);
        if delta.is_none() && whole.is_some() {
            raw.content.clear();
            raw.extra.clear();
            pieces = Calls::default();
        }
        let Some(delta) = delta.or(whole) else {
            continue;
        };
        raw.content.push_str(&response::text_of(delta));
        extra_fields::add_of_message(&mut raw.extra, delta);
        match delta.get("tool_calls").and_then(Value::as_array) {
            Some(calls) => calls.iter().for_each(|call| pieces.add(call)),
            None => {
                if let Some(function) = delta.get("function_call").filter(|f| f.is_object()) {
                    pieces.add(&serde_json::json!({ "index": 0, "function": function }));
                }
            }
        }
    }
    raw.calls = pieces.into_calls();
    if raw.finish.is_some() {
        return Ok(raw);
    }
    // Complete calls show their end themselves. A text does not, unless the service never says why it ended.
    let has_calls = !raw.calls.is_empty();
    let is_complete = match (has_calls, is_done()) {
        // A service that never says why a reply ended may also send calls that cannot be read.
        (true, true) if !needs_finish => true,
        // Many services send no arguments for a tool that needs none.
        (true, true) => raw
            .calls
            .iter()
            .all(|call| call.is_complete() || call.is_bare()),
        (true, false) => raw.calls.iter().all(RawCall::is_complete),
        (false, done) => done && !needs_finish && !raw.content.is_empty(),
    };
    match is_complete {
        true => Ok(raw),
        false if raw.content.is_empty() && !has_calls && raw.extra.is_empty() => {
            Err(fault(502, EMPTY, String::new()))
        }
        false => Err(fault(502, UNFINISHED, String::new())),
    }
}

impl RawCall {
    /// Returns whether the arguments are complete JSON.
    fn is_complete(&self) -> bool {
        !self.name.is_empty() && is_object(&self.arguments)
    }

    /// Returns whether the call has a name, but no arguments.
    fn is_bare(&self) -> bool {
        !self.name.is_empty() && self.arguments.trim().is_empty()
    }
}

fn is_object(arguments: &str) -> bool {
    let value = serde_json::from_str::<Value>(arguments);
    value.is_ok_and(|value| value.is_object())
}

/// Calls that arrive in pieces: the first has id and name, the others add to the arguments.
#[derive(Default)]
struct Calls {
    calls: Vec<(Option<u64>, RawCall)>,
    /// Position of the last call by index.
    last: HashMap<u64, usize>,
    /// Name that was repeated without arguments after a complete call, with its index.
    repeated: Option<(Option<u64>, RawCall)>,
}

impl Calls {
    fn add(&mut self, piece: &Value) {
        let index = piece.get("index").and_then(Value::as_u64);
        let id = piece.get("id").and_then(Value::as_str).unwrap_or("");
        let function = piece.get("function").unwrap_or(piece);
        let name = function.get("name").and_then(Value::as_str).unwrap_or("");
        let arguments = response::arguments(function);
        let has_arguments = !arguments.is_empty();
        if self.is_repeated(index, id, name, &arguments) {
            let call = RawCall {
                id: id.to_owned(),
                name: name.to_owned(),
                ..RawCall::default()
            };
            self.repeated = (!has_arguments).then_some((index, call));
            return;
        }
        // Arguments after a repeated name show that it began a further call of the same tool.
        let further = self
            .repeated
            .take()
            .filter(|(own_index, _)| *own_index == index && name.is_empty() && has_arguments);
        let at = match (further, self.place(piece, index, id, name)) {
            (Some((_, call)), _) => self.push(index, call),
            (None, Some(at)) => at,
            (None, None) => self.push(index, RawCall::default()),
        };
        let call = &mut self.calls[at].1;
        if call.id.is_empty() {
            id.clone_into(&mut call.id);
        }
        if call.name != name {
            call.name.push_str(name);
        }
        extra_fields::add_of_call(&mut call.extra, piece);
        call.arguments.push_str(&arguments);
    }

    fn push(&mut self, index: Option<u64>, call: RawCall) -> usize {
        self.calls.push((index, call));
        let at = self.calls.len() - 1;
        self.last.extend(index.map(|index| (index, at)));
        at
    }

    /// Returns whether a piece repeats a complete call, as some servers do at the end.
    fn is_repeated(&self, index: Option<u64>, id: &str, name: &str, arguments: &str) -> bool {
        self.calls.iter().any(|(own_index, call)| {
            let is_same = match id.is_empty() {
                true => arguments.is_empty() && index.is_some() && *own_index == index,
                false => call.id == id,
            };
            is_same
                && call.name == name
                && call.is_complete()
                && (arguments.is_empty() || arguments == call.arguments)
        })
    }

    /// Returns the call that a piece belongs to; `None` for a new one.
    fn place(&self, piece: &Value, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        // Pieces of several calls may alternate under one index.
        let is_continued = |(own_index, call): &(Option<u64>, RawCall)| {
            let is_same = !id.is_empty() && call.id == id && *own_index == index;
            is_same && (name.is_empty() || name == call.name) && !call.is_complete()
        };
        if let Some(at) = self.calls.iter().rposition(is_continued) {
            return Some(at);
        }
        let last = match index {
            Some(index) => *self.last.get(&index)?,
            None => self.calls.len().checked_sub(1)?,
        };
        let call = &self.calls[last].1;
        // Some servers repeat the name with a new id in each piece.
        let is_open = !call.arguments.is_empty() && !call.is_complete();
        let continues = index.is_some() && name == call.name && is_open;
        let other_id = !id.is_empty() && id != call.id && !continues;
        // A name in pieces comes without a type and before the arguments.
        let function = piece.get("function").unwrap_or(piece);
        let is_whole = piece.get("type").is_some() || is_object(&response::arguments(function));
        let other_name = name != call.name && call.is_bare() && is_whole;
        // Servers without indices, or with the same index for all, start a call with its id or name, or with
        // a name after complete arguments.
        let begins = !name.is_empty()
            && (other_id || other_name || (index.is_none() && id.is_empty()) || call.is_complete());
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
