//! Recognizes that a request has too many tokens, in any wording: the text mentions the input's length or
//! tokens, and a limit. The numbers tell which part of the request is too large.

use std::borrow::Cow;

use regex::{Captures, Regex};
use testwright_sandboxes::Pattern;

/// The part of a request that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooLarge {
    /// The prompt; only a shorter one helps.
    Prompt,
    /// The requested completion; the prompt leaves room for a shorter one.
    Completion,
}

/// The numbers in a refusal of a request that is too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Overflow {
    pub(super) part: TooLarge,
    /// Limit in tokens, if the service names it: of the prompt and the completion together, or of the
    /// completion alone if `prompt` is unknown.
    pub(super) limit: Option<u64>,
    /// Tokens of the prompt, if the service names them.
    pub(super) prompt: Option<u64>,
}

/// Smallest number that can be a limit in tokens; smaller ones count something else.
const MIN_LIMIT: u64 = 256;

/// Larger numbers are identifiers and times.
const MAX_NUMBER: u64 = 20_000_000;

/// Minimum completion tokens that are worth a request if the account's credit limits them.
const MIN_AFFORDABLE: u64 = 1024;

/// Codes and wordings that name no limit (in lower case).
static CODES: Pattern = Pattern::new(
    r"context_length_exceeded|exceed_context_size|contextwindowexceeded|context_window_exceeded|model_max_prompt_tokens_exceeded|string_above_max_length|context shift is disabled|reduce the length of|payload too large|request too large",
);

/// Returns whether a text ends with a word for a limit, so that the next number does not count the prompt.
fn ends_like_a_limit(text: &str) -> bool {
    let words = ["max", "maximum", "allowed", "limit of", "supported"];
    words.iter().any(|word| text.trim_end().ends_with(word))
}

/// Wordings for limits of an account or of time, and for content filters. A shorter prompt does not help with these.
static OTHER_LIMITS: Pattern = Pattern::new(concat!(
    r"deadline|per (?:min|day|hour)|daily|monthly|\btoday\b|\b[rt]pm\b|rate[ _]limit|throttl|too many requests|please wait|concurren",
    r"|quota|balance\b|\bcredits\b|free tokens|\bspend|over budget|api[ _]key|authenti|unauthorized|expired|access token",
    r"|content[ _](?:filter|management)|severity|每分钟|每秒|每天|频繁|频率|并发|余额|配额|额度|敏感",
));

/// Wordings for a value that is too small, or for a list that is too long.
static TOO_SMALL: Pattern = Pattern::new(
    r"(?:must|should|needs? to) be (?:greater|larger|longer|more|at least|>)|array (?:too long|length)",
);

