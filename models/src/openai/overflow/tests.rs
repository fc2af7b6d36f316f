#![allow(clippy::unwrap_used)]
use super::*;

fn prompt(limit: Option<u64>, prompt: Option<u64>) -> Option<Overflow> {
    Some(Overflow {
        part: TooLarge::Prompt,
        limit,
        prompt,
    })
}

fn completion(limit: Option<u64>, prompt: Option<u64>) -> Option<Overflow> {
    Some(Overflow {
        part: TooLarge::Completion,
        limit,
        prompt,
    })
}

/// Wordings of services, as their users reported them.
#[test]
fn long_prompts_are_recognized_by_meaning() {
    for (status, text, limit, tokens) in [
        (
            400,
            "This model's maximum context length is 32768 tokens. However, you requested 0 output tokens and your prompt contains at least 32769 input tokens.",
            Some(32_768),
            Some(32_769),
        ),
        (
            400,
            "This model's maximum context length is 8192 tokens. However, you requested 9500 tokens (8500 in the messages, 1000 in the completion).",
            Some(8_192),
            Some(8_500),
        ),
        (
            400,
            "The input (263000 tokens) is longer than the model's context length (262144 tokens).",
            Some(262_144),
            Some(263_000),
        ),
        (
            400,
            "Invalid request: Your request exceeded model token limit: 131072",
            Some(131_072),
            None,
        ),
        (
            400,
            "prompt token count of 128321 exceeds the limit of 128000",
            Some(128_000),
            Some(128_321),
        ),
        (
            422,
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens and 512 `max_new_tokens`",
            Some(8_193),
            Some(9_000),
        ),
        (
            500,
            "input is too large to process. increase the physical batch size",
            None,
            None,
        ),
        (
            400,
            "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5000.",
            Some(4_081),
            Some(5_000),
        ),
        (
            400,
            "Requested input length 9000 exceeds maximum input length 8192",
            Some(8_192),
            Some(9_000),
        ),
        (400, "max_tokens must be at least 1, got -45.", None, None),
        (
            400,
            "prompt is too long: 210,000 tokens > 200,000 maximum",
            Some(200_000),
            Some(210_000),
        ),
        (
            400,
            "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
            Some(131_072),
            Some(537_812),
        ),
        (
            400,
            "Requested tokens (20000) exceed context window of 16384",
            Some(16_384),
            Some(20_000),
        ),
        (
            400,
            "8192 is the limit of the context; got 9000 tokens",
            Some(8_192),
            Some(9_000),
        ),
        (
            400,
            "Your conversation has 40000 tokens, more than the 32k that fit",
            Some(32_000),
            None,
        ),
        (400, "Input is too long for requested model.", None, None),
        (
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            Some(1_048_576),
            None,
        ),
        (
            400,
            "Range of input length should be [1, 30720]",
            Some(30_720),
            None,
        ),
        (
            400,
            "the request exceeds the available context size. try increasing the context size or enable context shift\nn_ctx 4096\nn_prompt_tokens 9000",
            Some(4_096),
            Some(9_000),
        ),
        (
            429,
            "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
            Some(30_000),
            None,
        ),
        (413, "Request Entity Too Large", None, None),
        (413, "", None, None),
        (
            500,
            "This model's maximum context length is 8192 tokens, however you requested 9000 tokens",
            Some(8_192),
            None,
        ),
        (
            422,
            "Input validation error: `inputs` must have less than 1024 tokens. Given: 5000",
            Some(1_024),
            Some(5_000),
        ),
        (400, "Prompt exceeds max length", None, None),
        (
            400,
            "Requested token count exceeds the model's maximum context length of 131072 tokens. You requested a total of 140000 tokens: 132000 tokens from the input messages and 8000 tokens for the completion.",
            Some(131_072),
            Some(132_000),
        ),
        (
            400,
            "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 6269>= n_ctx: 4096)",
            Some(4_096),
            None,
        ),
        (
            500,
            "Input length 5000 tokens is larger than context 4096",
            Some(4_096),
            Some(5_000),
        ),
        (422, "sequence length 5000 > 4096 max", Some(4_096), None),
        (500, "context shift is disabled", None, None),
        (
            500,
            "prompt length 9000 > n_ctx 8192",
            Some(8_192),
            Some(9_000),
        ),
        (
            400,
            "Malformed input request: expected maxLength: 200000, actual: 350000, please reformat your input",
            Some(200_000),
            Some(350_000),
        ),
        (
            400,
            "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]",
            Some(98_304),
            None,
        ),
        (
            400,
            "5021: The estimated number of input and maximum output tokens (9012) exceeded this model context window limit (7968).",
            Some(7_968),
            Some(9_012),
        ),
        (
            400,
            "length of prompt_tokens (163280) must be less than max_seq_len (32768).",
            Some(32_768),
            Some(163_280),
        ),
        (400, "input_too_long", None, None),
        (400, "Context limit reached", None, None),
        (400, "Token limit exceeded: 9000/8192", Some(8_192), None),
        (
            400,
            "The model can only process 8192 tokens at a time; you sent 9000",
            Some(8_192),
            None,
        ),
        (
            500,
            "Your messages have 9000 tokens; at most 8192 are allowed",
            Some(8_192),
            None,
        ),
        (
            500,
            "Token count 9000 is above the limit of 8192",
            Some(8_192),
            None,
        ),
        (400, "请求 tokens 超过限制 8192", Some(8_192), None),
        (400, "Prompt 超长", None, None),
        (400, "输入内容超过模型最大长度限制", None, None),
        (400, "tokens数量超过模型最大长度限制", None, None),
        (400, "提示词太长", None, None),
        (400, "入力トークン数が上限を超えています", None, None),
        (
            400,
            "Current length is 65671 while limit is 65536",
            Some(65_536),
            None,
        ),
        (
            400,
            "Prompt has 9000 tokens, but the model's window holds 8192",
            Some(8_192),
            None,
        ),
        (
            400,
            "prompt of 1.2M tokens exceeds the 1M window",
            Some(1_000_000),
            Some(1_200_000),
        ),
        (
            400,
            "Input is too long. The prompt has 210k tokens; this model takes 200k.",
            Some(200_000),
            Some(210_000),
        ),
        (
            400,
            "prompt too long; exceeded max context length by 1,200 tokens",
            None,
            None,
        ),
        (
            400,
            "The messages are too lengthy for this model",
            None,
            None,
        ),
        (400, "Not enough space in the context", None, None),
        (
            400,
            "The load balancer refused a prompt of 2.3M tokens; at most 2M fit",
            Some(2_000_000),
            Some(2_300_000),
        ),
        (500, "context is full", None, None),
        (502, "upstream: context_length_exceeded", None, None),
    ] {
        let excess = overflow(status, &text.to_lowercase(), None);
        let excess = excess.unwrap_or_else(|| panic!("{text}"));
        assert_eq!(excess.part, TooLarge::Prompt, "{text}");
        assert_eq!(excess.limit, limit, "{text}");
        if tokens.is_some() {
            assert_eq!(excess.prompt, tokens, "{text}");
        }
    }
}

