//! Calls with the tokens of a family's chat template, one file for each family or each form that several share.
//! The parent module reads the common ways (JSON, tags, `<function=…>`), so families that write no others have no
//! file here.

mod deepseek;
mod gemma;
mod glm;
mod harmony;
mod kimi;
mod llama;
mod marked_tags;
mod mistral;
mod qwen;
mod react;
mod tokens;

#[cfg(test)]
mod tests;

use super::Scan;
use super::arguments::cut_arguments;
use super::marks::skip;
use super::parse_call::{self, ParsedCall};
use super::pythonic;
use crate::near_json;

/// Calls, with the offset after them.
pub(super) type Calls = (usize, Vec<ParsedCall>);

/// Reads a block; `None` if its opener does not start a call.
pub(super) type ReadBlock = fn(&Scan<'_>, &Opened<'_>) -> Option<Calls>;

/// A pattern that starts a block, with the reader of the block.
type Opener = (&'static str, ReadBlock);

/// A block that was opened.
pub(super) struct Opened<'t> {
    /// Text of the whole reply.
    pub(super) text: &'t str,
    /// Start of the opener.
    pub(super) start: usize,
    /// End of the opener.
    pub(super) body: usize,
}

impl<'t> Opened<'t> {
    fn rest(&self) -> &'t str {
        &self.text[self.body..]
    }
}

/// Returns all openers with their readers.
pub(super) fn openers() -> impl Iterator<Item = Opener> {
    [
        deepseek::OPENERS,
        kimi::OPENERS,
        glm::OPENERS,
        qwen::OPENERS,
        harmony::OPENERS,
        mistral::OPENERS,
        llama::OPENERS,
        marked_tags::OPENERS,
        gemma::OPENERS,
        tokens::OPENERS,
        react::OPENERS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Maximum bytes between the start of a call and its arguments.
const MAX_HEADER: usize = 300;

/// Reads a header with a name, followed by a JSON object. `name_in` finds the name in the header.
fn headed_call(
    scan: &Scan<'_>,
    text: &str,
    at: usize,
    name_in: fn(&str) -> &str,
    closers: &[&str],
) -> Option<Calls> {
    let rest = &text[at..];
    let header_end = rest.find('{').filter(|end| *end <= MAX_HEADER)?;
    let name = name_in(&rest[..header_end]);
    if name.is_empty() {
        return None;
    }
    let (end, call) = named_object(scan, text, at + header_end, name);
    Some((skip(text, end, closers), vec![call]))
}

/// Reads such a call only if its name is that of a tool.
fn tool_call(
    scan: &Scan<'_>,
    text: &str,
    at: usize,
    name_in: fn(&str) -> &str,
    closers: &[&str],
) -> Option<Calls> {
    let header = text[at..].split('{').next().unwrap_or_default();
    let is_tool = scan.has_tool(name_in(header));
    let call = is_tool.then(|| headed_call(scan, text, at, name_in, closers));
    call.flatten()
}

/// Reads the arguments of a named call, which start at `at`.
fn named_object(scan: &Scan<'_>, text: &str, at: usize, name: &str) -> (usize, ParsedCall) {
    match near_json::prefix(&text[at..], scan.whole) {
        Ok(prefix) => {
            let call = scan.call(name, prefix.value);
            (at + prefix.end, call)
        }
        Err(problem) => {
            let name = scan.find_tool(name).map_or(name, |tool| &tool.name);
            let call = match problem.cut && !scan.whole {
                true => ParsedCall::malformed(Some(name), cut_arguments(&problem)),
                false => parse_call::unreadable_arguments(name, &problem),
            };
            (text.len(), call)
        }
    }
}

/// Reads calls in JSON: an object, a list, or several objects.
fn json_calls(scan: &Scan<'_>, text: &str, at: usize, closers: &[&str]) -> Option<Calls> {
    let lead = text[at..].trim_start();
    if !lead.starts_with(['{', '[']) {
        return None;
    }
    let lead_at = text.len() - lead.len();
    match super::values(lead, scan.whole, |_| true) {
        Ok((values, used)) => {
            let end = skip(text, lead_at + used, closers);
            Some((end, scan.shapes(&values, true)))
        }
        Err(problem) => {
            let bad = scan.unreadable(lead, &problem, true);
            Some((text.len(), bad.into_iter().collect()))
        }
    }
}

/// Reads calls in Python, where only calls are expected.
pub(super) fn python_calls(
    scan: &Scan<'_>,
    text: &str,
    at: usize,
    closers: &[&str],
) -> Option<Calls> {
    let rest = &text[at..];
    pythonic::first_name(rest)?;
    match pythonic::read(scan, rest) {
        Ok((end, calls)) => Some((skip(text, at + end, closers), calls)),
        Err((name, problem)) => {
            let name = (!name.is_empty()).then_some(name);
            let bad = ParsedCall::Malformed { name, problem };
            Some((text.len(), vec![bad]))
        }
    }
}