static SUBJECT: Pattern = Pattern::new(
    r"prompt|input|context|message|conversation|sequence|requests?\b|history|n_ctx|payload|body|session|\btext\b|\bquery\b|\btokens\b|token (?:count|limit)|current length|输入|上下文|消息|入力|입력",
);
static MEASURE: Pattern = Pattern::new(
    r"tokens?\b|length|too (?:long|large|many|big)|window|context size|longer|larger|characters|\bsize\b|长度|超长|过长|トークン|토큰",
);
static EXCESS: Pattern = Pattern::new(
    r"exceed|too (?:long|large|many|big)|(?:long|larg|great|bigg)er than|more than|over the|above|beyond|overflow|maximum|max\b|max[_-]|maxlength|limit|at most|less than|fewer than|must be (?:<=|≤|less|at most|below|smaller|shorter)|<=|≤|reduce|shorten|truncat|not fit|n't fit|out of range|range of|should be|must be|must not|between|only (?:supports?|accepts?|process|takes?)|supports only|accepts only|up to|allowed|fewer|reached|too high|is full|> ?\d|\d ?/ ?\d{3}|lengthy|over[ -]?(?:length|size)|超过|超出|超长|过长|最大|超え|長すぎ|초과",
);
static CLEAR: Pattern = Pattern::new(
    r"(?:prompt|input|context|sequence|conversation|tokens?)\b[^.\n]{0,60}(?:too (?:long|large|big|many)|exceed|(?:long|larg|great)er than)|(?:exceed|(?:long|larg|great)er than)[^.\n]{0,60}(?:context|prompt|input|tokens?)\b|maximum (?:context|prompt|input)|context (?:length|window|size) (?:is|of)|(?:prompt|input|sequence)[^.\n]{0,40}\d ?> ?(?:n_ctx|\d)",
);
/// Codes and short wordings, in which the words stand next to each other.
static SHORT: Pattern = Pattern::new(
    r"(?:input|prompt|context|tokens?)[ _-]?(?:length|limit|window|size|count)?[ _-]?(?:too[ _-]?(?:long|large|many|big)|exceed|overflow|reached)|too[ _-]?many[ _-]?(?:input[ _-]?|prompt[ _-]?)?tokens|requesttoolarge|out of context|input_length_error|max(?:imum)? context|shorten (?:your|the) (?:prompt|input|messages|text)|(?:context|kv cache) is full|not fit (?:in|into) the (?:kv cache|context|window)|(?:no (?:space|room)[^.\n]{0,20}|(?:not enough|insufficient) (?:(?:space|room)[^.\n]{0,20})?)(?:context|kv cache)|(?:tokens?|字数|字符|长度|内容|提示词?|对话|问题)[^。\n]{0,20}(?:超[过出长限]|过长|太长|太多|过大)",
);
static COMPLETION: Pattern = Pattern::new(
    r"max_tokens|max_(?:completion|new|output)_tokens|maxoutputtokens|max tokens|maximum tokens (?:you requested|value)|maxtokens|num_predict|n_predict|tokens to generate|(?:completion|output|generation) length|(?:completion|output|generated) tokens?\b|(?:in|for) the (?:completion|output)|(?:maximum|max) output|(?:输出|生成)[^。\n]{0,4}(?:token|长度)",
);
static COMPLETION_EXCESS: Pattern = Pattern::new(
    r"too (?:large|high|big|many)|exceed|at most|<=|≤|less than|maximum|range|(?:great|larg)er than|more than|> ?\d|limit|up to|between|expected a value|not less|above|not in \[|only \d|取值范围|超过",
);
static NO_ROOM: Pattern = Pattern::new(
    r"max_(?:completion_|new_|output_)?tokens[^.]{0,80}(?:at least 1\b|greater than 0\b|> ?0\b|>= ?1\b|positive|non-negative)|got -\d",
);
static OTHER_FIELD: Pattern = Pattern::new(
    r"tools?(?:\[|\.|'|\n)|function[. ](?:name|description)|tool name|tool_call_id|number of (?:tools|functions|messages|images)|too many (?:tools|functions|messages|images)|\benum\b|\]\.name|stop sequence|metadata",
);
static UNKNOWN_FIELD: Pattern =
    Pattern::new(r"unsupported|not supported|instead|unrecognized|unknown|extra input|unexpected");
static LIMIT: Pattern = Pattern::new(
    r"(?:maximum|max(?:_\w+)?|limit|allowed|at most|only|supports?|up to|window|context (?:length|size|of)|exceeds?|exceeded|<=|≤|less than(?: or equal to)?|fewer than|(?:long|larg|great)er than|more than|inclusive\) to|n_ctx|>)[^0-9]{0,80}?(\d+)",
);
static LIMIT_AFTER: Pattern = Pattern::new(
    r"(\d+)[\s-]*(?:tokens?)?[\s-]*(?:maximum|max\b|limit|allowed|is the (?:maximum|limit)|context)",
);
static PROMPT: Pattern = Pattern::new(
    r"(\d+)\s*(?:`inputs?`|inputs?|prompt)\s*tokens?|(\d+)\s*(?:tokens?\s*)?(?:in|from) (?:the|your) (?:messages|prompt|input)|(?:prompt token count of|input length|prompt length|received|n_prompt_tokens|(?:prompt|input) tokens:?(?: \()?|given:?|input \(|prompt \(|requested tokens \(|the (?:request|prompt|input|conversation) (?:contains|has)|too long:)\s*(?:at least |about |is |of )?(\d+)|(\d+)\s*(?:\(prompt\)|\+\s*\d)",
);
static AFFORDABLE: Pattern = Pattern::new(r"can only afford (\d+)");
static NUMBER: Pattern = Pattern::new(r"\d+");
/// A number with separators or a unit, after a character that is not a part of a name.
static WRITTEN_NUMBER: Pattern =
    Pattern::new(r"(^|[^\w.-])(?:(\d+(?:[,_']\d{3})+)\b|(\d+(?:\.\d+)?)\s?([km])\b)");