#[test]
fn large_completions_are_recognized() {
    for (text, sent_limit, expected) in [
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 8192 tokens and your request has 4012 input tokens (8192 > 8192 - 4012).",
            8_192,
            completion(Some(8_192), Some(4_012)),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9500 tokens (7500 in the messages, 2000 in the completion). Please reduce the length of the messages or completion.",
            2_000,
            completion(Some(8_192), Some(7_500)),
        ),
        (
            "input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000, decrease input length or `max_tokens` and try again",
            21_333,
            completion(Some(200_000), Some(190_000)),
        ),
        (
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens, whereas you provided 100000.",
            100_000,
            completion(Some(16_384), None),
        ),
        (
            "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens for the model",
            100_000,
            completion(Some(8_192), None),
        ),
        (
            "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
            100_000,
            completion(Some(8_192), None),
        ),
        (
            "`max_tokens` must be less than or equal to `4096`, the maximum value for `max_tokens` is less than the `context_window` for this model",
            8_192,
            completion(Some(4_096), None),
        ),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: 8000 `inputs` tokens and 512 `max_new_tokens`",
            512,
            completion(Some(8_193), Some(8_000)),
        ),
        (
            "This endpoint's maximum context length is 163840 tokens. However, you requested about 170012 tokens (158820 of text input, 3000 of tool input, 8192 in the output).",
            8_192,
            completion(Some(163_840), Some(161_820)),
        ),
        (
            "max_tokens (8192) plus input tokens (125000) exceed the model context length of 131072",
            8_192,
            completion(Some(131_072), Some(125_000)),
        ),
        (
            "Requested generation length 8192 is not possible! The provided prompt is 5000 tokens long, so generating 8192 tokens requires a sequence length of 13192, but the maximum supported sequence length is just 8192!",
            8_192,
            completion(Some(8_192), Some(5_000)),
        ),
        (
            "The maximum tokens you requested exceeds the model limit of 10000. Try again with a maximum tokens value that is lower than 10000.",
            32_000,
            completion(Some(10_000), None),
        ),
        (
            "Unable to submit request because it has a maxOutputTokens value of 100000 but the supported range is from 1 (inclusive) to 65537 (exclusive).",
            100_000,
            completion(Some(65_536), None),
        ),
        (
            "The parameter `max_completion_tokens` specified in the request are not valid: integer above maximum value, expected a value <= 12288, but got 32000 instead.",
            32_000,
            completion(Some(12_288), None),
        ),
        (
            "Input validation error: `max_new_tokens` must be <= 4096. Given: 32000",
            32_000,
            completion(Some(4_096), None),
        ),
        (
            "Unsupported value: max_tokens=32000, maximum supported is 8192",
            32_000,
            completion(Some(8_192), None),
        ),
        (
            "Malformed input request: #/maxTokens: 32000 is not less or equal to 8192",
            32_000,
            completion(Some(8_192), None),
        ),
        (
            "Please reduce max_tokens: 2012 (prompt) + 32000 (completion) = 34012 > 32768",
            32_000,
            completion(Some(32_768), Some(2_012)),
        ),
        (
            "最大输出 token 不能超过 4096",
            8_192,
            completion(Some(4_096), None),
        ),
        (
            "This model's maximum context length is 8192 tokens. However, you requested 9500 tokens (8500 in the messages, 1000 in the completion).",
            1_000,
            prompt(Some(8_192), Some(8_500)),
        ),
    ] {
        let excess = overflow(400, &text.to_lowercase(), Some(sent_limit)).unwrap();
        let expected = expected.unwrap();
        assert_eq!(
            (excess.part, excess.limit),
            (expected.part, expected.limit),
            "{text}"
        );
        if expected.prompt.is_some() {
            assert_eq!(excess.prompt, expected.prompt, "{text}");
        }
    }
}

