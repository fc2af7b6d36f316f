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

fn tool_name(name: &str) -> Result<String, String> {
    find_tool(name, &tools()).map(|tool| tool.name.clone())
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
        "mcp_testwright_search",
        "testwright-search",
        "call_search_0",
        "search_tool",
        "searchTool",
        "search_call",
        "search_commentary",
        "search.json",
        "searchjson",
        "functions.searchjson",
        "search@v1",
        "search_v1",
    ] {
        assert_eq!(tool_name(name), Ok("search".to_owned()), "{name}");
    }
    for name in [
        "openFile",
        "OpenFile",
        "open-file",
        "open file",
        "functions.open-file:3",
    ] {
        assert_eq!(tool_name(name), Ok("open_file".to_owned()), "{name}");
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
        "search_api_docs",
        "tool_call",
        "functions.",
        "<|channel|>commentary",
        "",
        "json",
        "search open_file",
    ] {
        assert!(tool_name(name).is_err(), "{name}");
    }
    // Names that differ only in their separators are not guessed.
    let mut twins = tools();
    twins[0].name = "openfile".to_owned();
    assert!(find_tool("OpenFile", &twins).is_err());
    assert_eq!(find_tool("open_file", &twins), Ok(&twins[1]));
}