/// An amount by which a limit is exceeded.
static DIFFERENCE: Pattern = Pattern::new(r"\bby (?:about )?\d+");

/// Returns what is too large, for the text of a refusal in lower case. `sent_limit` is the limit of completion
/// tokens that was sent.
pub(super) fn overflow(status: u16, text: &str, sent_limit: Option<u64>) -> Option<Overflow> {
    let plain = with_plain_numbers(text);
    let text = &*plain;
    if status == 402 {
        // OpenRouter asks for credit for the longest completion. Completions below the minimum are not worth a request.
        let limit = named(&AFFORDABLE, text).next();
        return limit
            .filter(|limit| *limit >= MIN_AFFORDABLE)
            .map(|_| Overflow {
                part: TooLarge::Completion,
                limit,
                prompt: None,
            });
    }
    if !matches!(status, 400 | 413 | 416 | 422 | 429 | 500 | 502 | 503) {
        return None;
    }
    let has_code = CODES.is_match(text);
    if matches!(status, 429 | 502 | 503) && !has_code {
        return None;
    }
    if !has_code && OTHER_LIMITS.is_match(text) {
        return None;
    }
    let is_about_tokens = text.contains("token") || text.contains("context");
    let of_prompt = |numbers: &Numbers| Overflow {
        part: TooLarge::Prompt,
        limit: numbers.limit,
        prompt: numbers.prompt,
    };
    if NO_ROOM.is_match(text) {
        return Some(of_prompt(&Numbers::default()));
    }
    let is_too_small = TOO_SMALL.is_match(text) && !has_code;
    if is_too_small || (OTHER_FIELD.is_match(text) && !is_about_tokens) {
        return None;
    }
    let numbers = Numbers::read(text, sent_limit);
    let is_completion = sent_limit.is_some()
        && COMPLETION.is_match(text)
        && COMPLETION_EXCESS.is_match(text)
        && (numbers.has_sent || !UNKNOWN_FIELD.is_match(text));
    if is_completion && !numbers.is_prompt_too_long() {
        return Some(Overflow {
            part: TooLarge::Completion,
            ..of_prompt(&numbers)
        });
    }
    // A limit of the completion alone says nothing about the prompt.
    let other_words = COMPLETION.replace_all(text, "");
    let has_numbers = all_numbers(text).len() > 1;
    let has_excess = EXCESS.is_match(text);
    let is_vague = SUBJECT.is_match(&other_words) && MEASURE.is_match(text);
    let is_short = SHORT.is_match(text);
    let is_prompt = match status {
        // Failures of a server come in many wordings, so only a certain sign prevents a retry.
        500 => {
            let has_limit = is_vague && has_excess && is_about_tokens && has_numbers;
            CLEAR.is_match(text) || is_short || has_limit
        }
        // Two numbers of tokens are a length and its limit.
        _ => is_short || (is_vague && (has_excess || (has_numbers && text.contains(" tokens")))),
    };
    let is_field = UNKNOWN_FIELD.is_match(text) && COMPLETION.is_match(text);
    (has_code || status == 413 || (is_prompt && !is_field)).then(|| of_prompt(&numbers))
}

/// Numbers of a refusal.
#[derive(Default)]
struct Numbers {
    limit: Option<u64>,
    prompt: Option<u64>,
    /// Whether the limit that was sent is among them.
    has_sent: bool,
}