#[test]
fn other_refusals_are_not_overflows() {
    for (status, text) in [
        (
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        ),
        (
            400,
            "Invalid 'tools[0].function.description': string too long. Expected a string with maximum length 1024, but got a string with length 1200 instead.",
        ),
        (
            400,
            "Invalid 'messages[3].tool_call_id': string too long. Expected maximum length 40.",
        ),
        (400, "temperature must be at most 2"),
        (
            400,
            "Your access token has expired: the maximum lifetime is 3600 seconds for each request",
        ),
        (400, "messages: at least one message is required"),
        (
            400,
            "You reached your quota of tokens; the limit for this request is 100000",
        ),
        (
            429,
            "Rate limit reached on tokens per min: limit 30000, used 29000, requested 2000",
        ),
        (
            401,
            "the prompt is longer than the maximum length of 8192 tokens",
        ),
        (
            500,
            "An error occurred (ThrottlingException) when calling the Converse operation: Too many tokens, please wait before trying again.",
        ),
        (400, "Too many requests: the limit of tokens is reached"),
        (500, "Internal server error"),
        (500, "context deadline exceeded"),
        (
            400,
            "Invalid 'messages[0].name': string too long. Expected a string with maximum length 64",
        ),
        (
            500,
            "RuntimeError: the request failed in body_size(), max_size 10",
        ),
        (
            500,
            "The request timed out after 600 s: the maximum queue size of 1000 was reached",
        ),
        (400, "registry/m does not support tools"),
        (400, "TPM limit reached for this model: 6000 tokens"),
        (400, "Your daily token limit of 1000000 has been reached"),
        (400, "max_tokens must be at least 16"),
        (422, "tools\nThe text should have at most 64 characters"),
        (400, "每分钟 token 数超过限制 6000"),
        (
            400,
            "The prompt was filtered by the content management policy: maximum length of 2000 tokens",
        ),
        (
            400,
            "`max_tokens` must be greater than `thinking.budget_tokens`",
        ),
        (
            400,
            "Invalid 'messages[2].tool_calls': array too long. Expected an array with maximum length 128",
        ),
        (
            400,
            "The request with id 20250101123456 has an invalid token; code 20015",
        ),
        (
            400,
            "Invalid request body: unexpected token at position 12345 of line 1300",
        ),
        (
            500,
            "upstream 10.0.0.1:8443: the context of request 300123 was cancelled",
        ),
        (400, "There is no context for this user"),
    ] {
        assert_eq!(
            overflow(status, &text.to_lowercase(), Some(2_000)),
            None,
            "{text}"
        );
    }
}

#[test]
fn affordable_completion_is_a_limit() {
    let text = |tokens: &str| {
        format!(
            "this request requires more credits, or fewer max_tokens. you requested up to 65536 tokens, but can only afford {tokens}"
        )
    };
    assert_eq!(
        overflow(402, &text("21,234"), None),
        completion(Some(21_234), None)
    );
    assert_eq!(overflow(402, &text("12"), None), None);
}

/// A refusal of the completion's limit is not solved by a shorter prompt.
#[test]
fn completion_limit_alone_is_not_an_overflow() {
    for text in [
        "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens",
        "the requested number of output tokens (8192) exceeds the limit for this model (4096)",
    ] {
        assert_eq!(overflow(400, text, None), None, "{text}");
    }
}
