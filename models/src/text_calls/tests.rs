#![allow(clippy::unwrap_used, clippy::expect_used)]
use serde_json::json;

use super::*;

pub(super) fn tools() -> Vec<ToolSpec> {
    let spec = |name: &str, properties: Value, required: Value| ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": properties, "required": required}),
    };
    vec![
        spec(
            "search",
            json!({"pattern": {"type": "string"}, "limit": {"type": ["integer", "null"]}}),
            json!(["pattern"]),
        ),
        spec(
            "insert_function",
            json!({"file": {"type": "string"}, "code": {"type": "string"}, "imports": {"type": "array"}}),
            json!(["file", "code"]),
        ),
        spec("show_patch", json!({}), json!([])),
        spec("run_pytest", json!({"tests": {"type": "array"}}), json!([])),
    ]
}

fn calls(text: &str) -> Vec<(String, Value)> {
    let text_calls = read(text, &tools(), true);
    assert_eq!(text_calls.malformed, [], "{text}");
    text_calls
        .calls
        .into_iter()
        .map(|(name, arguments)| (name, Value::Object(arguments)))
        .collect()
}

fn call(name: &str, arguments: Value) -> Vec<(String, Value)> {
    vec![(name.to_owned(), arguments)]
}

fn problem(text: &str) -> String {
    let text_calls = read(text, &tools(), true);
    assert!(
        text_calls.calls.is_empty(),
        "{text}: {:?}",
        text_calls.calls
    );
    assert_eq!(text_calls.malformed.len(), 1, "{text}: {text_calls:?}");
    assert_eq!(text_calls.content, text, "what could not be read stays");
    text_calls.malformed[0].problem.clone()
}

/// Lists all forms of one call that models were seen to use.
#[test]
fn every_call_form_is_parsed() {
    let expected = call("search", json!({"pattern": "x"}));
    let object = r#"{"name": "search", "arguments": {"pattern": "x"}}"#;
    let dresses = [
        object.to_owned(),
        format!("[{object}]"),
        format!("```json\n{object}\n```"),
        format!("```\n{object}\n```"),
        format!("```tool_call\n{object}\n```"),
        format!("~~~json\n{object}\n~~~"),
        format!("  ```json\n  {object}\n  ```"),
        format!("```json\n{object}"),
        format!("<tool_call>{object}</tool_call>"),
        format!("<tool_call>\n{object}\n</tool_call>"),
        format!("<tool_call>\n{object}\n"),
        format!("<tools>\n{object}\n</tools>"),
        format!("<function_call> {object} </function_call>"),
        format!("<tool_call>\n```json\n{object}\n```\n</tool_call>"),
        format!("```xml\n<tool_call>\n{object}\n</tool_call>\n```"),
        format!("<tool_call>\n{object}}}\n</tool_call>"),
        format!("<tool_call>\n{}\n</tool_call>", &object[..object.len() - 1]),
        format!("[TOOL_CALLS][{object}]"),
        "[TOOL_CALLS]search[ARGS]{\"pattern\": \"x\"}".to_owned(),
        r#"<|python_tag|>{"name": "search", "parameters": {"pattern": "x"}}"#.to_owned(),
        r#"{"name": "search", "parameters": {"pattern": "x"}}"#.to_owned(),
        r#"{"name": "search", "arguments": "{\"pattern\": \"x\"}"}"#.to_owned(),
        r#"{"tool": "search", "args": {"pattern": "x"}}"#.to_owned(),
        r#"{"action": "search", "action_input": {"pattern": "x"}}"#.to_owned(),
        r#"{"tool_uses": [{"recipient_name": "functions.search", "parameters": {"pattern": "x"}}]}"#.to_owned(),
        "```tool_call\nsearch\n{\"pattern\": \"x\"}\n```".to_owned(),
        r#"{"type": "function", "function": {"name": "search", "arguments": {"pattern": "x"}}}"#.to_owned(),
        r#"{"tool_calls": [{"function": {"name": "search", "arguments": "{\"pattern\": \"x\"}"}}]}"#.to_owned(),
        r#"{"id": "1", "name": "functions.search", "arguments": {"pattern": "x"}}"#.to_owned(),
        r#"{"name": "search", "pattern": "x"}"#.to_owned(),
        r#"<tool_call>{"search": {"pattern": "x"}}</tool_call>"#.to_owned(),
        "{'name': 'search', 'arguments': {'pattern': 'x'}}".to_owned(),
        "```json\n{\n  \"name\": \"search\",\n  \"arguments\": {\n    \"pattern\": \"x\",\n  },\n}\n```".to_owned(),
        r#"<function=search>{"pattern": "x"}</function>"#.to_owned(),
        "<function=search>\n<parameter=pattern>\nx\n</parameter>\n</function>".to_owned(),
        "<tool_call>\n<function=search>\n<parameter=pattern>\nx\n</parameter>\n</function>\n</tool_call>".to_owned(),
        "<function=search><parameter=pattern>x</parameter>".to_owned(),
        "<invoke name=\"search\">\n<parameter name=\"pattern\">x</parameter>\n</invoke>".to_owned(),
        "<tool_call>search\n<arg_key>pattern</arg_key>\n<arg_value>x</arg_value>\n</tool_call>".to_owned(),
        "<tool_call>search\n{\"pattern\": \"x\"}\n</tool_call>".to_owned(),
        "<tool_call name=\"search\">{\"pattern\": \"x\"}</tool_call>".to_owned(),
    ];
    for text in dresses {
        assert_eq!(calls(&text), expected, "{text}");
        assert_eq!(read(&text, &tools(), true).content, "", "{text}");
        let reply = format!("I will look for it.\n\n{text}");
        assert_eq!(calls(&reply), expected, "{reply}");
        assert_eq!(
            read(&reply, &tools(), true).content,
            "I will look for it.",
            "{reply}"
        );
    }
}

