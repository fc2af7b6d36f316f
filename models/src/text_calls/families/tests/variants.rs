//! Deviations from the forms in `samples`: all are the call `search` with the pattern "a".

/// Replies, with the name of the family.
pub(super) const VARIANTS: &[(&str, &str)] = &[
    (
        "DeepSeek",
        "<｜｜DSML｜｜tool_calls>\n<｜｜DSML｜｜invoke name=\"search\">\n<｜｜DSML｜｜parameter name=\"pattern\" string=\"true\">a</｜｜DSML｜｜parameter>\n</｜｜DSML｜｜invoke>\n</｜｜DSML｜｜tool_calls>",
    ),
    (
        "DeepSeek",
        "<DSMLfunction_calls>\n<DSMLinvoke name=\"search\">\n<DSMLparameter name=\"pattern\" string=\"true\">a</DSMLparameter>\n</DSMLinvoke>\n</DSMLfunction_calls>",
    ),
    (
        "Kimi",
        "functions.search:0<|tool_call_argument_begin|>{\"pattern\": \"a\"}<|tool_call_end|>",
    ),
    (
        "Kimi",
        "<|tool_call_begin|>call_search_0<|tool_call_argument_begin|>{\"pattern\": \"a\"}<|tool_call_end|>",
    ),
    (
        "Kimi",
        "<|open|>think<|sep|>I look.<|close|>think<|sep|><|open|>tools<|sep|><|open|>call tool=\"search\" index=\"1\"<|sep|><|open|>argument key=\"pattern\" type=\"string\"<|sep|>a<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>",
    ),
    (
        "Kimi",
        "<|open|>call tool=\"search\" index=\"1\"<|sep|><|open|>json type=\"object\"<|sep|>{\"pattern\": \"a\"}<|close|>json<|sep|><|close|>call<|sep|>",
    ),
    (
        "Solar",
        "<|think|>I look.<|end|><|tool_calls|><|tool_call:begin|>a1b2<|tool_call:name|>search<|tool_call:args|>{\"pattern\": \"a\"}<|tool_call:end|><|calls|>",
    ),
    (
        "MiniMax",
        "</mm:think>]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"search\">]<]minimax[>[<pattern>a]<]minimax[>[</pattern>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>",
    ),
    (
        "Hunyuan",
        "<tool_calls:opensource>\n<tool_call:opensource>search<tool_sep:opensource>\n<arg_key:opensource>pattern</arg_key:opensource>\n<arg_value:opensource>a</arg_value:opensource>\n</tool_call:opensource>\n</tool_calls:opensource>",
    ),
    (
        "Hunyuan",
        "<tool_call>search<tool_sep>\n```json\n{\"pattern\": \"a\"}\n```\n</tool_call>",
    ),
    (
        "Functionary",
        ">>>all\nI look.>>>search\n{\"pattern\": \"a\"}",
    ),
    (
        "Functionary",
        "<|from|>assistant\n<|recipient|>search\n<|content|>{\"pattern\": \"a\"}",
    ),
    ("Qwen", "[Calling tool: search({\"pattern\": \"a\"})]"),
    (
        "Qwen",
        "[Calling tool: search with arguments: {\"pattern\": \"a\"}]",
    ),
    (
        "Qwen",
        "<tool_call name=\"search\"><pattern>a</pattern></tool_call>",
    ),
    (
        "Qwen",
        "<function>{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}</function>",
    ),
    (
        "gpt-oss",
        "analysisI look.assistantcommentary to=functions.searchjson{\"pattern\": \"a\"}",
    ),
    ("Mistral", "[TOOL_CALL] search {\"pattern\": \"a\"}"),
    ("Mistral", "I look.search[ARGS]{\"pattern\": \"a\"}"),
    ("Llama", "I look. [search(pattern=\"a\")]"),
    ("Llama", "```python\n[search(pattern=\"a\")]\n```"),
    ("Llama", "`search(pattern=\"a\")`"),
    (
        "Gemma",
        "```tool_code\nresult = search(pattern=\"a\")\nprint(result)\n```",
    ),
    ("Gemma", "```tool_code\nsearch(\"a\")\n```"),
    (
        "Gemma",
        "```python\nprint(default_api.search(pattern=\"a\"))\n```",
    ),
    (
        "Gemini",
        "{\"functionCall\": {\"name\": \"search\", \"args\": {\"pattern\": \"a\"}}}",
    ),
    (
        "MiniMax",
        "```typescript\nfunctions.search({\"pattern\": \"a\"})\n```",
    ),
    ("Nemotron", "<TOOLCALL>[search(pattern=\"a\")]</TOOLCALL>"),
    (
        "LongCat",
        "<longcat_tool_call>search\n<longcat_arg_key>pattern</longcat_arg_key>\n<longcat_arg_value>a</longcat_arg_value>\n</longcat_tool_call>",
    ),
    (
        "xLAM",
        "<think>I look.</think>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}]",
    ),
    (
        "ReAct",
        "**Thought:** I look.\n**Action:** search\n**Action Input:** {\"pattern\": \"a\"}",
    ),
    ("ReAct", "Action: search(pattern=\"a\")"),
    ("ReAct", "Tool: search\nArguments: {\"pattern\": \"a\"}"),
    (
        "ReAct",
        "**Tool name:** `search`\n**Input:**\n```json\n{\"pattern\": \"a\"}\n```",
    ),
    (
        "others",
        "<thought>I look.</thought><search>{\"pattern\": \"a\"}</search>",
    ),
    ("others", "<search>\npattern: a\n</search>"),
    (
        "others",
        "{\"tool\": \"search\", \"kwargs\": {\"pattern\": \"a\"}}",
    ),
    (
        "others",
        "Calling: {\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}",
    ),
    (
        "others",
        "<functions>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}]</functions>",
    ),
    (
        "others",
        "<TOOL_CALL>{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}</TOOL_CALL>",
    ),
    (
        "others",
        "<tool name=\"search\"><param name=\"pattern\">a</param></tool>",
    ),
    (
        "others",
        "<call name=\"search\">{\"pattern\": \"a\"}</call>",
    ),
    (
        "others",
        "<tool_call>\nname: search\narguments:\n  pattern: a\n</tool_call>",
    ),
    (
        "others",
        "<tool_call>\n```yaml\nname: search\narguments:\n  pattern: a\n```\n</tool_call>",
    ),
    (
        "others",
        "<tool_call>\nsearch\npattern: \"a\"\n</tool_call>",
    ),
    ("others", "<function=search>\npattern: a\n</function>"),
    (
        "others",
        "&lt;tool_call&gt;{&quot;name&quot;: &quot;search&quot;, &quot;arguments&quot;: {&quot;pattern&quot;: &quot;a&quot;}}&lt;/tool_call&gt;",
    ),
    (
        "others",
        "<tool_call>{&quot;name&quot;: &quot;search&quot;, &quot;arguments&quot;: {&quot;pattern&quot;: &quot;a&quot;}}</tool_call>",
    ),
    (
        "others",
        "<tool_call>{“name”: “search”， “arguments”：{“pattern”: “a”}}</tool_call>",
    ),
    (
        "others",
        "<tool_call function=\"search\">{\"pattern\": \"a\"}</tool_call>",
    ),
];