impl Numbers {
    fn read(text: &str, sent_limit: Option<u64>) -> Numbers {
        let without_differences = DIFFERENCE.replace_all(text, "");
        let text = &*without_differences;
        let is_sum = COMPLETION.is_match(text);
        let prompt = PROMPT
            .find_iter(text)
            .filter(|hit| !ends_like_a_limit(&text[..hit.start()]))
            .find_map(|hit| named(&PROMPT, hit.as_str()).next())
            .filter(|prompt| !is_sum || Some(*prompt) != sent_limit);
        let all: Vec<u64> = all_numbers(text);
        let others = || all.iter().copied().filter(|n| Some(*n) != sent_limit);
        let named_limits: Vec<u64> = named(&LIMIT, text)
            .chain(named(&LIMIT_AFTER, text))
            .filter(|n| *n >= MIN_LIMIT && Some(*n) != prompt)
            .collect();
        // A service that repeats only the limit that was sent may list its own without a word.
        let largest = others().max();
        let below_sent = others()
            .filter(|n| Some(*n) != prompt && largest < sent_limit)
            .min();
        let by_words = named_limits
            .iter()
            .copied()
            .find(|n| Some(*n) != sent_limit)
            .or_else(|| below_sent.filter(|_| !named_limits.is_empty()))
            .or_else(|| named_limits.first().copied());
        // The limit is smaller than what exceeds it, in whichever order they stand.
        let smallest = others().filter(|n| Some(*n) != prompt).min();
        let next_smaller = others().filter(|n| Some(*n) < largest).max();
        let limit = match (by_words, prompt) {
            (Some(limit), None) if Some(limit) == largest => next_smaller.or(by_words),
            (Some(_), _) => by_words,
            (None, _) => smallest,
        };
        let above_limit =
            largest.filter(|n| prompt.is_none() && limit.is_some_and(|limit| *n > limit));
        let from_rest = above_limit.map(|total| match sent_limit {
            Some(completion) if is_sum => total.saturating_sub(completion),
            _ => total,
        });
        // A total also counts tools, which some services list apart from the messages.
        let from_total = sent_limit
            .filter(|sent| is_sum && all.contains(sent) && largest > limit)
            .and_then(|sent| largest?.checked_sub(sent))
            .filter(|rest| prompt.is_some_and(|prompt| *rest > prompt));
        Numbers {
            limit: limit.map(|n| n - u64::from(text.contains(&format!("{n} (exclusive)")))),
            prompt: from_total.or(prompt).or(from_rest),
            has_sent: sent_limit.is_some_and(|sent| all.contains(&sent)),
        }
    }

    fn is_prompt_too_long(&self) -> bool {
        self.limit.is_some_and(|limit| self.prompt >= Some(limit))
    }
}

fn named<'t>(pattern: &'t Regex, text: &'t str) -> impl Iterator<Item = u64> + 't {
    pattern.captures_iter(text).filter_map(|captures| {
        let number = captures.iter().skip(1).flatten().next()?;
        number.as_str().parse::<u64>().ok()
    })
}

/// Rewrites numbers such as `200,000` and `128k` as digits.
fn with_plain_numbers(text: &str) -> Cow<'_, str> {
    WRITTEN_NUMBER.replace_all(text, |number: &Captures<'_>| {
        let part = |group| number.get(group).map_or("", |part| part.as_str());
        let factor = if part(4) == "m" { 1e6 } else { 1e3 };
        let digits = match part(3).parse::<f64>() {
            Ok(amount) => ((amount * factor).round() as u64).to_string(),
            Err(_) => part(2).replace([',', '_', '\''], ""),
        };
        format!("{}{digits}", part(1))
    })
}

/// Returns the numbers that may count tokens; those in names such as `gpt-4` are left out.
fn all_numbers(text: &str) -> Vec<u64> {
    NUMBER
        .find_iter(text)
        .filter(|hit| {
            let before = text[..hit.start()].chars().next_back();
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_');
            let after = text[hit.end()..].chars().next();
            // DashScope starts messages with the status, as in `<400>`.
            let is_status = before == Some('<') && after == Some('>');
            !is_status
                && !before.is_some_and(is_name)
                && !after.is_some_and(|c| c.is_alphanumeric() || c == '-')
        })
        .filter_map(|hit| hit.as_str().parse::<u64>().ok())
        .filter(|number| (MIN_LIMIT..MAX_NUMBER).contains(number))
        .collect()
}

#[cfg(test)]
mod tests;