#[test]
fn several_calls_keep_order_and_text() {
    let text = "First this:\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"b\"}}\n</tool_call>\nand then\n```json\n[{\"name\": \"show_patch\", \"arguments\": {}}]\n```\ndone.";
    let names: Vec<String> = calls(text)
        .into_iter()
        .map(|(_, a)| a.to_string())
        .collect();
    assert_eq!(names, [r#"{"pattern":"a"}"#, r#"{"pattern":"b"}"#, "{}"]);
    assert_eq!(
        read(text, &tools(), true).content,
        "First this:\nand then\ndone."
    );
    let lines = "{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n{\"name\": \"show_patch\", \"arguments\": {}}";
    assert_eq!(calls(lines).len(), 2);
    let unclosed = format!(
        "<tool_call>{0}\n<tool_call>{0}",
        lines.lines().next().unwrap()
    );
    assert_eq!(calls(&unclosed).len(), 2);
}

#[test]
fn code_is_unchanged() {
    let code = "def test_a():\n    \"\"\"Like `x`.\n\n    ```\n    </tool_call>\n    ```\n    \"\"\"\n    assert f({'a': 1}) == \"\\d\"\n";
    let expected = call(
        "insert_function",
        json!({"file": "tests/a.py", "code": code}),
    );
    let object =
        json!({"name": "insert_function", "arguments": {"file": "tests/a.py", "code": code}});
    for text in [
        format!("<tool_call>\n{object}\n</tool_call>"),
        format!("```json\n{object:#}\n```\nDone."),
        format!("So:\n{object}"),
    ] {
        assert_eq!(calls(&text), expected, "{text}");
    }
    // Raw newlines in a string, Python's triple quotes, and a parameter block.
    let plain = "def test_b():\n    assert g('x') == [1]";
    let expected = call("insert_function", json!({"file": "t.py", "code": plain}));
    for text in [
        format!(
            "<tool_call>{{\"name\": \"insert_function\", \"arguments\": {{\"file\": \"t.py\", \"code\": \"{plain}\"}}}}</tool_call>"
        ),
        format!(
            "```json\n{{\"name\": \"insert_function\", \"arguments\": {{\"file\": \"t.py\", \"code\": \"\"\"{plain}\"\"\"}}}}\n```"
        ),
        format!(
            "<function=insert_function>\n<parameter=file>\nt.py\n</parameter>\n<parameter=code>\n{plain}\n</parameter>\n</function>"
        ),
    ] {
        assert_eq!(calls(&text), expected, "{text}");
    }
}

#[test]
fn text_parameters_follow_schema() {
    let text = "<function=search>\n<parameter=pattern>\n42\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>";
    assert_eq!(
        calls(text),
        call("search", json!({"pattern": "42", "limit": 5}))
    );
    let text = "<function=search><parameter=pattern>None</parameter><parameter=limit>None</parameter></function>";
    assert_eq!(
        calls(text),
        call("search", json!({"pattern": "None", "limit": null}))
    );
    let text = "<function=run_pytest><parameter=tests>['a::b', 'c']</parameter></function>";
    assert_eq!(
        calls(text),
        call("run_pytest", json!({"tests": ["a::b", "c"]}))
    );
}

#[test]
fn yaml_arguments_keep_code_and_lists() {
    let code = "def test_a():\n    assert f(\"<b>x</b>\")\n\n    assert True";
    let lines = code.replace('\n', "\n    ");
    let body =
        format!("file: t.py\n  code: |\n    {lines}\n  imports:\n    - import f\n    - 'os'\n");
    let expected = call(
        "insert_function",
        json!({"file": "t.py", "code": code, "imports": ["import f", "os"]}),
    );
    for text in [
        format!("<tool_call>\nname: insert_function\narguments:\n  {body}</tool_call>"),
        format!("<invoke name=\"insert_function\">\n  {body}</invoke>"),
    ] {
        assert_eq!(calls(&text), expected, "{text}");
    }
    assert_eq!(
        calls("<search>\npattern: 'it''s \\bx'\n</search>"),
        call("search", json!({"pattern": "it's \\bx"}))
    );
}

#[test]
fn text_before_list_of_calls_stays() {
    let text_calls = read("I look now [search(pattern=\"x\")]", &tools(), true);
    assert_eq!(text_calls.calls.len(), 1);
    assert_eq!(text_calls.content, "I look now");
}

#[test]
fn short_tags_in_arguments_do_not_end_call() {
    let code = "def test_a():\n    parse('<tool name=\"a\"><call name=\"b\">')";
    let text = format!(
        "<function=insert_function>\n<parameter=file>\nt.py\n</parameter>\n<parameter=code>\n{code}\n</parameter>\n</function>"
    );
    let arguments = json!({"file": "t.py", "code": code});
    assert_eq!(calls(&text), call("insert_function", arguments));
}

#[test]
fn shown_json_is_not_a_call() {
    let samples = [
        "```python\nsearch(pattern='x')\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n```",
        "```json\n{\"name\": \"requests\", \"version\": \"2.0\"}\n```",
        "```json\n{\"name\": \"search\", \"description\": \"finds\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}\n```",
        "```json\n{\"name\": \"pytest\", \"type\": \"python\", \"request\": \"launch\", \"args\": [\"-v\"]}\n```",
        "```json\n{broken\n```",
        "```\n{'a': 1, 'b': [1, 2}\n```",
        "```\nTraceback (most recent call last):\n  File \"x.py\"\n```",
        "The reply is\n{\"status\": \"ok\", \"items\": [{\"name\": \"search\"}]}\nas it should be.",
        "[1, 2, 3] == sorted([3, 2, 1])",
        "{x: 1 for x in y}",
        "It is written in `<tool_call>` tags, like `<function=search>`.",
        "Use [search(pattern=\"x\")] to find it.",
        "```python\nsearch(pattern='x')\nassert True\n```",
        "<think>I could call\n<tool_call>{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}</tool_call></think>\nNo need.",
        "<think>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}",
        "{\"name\": \"search\"}",
        "See <tool_call> in the docs.",
        "It has the tag <tool>\nname: other\nversion: 1",
        "[Calling tool: the parser]\nIt reads {\"a\": 1}.",
        "It parses\n<call name=\"Bar\">\n<x>1</x>\n</call>",
        "```xml\n<tool name=\"bar\">text</tool>\n```",
        "```xml\n<function name=\"main\" line=\"3\">text</function>\n```",
        "if a < b:\n    <function=>",
        "",
    ];
    for text in samples {
        let text_calls = read(text, &tools(), true);
        assert_eq!(text_calls.calls, [], "{text}");
        assert_eq!(text_calls.malformed, [], "{text}");
        assert_eq!(text_calls.content, text);
    }
}

#[test]
fn malformed_calls_report_problem() {
    let cases = [
        (
            "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"say \"hi\"\"}}\n</tool_call>",
            "line 1, column 51",
        ),
        (
            "```json\n{\"name\": \"search\", \"arguments\": {\"pattern\": x}}\n```",
            "needs quotes",
        ),
        (
            "{\"name\": \"search\", \"arguments\": {\"pattern\": \"x}}",
            "cut short",
        ),
        (
            "<tool_call>{\"name\": \"serch\", \"arguments\": {}}</tool_call>",
            "nearest name is \"search\"",
        ),
        (
            "```json\n{\"name\": \"execute_bash\", \"arguments\": {\"command\": \"ls\"}}\n```",
            "there is no tool \"execute_bash\"",
        ),
        (
            "<tool_call>{\"arguments\": {\"pattern\": \"x\"}}</tool_call>",
            "no \"name\"",
        ),
        (
            "<tool_call>look for x, please</tool_call>",
            "not a JSON object",
        ),
        (
            "<tool_call>{\"name\": \"search\", \"arguments\": [\"x\"]}</tool_call>",
            "a list",
        ),
        (
            "<tool_call>{\"name\": \"search\", \"arguments\": \"x\"}</tool_call>",
            "cannot be read",
        ),
        (
            "<tool_call>{\"name\": \"search\", \"description\": \"\", \"parameters\": {\"type\": \"object\", \"properties\": {}}}</tool_call>",
            "repeats the description",
        ),
        (
            "<tool_call>{\"name\": \"search\", \"regex\": \"x\"}</tool_call>",
            "\"regex\"",
        ),
        (
            "<function=serch>\n<parameter=pattern>x</parameter>\n</function>",
            "\"search\"",
        ),
        (
            "<function=search>pattern is x</function>",
            "neither a JSON object",
        ),
        (
            "<function=search>{\"pattern\": }</function>",
            "cannot be read",
        ),
        (
            "<function=search><parameter=pattern>a</parameter><parameter=pattern>b</parameter></function>",
            "given twice",
        ),
        ("[TOOL_CALLS]search[ARGS]{\"pattern\": x}", "needs quotes"),
    ];
    for (text, expected) in cases {
        let problem = problem(text);
        assert!(problem.contains(expected), "{text}: {problem}");
    }
}

#[test]
fn cut_reply_is_not_completed() {
    for text in [
        "<tool_call>{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"",
        "<function=insert_function><parameter=file>t.py</parameter><parameter=code>def te",
    ] {
        assert_eq!(read(text, &tools(), true).calls.len(), 1, "{text}");
        let text_calls = read(text, &tools(), false);
        assert!(text_calls.calls.is_empty(), "{text}");
        assert_eq!(text_calls.malformed.len(), 1, "{text}");
    }
}

#[test]
fn invented_results_end_calls() {
    let text = "<tool_call>{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}</tool_call>\n<tool_response>\nfound\n</tool_response>\n<tool_call>{\"name\": \"show_patch\", \"arguments\": {}}</tool_call>";
    assert_eq!(calls(text), call("search", json!({"pattern": "x"})));
}

#[test]
fn no_tools_means_no_calls() {
    let text = "{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}";
    let text_calls = read(text, &[], true);
    assert!(text_calls.calls.is_empty());
    assert_eq!(text_calls.content, text);
}

/// Reading any text ends, and loses no text outside of calls.
#[test]
fn mutated_replies_never_panic() {
    let sources = [
        "Words é before.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}\n</tool_call>\nWords after.",
        "Words.\n```json\n{\"name\": \"insert_function\", \"arguments\": {\"file\": \"t.py\", \"code\": \"def t():\\n    pass\"}}\n```\nMore.",
        "<think>hm</think>\n<function=search>\n<parameter=pattern>\nx\n</parameter>\n</function>",
        "[TOOL_CALLS][{\"name\": \"show_patch\", \"arguments\": {}}]",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{\"pattern\": \"x\"}\n```<｜tool▁call▁end｜>",
        "<|channel|>commentary to=functions.search <|constrain|>json<|message|>{\"pattern\": \"é\"}<|call|>",
        "[search(pattern='é', limit=3), show_patch()]",
        "<|tool_call>call:search{pattern:<|\"|>é<|\"|>}<tool_call|>",
        "<tool_call>search\n<arg_key>pattern</arg_key>\n<arg_value>é</arg_value>\n</tool_call>",
    ];
    let junk = [
        "<",
        ">",
        "\"",
        "{",
        "}",
        "```",
        "\n",
        "</tool_call>",
        "<tool_call>",
        "é",
        "\\",
    ];
    let mut random = fastrand::Rng::with_seed(11);
    let tools = tools();
    for round in 0..4000 {
        let mut chars: Vec<char> = sources[round % sources.len()].chars().collect();
        for _ in 0..random.usize(1..5) {
            let at = random.usize(0..chars.len());
            match random.u8(0..4) {
                0 if chars.len() > 1 => {
                    chars.remove(at);
                }
                1 => chars.truncate(at.max(1)),
                _ => {
                    let piece = junk[random.usize(0..junk.len())];
                    chars.splice(at..at, piece.chars());
                }
            }
        }
        let text: String = chars.into_iter().collect();
        let whole = random.bool();
        let text_calls = read(&text, &tools, whole);
        if text_calls.calls.is_empty() {
            assert_eq!(text_calls.content, text);
        }
        for bad in &text_calls.malformed {
            assert!(text.contains(&bad.text), "{text}");
            assert!(!bad.problem.is_empty());
        }
    }
}

/// Quadratic time would make this take minutes.
#[test]
fn long_replies_are_read_quickly() {
    let pieces = [
        "{\n",
        "<tool_call>\n",
        "```\n{",
        "<function=search>",
        "[[[[\n",
        "<think>",
        "{\"name\": \"search\",\n",
        "<|tool_call_begin|>",
        "search{\"\n",
        " to=functions.search ",
        "<start_function_call>call:search{",
        "[TOOL_CALLS]search",
        "<｜DSML｜invoke name=\"search\">",
        "[search(pattern=",
        "<tool_call>search<arg_key>",
        "<search>",
        "<p>",
        "<|open|>call tool=\"search\"<|sep|>",
        "&lt;tool_call&gt;",
    ];
    for piece in pieces {
        let text = piece.repeat(100_000 / piece.len());
        let text_calls = read(&text, &tools(), true);
        assert!(text_calls.calls.len() <= MAX_BLOCKS, "{piece}");
    }
    let (left, right) = ("]<]mini".repeat(5_000), "max[>[".repeat(5_000));
    let nested = format!("]<]minimax[>[<tool_call>{left}{right}");
    assert_eq!(read(&nested, &tools(), true).calls, []);
}
