//! Finds the tool that a name means. Servers leave namespaces, channel markers and counters on names, and
//! models change their case.

use testwright_tools::tool::ToolSpec;

use crate::near_json;

/// Words that servers leave next to a name: channels of the harmony format and types of content.
const MARKER_WORDS: [&str; 8] = [
    "json",
    "commentary",
    "analysis",
    "final",
    "code",
    "constrain",
    "function",
    "tool",
];

/// Words of namespaces that are joined to a name, as in `mcp_testwright_search`.
const NAMESPACE_WORDS: [&str; 17] = [
    "functions",
    "function",
    "func",
    "fn",
    "tools",
    "tool",
    "default",
    "api",
    "namespace",
    "mcp",
    "testwright",
    "server",
    "call",
    "multi",
    "use",
    "repo",
    "browser",
];

/// Words that are joined to the end of a name, besides [`MARKER_WORDS`] and numbers.
const SUFFIX_WORDS: [&str; 5] = ["call", "calls", "tools", "functions", "api"];

/// Maximum number of words to remove at each end of a name.
const MAX_DECORATION: usize = 4;

/// Starts of markers that follow a name.
const MARKER_STARTS: [&str; 7] = ["<", "[ARGS]", "[CALL_ID]", "(", "{", "?", "@"];

/// Returns the tool that a name means, or the problem with the name.
///
/// # Errors
///
/// Fails with a message for the model if no tool matches.
pub(super) fn find_tool<'t>(name: &str, tools: &'t [ToolSpec]) -> Result<&'t ToolSpec, String> {
    let name = name.trim();
    if let Some(tool) = tools.iter().find(|tool| tool.name == name) {
        return Ok(tool);
    }
    let bare = without_markers(name);
    let tool = matching(&bare, tools).or_else(|| only_word(name, tools));
    tool.ok_or_else(|| unknown(&bare, tools))
}

/// Returns the tool that a name without markers means.
fn matching<'t>(bare: &str, tools: &'t [ToolSpec]) -> Option<&'t ToolSpec> {
    let mut candidates = candidates(bare).into_iter();
    candidates.find_map(|candidate| only_match(&candidate, tools))
}

/// Returns the tool in a name with markers around it, such as `function<｜tool▁sep｜>search`.
fn only_word<'t>(name: &str, tools: &'t [ToolSpec]) -> Option<&'t ToolSpec> {
    if !name.contains(['<', '>', '|', '｜', '=', '\n']) {
        return None;
    }
    let words = name.split(|c: char| !c.is_alphanumeric() && !"_-.:/#".contains(c));
    let mut meant: Vec<&ToolSpec> = words.filter_map(|word| matching(word, tools)).collect();
    meant.dedup();
    match meant[..] {
        [tool] => Some(tool),
        _ => None,
    }
}

/// Returns the name without quotes and markers.
fn without_markers(name: &str) -> String {
    let mut bare = name.split_once("to=").map_or(name, |(_, target)| target);
    let quotes = ['"', '\'', '`', '<', '>', '[', ']', ' ', ':', '.', '/'];
    bare = bare.trim_start_matches(quotes);
    for marker in MARKER_STARTS {
        if let Some(at) = bare.find(marker).filter(|at| *at > 0) {
            bare = &bare[..at];
        }
    }
    bare = bare.trim_matches(quotes);
    let is_name = |word: &&str| !MARKER_WORDS.contains(&word.to_lowercase().as_str());
    let words: Vec<&str> = bare.split_whitespace().filter(is_name).collect();
    if words.is_empty() {
        return bare.trim().to_owned();
    }
    words.join(" ").trim_matches(quotes).to_owned()
}

/// Returns the names that a decorated name may stand for, the likeliest first.
fn candidates(bare: &str) -> Vec<String> {
    let mut names = vec![bare.to_owned()];
    let mut parts: Vec<&str> = bare
        .split(['.', ':', '/', '#'])
        .filter(|part| !part.is_empty() && !part.bytes().all(|b| b.is_ascii_digit()))
        .collect();
    // Llama writes its built-in tools as `name.call(…)`.
    while parts.len() > 1 && parts.last().is_some_and(|part| is_suffix(part)) {
        parts.pop();
    }
    if let Some(last) = parts.last() {
        names.push((*last).to_owned());
        names.extend(last.rsplit_once("__").map(|(_, name)| name.to_owned()));
        names.extend(last.strip_prefix("function").map(str::to_owned));
        let without_counter = last
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .trim_end_matches(['_', '-']);
        names.push(without_counter.to_owned());
        let fused = MARKER_WORDS.iter();
        names.extend(fused.filter_map(|word| last.strip_suffix(word).map(str::to_owned)));
        names.extend(undecorated(last));
    }
    names
}

/// Returns a name without the words of namespaces before it and markers after it, the longest first.
fn undecorated(name: &str) -> Vec<String> {
    let words = words_of(name);
    let is_namespace = |word: &&String| NAMESPACE_WORDS.contains(&word.as_str());
    let before = words.iter().take_while(is_namespace).count();
    let after = words
        .iter()
        .rev()
        .take_while(|word| is_suffix(word))
        .count();
    let mut names = Vec::new();
    for from in 0..=before.min(MAX_DECORATION) {
        for cut in 0..=after.min(MAX_DECORATION) {
            let rest = words.get(from..words.len() - cut).unwrap_or_default();
            names.push(rest.join("_"));
        }
    }
    names
}

/// Returns whether a word after a name is a marker, a number or a version.
fn is_suffix(word: &str) -> bool {
    let word = word.to_lowercase();
    let number = word.strip_prefix('v').unwrap_or(&word);
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    is_number || MARKER_WORDS.contains(&word.as_str()) || SUFFIX_WORDS.contains(&word.as_str())
}

/// Splits a name into words in lower case, at separators and before capitals.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut is_after_lowercase = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && is_after_lowercase) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        is_after_lowercase = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the only tool with this name, apart from case and separators.
fn only_match<'t>(name: &str, tools: &'t [ToolSpec]) -> Option<&'t ToolSpec> {
    let folded = squeeze(name);
    let mut matching = tools.iter().filter(|tool| squeeze(&tool.name) == folded);
    let tool = matching.next().filter(|_| !folded.is_empty());
    tool.filter(|_| matching.next().is_none())
}

/// Returns the letters and digits of a name in lower case.
pub(super) fn squeeze(name: &str) -> String {
    let characters = name.chars().filter(|c| c.is_alphanumeric());
    characters.flat_map(char::to_lowercase).collect()
}

fn unknown(bare: &str, tools: &[ToolSpec]) -> String {
    let bare = near_json::excerpt(bare);
    let folded = fold(&bare);
    let score = |tool: &&ToolSpec| strsim::jaro_winkler(&folded, &fold(&tool.name));
    let near = tools.iter().filter(|tool| score(tool) > 0.75);
    // Of equally near names, the first in the alphabet.
    let nearest = near.max_by(|a, b| score(a).total_cmp(&score(b)).then(b.name.cmp(&a.name)));
    match nearest {
        Some(tool) => {
            let nearest = &tool.name;
            format!("there is no tool \"{bare}\"; the nearest name is \"{nearest}\"")
        }
        None => {
            let all: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            let all = all.join(", ");
            format!("there is no tool \"{bare}\"; the tools are {all}")
        }
    }
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace(['-', ' ', '.'], "_")
}

#[cfg(test)]
mod tests;
