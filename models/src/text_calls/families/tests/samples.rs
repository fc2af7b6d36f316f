//! Replies of each family of models, as its chat template shows them.

/// A reply of a model, and the calls in it as names and JSON arguments.
pub(super) struct Sample {
    pub(super) text: &'static str,
    pub(super) calls: &'static [(&'static str, &'static str)],
}

/// All samples, by the name of the family.
pub(super) const SAMPLES: &[(&str, &[Sample])] = &[
    ("DeepSeek", DEEPSEEK),
    ("Kimi", KIMI),
    ("GLM", GLM),
    ("Qwen", QWEN),
    ("gpt-oss", HARMONY),
    ("Mistral", MISTRAL),
    ("Llama", LLAMA),
    ("Phi", PHI),
    ("Gemma", GEMMA),
    ("Granite", GRANITE),
    ("Hermes", HERMES),
    ("MiniMax", MINIMAX),
    ("Command", COHERE),
    ("Nemotron", NEMOTRON),
    ("ReAct", REACT),
];

const DEEPSEEK: &[Sample] = &[
    Sample {
        text: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{\"pattern\": \"def total\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Two at once.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{\"pattern\": \"a\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>show_patch\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{\"pattern\": \"def total\"}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|tool_calls_begin|><|tool_call_begin|>search<|tool_sep|>{\"pattern\": \"x\", \"limit\": 3}<|tool_call_end|><|tool_calls_end|>",
        calls: &[("search", r#"{"pattern":"x","limit":3}"#)],
    },
    Sample {
        text: "<｜tool▁calls｜>function<｜tool▁sep｜>search\n```json\n{\"pattern\": \"x\"}\n```<｜tool▁call▁end｜>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<｜tool\\_calls\\_begin｜><｜tool\\_call\\_begin｜>function<｜tool\\_sep｜>search\n```json\n{\"pattern\": \"x\"}\n```<｜tool\\_call\\_end｜>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "< | DSML | function_calls>\n< | DSML | invoke name=\"search\">\n< | DSML | parameter name=\"pattern\" string=\"true\">x</ | DSML | parameter>\n</ | DSML | invoke>\n</ | DSML | function_calls>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"search\">\n<｜DSML｜parameter name=\"pattern\" string=\"true\">def total</｜DSML｜parameter>\n<｜DSML｜parameter name=\"limit\" string=\"false\">5</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"show_patch\">\n</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        calls: &[
            ("search", r#"{"pattern":"def total","limit":5}"#),
            ("show_patch", "{}"),
        ],
    },
];

const KIMI: &[Sample] = &[
    Sample {
        text: "<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{\"pattern\": \"def total\"}<|tool_call_end|><|tool_calls_section_end|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{\"pattern\": \"a\"}<|tool_call_end|><|tool_call_begin|>functions.show_patch:1<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|><|im_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "functions.search:0{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];

const GLM: &[Sample] = &[
    Sample {
        text: "<tool_call>search\n<arg_key>pattern</arg_key>\n<arg_value>def total</arg_value>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<think>I need it.</think>\n<tool_call>search\n<arg_key>pattern</arg_key>\n<arg_value>x</arg_value>\n<arg_key>limit</arg_key>\n<arg_value>3</arg_value>\n</tool_call>\n<tool_call>show_patch\n</tool_call>",
        calls: &[
            ("search", r#"{"pattern":"x","limit":3}"#),
            ("show_patch", "{}"),
        ],
    },
    Sample {
        text: "<tool_call>search<arg_key>pattern</arg_key><arg_value>def total</arg_value></tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "search\n<arg_key>pattern</arg_key>\n<arg_value>def total</arg_value>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "search\n{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_call>search\n<arg_key>pattern\n<arg_value>def total</arg_value>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_calls>\n<tool_call>search<tool_sep>\n<arg_key>pattern</arg_key>\n<arg_value>x</arg_value>\n</tool_call>\n</tool_calls>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    // DeepSeek's form without its tokens, and Functionary's.
    Sample {
        text: "functionsearch\n```json\n{\"pattern\": \"x\"}\n```",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: ">>>search\n{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
];

const QWEN: &[Sample] = &[
    Sample {
        text: "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<think>\nFirst look.\n</think>\n\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"show_patch\", \"arguments\": {}}\n</tool_call><|im_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<tool_call>\n<function=search>\n<parameter=pattern>\ndef total\n</parameter>\n<parameter=limit>\n5\n</parameter>\n</function>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total","limit":5}"#)],
    },
    Sample {
        text: "<function=search>\n<parameter=pattern>\ndef total\n</parameter>\n</function>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_call>\n<function = 'search'>\n<parameter = 'pattern'>\ndef total\n</parameter>\n</function>\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    // The doubled braces of the template's own example, and a name before its arguments.
    Sample {
        text: "<tool_call>\n{{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<tool_call>\nsearch: {\"pattern\": \"a\"}\n</tool_call>\n<tool_call>\nsearch({\"pattern\": \"b\"})\n</tool_call>",
        calls: &[
            ("search", r#"{"pattern":"a"}"#),
            ("search", r#"{"pattern":"b"}"#),
        ],
    },
    // Reasoning that does not end before the call.
    Sample {
        text: "<think>\nI look.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<think>\nI look.\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call>\n</think>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "✿FUNCTION✿: search\n✿ARGS✿: {\"pattern\": \"def total\"}\n✿RESULT✿:",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];

const HARMONY: &[Sample] = &[
    Sample {
        text: "<|channel|>commentary to=functions.search <|constrain|>json<|message|>{\"pattern\": \"def total\"}<|call|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|channel|>analysis<|message|>I could call to=functions.show_patch {} first.<|end|><|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{\"pattern\":\"x\"}<|call|>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|start|>assistant to=functions.search<|channel|>commentary json<|message|>{\"pattern\": \"x\"}<|call|>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "We look first.assistantcommentary to=functions.search json{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|channel|>commentary to=search <|constrain|>json<|message|>{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "We look first.assistantcommentary to=search json{\"pattern\": \"x\"}",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|message|>{\"name\": \"search\", \"arguments\": {\"pattern\": \"x\"}}<|call|>",
        calls: &[("search", r#"{"pattern":"x"}"#)],
    },
    Sample {
        text: "<|channel|>commentary to=functions.show_patch<|message|>",
        calls: &[("show_patch", "{}")],
    },
];

const MISTRAL: &[Sample] = &[
    Sample {
        text: "[TOOL_CALLS] [{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}, \"id\": \"VvvODy9mT\"}]</s>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Two.[TOOL_CALLS][{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}, {\"name\": \"show_patch\", \"arguments\": {}}]",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "[TOOL_CALLS]search[ARGS]{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "[TOOL_CALLS]search[CALL_ID]bbc5b7ede[ARGS]{\"pattern\": \"a\"}[TOOL_CALLS]show_patch[CALL_ID]bbc5b7edf[ARGS]{}</s>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "[TOOL_CALLS]search{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "[THINK]It may be [TOOL_CALLS]show_patch{}[/THINK]Now.[TOOL_CALLS]search{\"pattern\": \"a\"}show_patch{}",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "search{\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];

const LLAMA: &[Sample] = &[
    Sample {
        text: "{\"name\": \"search\", \"parameters\": {\"pattern\": \"def total\"}}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|python_tag|>{\"name\": \"search\", \"parameters\": {\"pattern\": \"a\"}}; {\"name\": \"show_patch\", \"parameters\": {}}<|eom_id|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<|python_tag|>search.call(pattern=\"def total\")<|eom_id|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function=search>{\"pattern\": \"def total\"}</function><|eot_id|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function=search{\"pattern\": \"a\"}</function>\n<function=search({\"pattern\": \"b\"})></function>",
        calls: &[
            ("search", r#"{"pattern":"a"}"#),
            ("search", r#"{"pattern":"b"}"#),
        ],
    },
    Sample {
        text: "<function/search>{\"pattern\": \"a\"}</function>\n<function(search)>{\"pattern\": \"b\"}</function>\n<function=search>{\"pattern\": \"c\"}<function>",
        calls: &[
            ("search", r#"{"pattern":"a"}"#),
            ("search", r#"{"pattern":"b"}"#),
            ("search", r#"{"pattern":"c"}"#),
        ],
    },
    Sample {
        text: "[search(pattern=\"def total\")]",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|python_start|>[search(pattern='a', limit=3), run_pytest(tests=[\"t.py::a\", 'b'])]<|python_end|><|eot|>",
        calls: &[
            ("search", r#"{"pattern":"a","limit":3}"#),
            ("run_pytest", r#"{"tests":["t.py::a","b"]}"#),
        ],
    },
    Sample {
        text: "[insert_function(file=\"t.py\", code=\"def test_a():\\n    assert f([1])\\n\", imports=None), show_patch()]",
        calls: &[
            (
                "insert_function",
                r#"{"file":"t.py","code":"def test_a():\n    assert f([1])\n","imports":null}"#,
            ),
            ("show_patch", "{}"),
        ],
    },
    Sample {
        text: "search(pattern=\"def total\")",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];

const PHI: &[Sample] = &[
    Sample {
        text: "functools[{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}]",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<|tool_call|>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}, {\"name\": \"show_patch\", \"arguments\": {}}]<|/tool_call|><|end|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<|tool_call|>[{\"type\": \"function\", \"function\": {\"name\": \"search\", \"parameters\": {\"pattern\": \"a\"}}}]<|/tool_call|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
];

const GEMMA: &[Sample] = &[
    Sample {
        text: "```tool_code\nsearch(pattern=\"def total\")\n```",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "```tool_code\nprint(default_api.search(pattern='a'))\nshow_patch()\n```",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "```json\n{\"name\": \"search\", \"parameters\": {\"pattern\": \"def total\"}}\n```",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_code>\nprint(default_api.search(pattern=\"a\"))\n</tool_code>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "thought\nI look.\n\ntool_code\nprint(default_api.search(pattern=\"a\"))",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "call:default_api:search{pattern:\"a\"}",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<start_function_call>call:search{pattern:<escape>def total<escape>,limit:5}<end_function_call><start_function_response>",
        calls: &[("search", r#"{"pattern":"def total","limit":5}"#)],
    },
    Sample {
        text: "<|tool_call>call:search{pattern:<|\"|>say \"hi\" {<|\"|>}<tool_call|><|tool_call>call:run_pytest{tests:[<|\"|>a<|\"|>,<|\"|>b<|\"|>]}<tool_call|>",
        calls: &[
            ("search", r#"{"pattern":"say \"hi\" {"}"#),
            ("run_pytest", r#"{"tests":["a","b"]}"#),
        ],
    },
];

const GRANITE: &[Sample] = &[
    Sample {
        text: "<|tool_call|>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}]<|end_of_text|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<tool_call>[{\"arguments\": {\"pattern\": \"a\"}, \"name\": \"search\"}, {\"arguments\": {}, \"name\": \"show_patch\"}]",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"def total\"}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function_call> {\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}} <function_call> {\"name\": \"show_patch\", \"arguments\": {}}",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];

/// JSON in `<tool_call>`, after notes in `<scratch_pad>`; the parent module reads all of it.
const HERMES: &[Sample] = &[
    Sample {
        text: "<tool_call>\n{\"arguments\": {\"pattern\": \"def total\"}, \"name\": \"search\"}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<scratch_pad>\nI could use {\"name\": \"show_patch\", \"arguments\": {}}.\n</scratch_pad>\n<tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</tool_call><|im_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<tool_call>\n{'name': 'search', 'arguments': {'pattern': 'a'}}\n</tool_call>\n<tool_call>\n{'name': 'show_patch', 'arguments': {}}\n</tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];

/// Lines of JSON in `<tool_calls>` (M1), and `<invoke>` in `<minimax:tool_call>` (M2). The parent module reads both;
/// other models use the same tags with another prefix.
const MINIMAX: &[Sample] = &[
    Sample {
        text: "<tool_calls>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n{\"name\": \"show_patch\", \"arguments\": {}}\n</tool_calls>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<minimax:tool_call>\n<invoke name=\"search\">\n<parameter name=\"pattern\">def total</parameter>\n<parameter name=\"limit\">5</parameter>\n</invoke>\n</minimax:tool_call>",
        calls: &[("search", r#"{"pattern":"def total","limit":5}"#)],
    },
    Sample {
        text: "<think>Two.</think>\n<minimax:tool_call>\n<invoke name=\"run_pytest\">\n<parameter name=\"tests\">[\"a\", \"b\"]</parameter>\n</invoke>\n<invoke name=\"show_patch\">\n</invoke>\n</minimax:tool_call>",
        calls: &[
            ("run_pytest", r#"{"tests":["a","b"]}"#),
            ("show_patch", "{}"),
        ],
    },
    // Grok, Claude's older form, and Cline's.
    Sample {
        text: "<xai:function_call name=\"search\">\n<parameter name=\"pattern\">a</parameter>\n</xai:function_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<function_calls>\n<invoke>\n<tool_name>search</tool_name>\n<parameters>\n<pattern>a</pattern>\n<limit>5</limit>\n</parameters>\n</invoke>\n</function_calls>",
        calls: &[("search", r#"{"pattern":"a","limit":5}"#)],
    },
    Sample {
        text: "<tool_use><name>search</name><arguments>{\"pattern\": \"a\"}</arguments></tool_use>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<tool_use><name>search</name><pattern>a</pattern></tool_use>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "I look.\n<search>\n<pattern>a</pattern>\n</search>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    // Seed-OSS, Step 3 and Claude's own form.
    Sample {
        text: "<seed:tool_call>\n<function=search>\n<parameter=pattern>def total</parameter>\n</function>\n</seed:tool_call>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<steptml:invoke name=\"search\"><steptml:parameter name=\"pattern\">def total</steptml:parameter></steptml:invoke>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "<function_calls>\n<invoke name=\"search\">\n<parameter name=\"pattern\">def total</parameter>\n</invoke>\n</function_calls>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
];

const COHERE: &[Sample] = &[
    Sample {
        text: "<|START_THINKING|>I will look.<|END_THINKING|><|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": \"search\", \"parameters\": {\"pattern\": \"def total\"}}\n]<|END_ACTION|>",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Action: ```json\n[\n    {\n        \"tool_name\": \"search\",\n        \"parameters\": {\n            \"pattern\": \"def total\"\n        }\n    }\n]\n```",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    // Apertus names each tool by a key.
    Sample {
        text: "<|tools_prefix|>[{\"search\": {\"pattern\": \"a\"}}, {\"show_patch\": {}}]<|tools_suffix|>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];

const NEMOTRON: &[Sample] = &[
    Sample {
        text: "<TOOLCALL>[{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}, {\"name\": \"show_patch\", \"arguments\": {}}]</TOOLCALL>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
    Sample {
        text: "<|action_start|><|plugin|>\n{\"name\": \"search\", \"parameters\": {\"pattern\": \"a\"}}<|action_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<longcat_tool_call>\n{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}\n</longcat_tool_call>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    // LFM2, and LM Studio's own form.
    Sample {
        text: "I look.<|tool_call_start|>[search(pattern=\"a\")]<|tool_call_end|>",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "[TOOL_REQUEST]{\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}[END_TOOL_REQUEST]",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
    Sample {
        text: "<function_calls>\nsearch(pattern=\"a\")\nshow_patch()\n</function_calls>",
        calls: &[("search", r#"{"pattern":"a"}"#), ("show_patch", "{}")],
    },
];

const REACT: &[Sample] = &[
    Sample {
        text: "Thought: I look for it.\nAction: search\nAction Input: {\"pattern\": \"def total\"}",
        calls: &[("search", r#"{"pattern":"def total"}"#)],
    },
    Sample {
        text: "Tool call: {\"name\": \"search\", \"arguments\": {\"pattern\": \"a\"}}",
        calls: &[("search", r#"{"pattern":"a"}"#)],
    },
];
