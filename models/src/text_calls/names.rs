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

/// Namespaces that are joined to a name.
const JOINED_NAMESPACES: [&str; 7] = [
    "functions_",
    "function_",
    "function",
    "tools_",
    "tool_",
    "default_api_",
    "namespace_",
];

/// Starts of markers that follow a name.
const MARKER_STARTS: [&str; 6] = ["<", "[ARGS]", "[CALL_ID]", "(", "{", "?"];

/// Returns the tool's exact name, or the problem with it.
///
/// # Errors
///
/// Fails with a message for the model if no tool matches.
pub fn tool_name(name: &str, tools: &[ToolSpec]) -> Result<String, String> {
    let name = name.trim();
    if tools.iter().any(|tool| tool.name == name) {
        return Ok(name.to_owned());
    }
    let bare = without_markers(name);
    match matching(&bare, tools).or_else(|| only_word(name, tools)) {
        Some(tool) => Ok(tool.to_owned()),
        None => Err(unknown(&bare, tools)),
    }
}

/// Returns the tool that a name without markers means.
fn matching<'t>(bare: &str, tools: &'t [ToolSpec]) -> Option<&'t str> {
    let mut candidates = candidates(bare).into_iter();
    candidates.find_map(|candidate| only_match(&candidate, tools))
}

/// Returns the tool in a name with markers around it, such as `function<｜tool▁sep｜>search`.
fn only_word<'t>(name: &str, tools: &'t [ToolSpec]) -> Option<&'t str> {
    if !name.contains(['<', '>', '|', '｜', '=', '\n']) {
        return None;
    }
    let words = name.split(|c: char| !c.is_alphanumeric() && !"_-.:/#".contains(c));
    let mut meant: Vec<&str> = words.filter_map(|word| matching(word, tools)).collect();
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
    if parts.len() > 1 && parts.last() == Some(&"call") {
        parts.pop();
    }
    if let Some(last) = parts.last() {
        names.push((*last).to_owned());
        names.extend(last.rsplit_once("__").map(|(_, name)| name.to_owned()));
        let joined = JOINED_NAMESPACES.iter();
        names.extend(joined.filter_map(|prefix| last.strip_prefix(prefix).map(str::to_owned)));
        let without_counter = last
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .trim_end_matches(['_', '-']);
        names.push(without_counter.to_owned());
    }
    names
}

/// Returns the only tool with this name, apart from case and separators.
fn only_match<'t>(name: &str, tools: &'t [ToolSpec]) -> Option<&'t str> {
    let folded = squeeze(name);
    if folded.is_empty() {
        return None;
    }
    let mut matching = tools.iter().filter(|tool| squeeze(&tool.name) == folded);
    match (matching.next(), matching.next()) {
        (Some(tool), None) => Some(&tool.name),
        _ => None,
    }
}

/// Returns the letters and digits of a name in lower case.
pub(super) fn squeeze(name: &str) -> String {
    let characters = name.chars().filter(|c| c.is_alphanumeric());
    characters.flat_map(char::to_lowercase).collect()
}

fn unknown(bare: &str, tools: &[ToolSpec]) -> String {
    let bare = near_json::excerpt(bare);
    let folded = fold(&bare);
    let mut near: Vec<(f64, &str)> = tools
        .iter()
        .map(|tool| {
            let score = strsim::jaro_winkler(&folded, &fold(&tool.name));
            (score, tool.name.as_str())
        })
        .filter(|(score, _)| *score > 0.75)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    let all: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    match near.first() {
        Some((_, nearest)) => {
            format!("there is no tool \"{bare}\"; the nearest name is \"{nearest}\"")
        }
        None => format!(
            "there is no tool \"{bare}\"; the tools are {}",
            all.join(", ")
        ),
    }
}

fn fold(name: &str) -> String {
    name.to_lowercase().replace(['-', ' ', '.'], "_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<ToolSpec> {
        let names = ["search", "open_file", "run_pytest", "run_python"];
        let spec = |name: &str| ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({"type": "object"}),
        };
        names.into_iter().map(spec).collect()
    }

    #[test]
    fn decorated_names_are_recognized() {
        for name in [
            "search",
            " search\n",
            "\"search\"",
            "`search`",
            "Search",
            "SEARCH",
            "functions.search",
            "functions.search:0",
            "functions.search:12",
            "functions:search",
            "functions/search",
            "functions_search",
            "functions__search",
            "mcp__testwright__search",
            "default_api.search",
            "default_api:search",
            "default_api_search",
            "tools.search",
            "search:0",
            "search_0",
            "search-1",
            "search#2",
            "search()",
            "search.call",
            "search<|channel|>commentary",
            "search<|channel|>json",
            "search<|constrain|>json",
            "search<|channel|>analysis<|message|>",
            "<|channel|>commentary to=functions.search",
            "assistant to=functions.search",
            "functions.search json",
            "functions.search<|channel|>commentary json",
            "search commentary",
            "search?commentary",
            "search[ARGS]",
            "search\n<arg_key>pattern</arg_key>",
            "search</tool_call>",
            "search|json",
            "<function=search>",
            "function<｜tool▁sep｜>search",
            "functions<|channel|>search",
            "<search>",
            "search:",
        ] {
            assert_eq!(tool_name(name, &tools()), Ok("search".to_owned()), "{name}");
        }
        for name in [
            "openFile",
            "OpenFile",
            "open-file",
            "open file",
            "functions.open-file:3",
        ] {
            assert_eq!(
                tool_name(name, &tools()),
                Ok("open_file".to_owned()),
                "{name}"
            );
        }
    }

    #[test]
    fn other_names_stay_unknown() {
        for name in [
            "serach",
            "execute_bash",
            "run",
            "search.delete",
            "search_all",
            "functions.",
            "<|channel|>commentary",
            "",
            "json",
            "search open_file",
        ] {
            assert!(tool_name(name, &tools()).is_err(), "{name}");
        }
        // Names that differ only in their separators are not guessed.
        let mut twins = tools();
        twins[0].name = "openfile".to_owned();
        assert!(tool_name("OpenFile", &twins).is_err());
        assert_eq!(tool_name("open_file", &twins), Ok("open_file".to_owned()));
    }
}
