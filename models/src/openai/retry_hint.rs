//! Reads when to come back, in the forms that services use: headers with seconds, a date or a duration, fields
//! of the body, and words such as "try again in 1m26.5s".

use std::time::SystemTime;

use regex::Captures;
use reqwest::header::HeaderMap;
use serde_json::Value;
use testwright_sandboxes::Pattern;

/// Seconds since the epoch from which on a number is a time rather than a duration.
const MIN_EPOCH: f64 = 1e9;
/// Milliseconds since the epoch from which on a number is in milliseconds.
const MIN_EPOCH_MS: f64 = 1e12;

/// Maximum depth of objects and lists in a body.
const MAX_DEPTH: usize = 8;

static IN_WORDS: Pattern = Pattern::new(concat!(
    r"(?i)(?:(?:try|retry|retrying|call|send|request)[^0-9\n]{0,40}?(?:\b|_)(?:in|after|within)(?:\b|_)",
    r"|retry[-_ ]?(?:after|delay)|come back in|cool(?:ing)? ?down|back ?off|hold on|estimated time|wait(?:ing)?(?: for)?|available(?: again)? in|resets?(?: again)?(?: in| after)?|retry in)",
    r"\D{0,20}?((?:PT)?\d[\d.]*(?:\s*[a-z]+\b|[a-z]+\d[\d.a-z]*)?(?:[\s,]*(?:and\s+)?\d[\d.]*\s*(?:ms|s|m|h|sec|min|hour|second|minute|day)[a-z]*)*)",
));

/// One unit in words.
static ONE_UNIT: Pattern = Pattern::new(r"(?i)\b(?:an?|one) (second|minute|hour)\b");

/// An amount before the words that make it a hint.
static BEFORE_WORDS: Pattern = Pattern::new(concat!(
    r"(?i)(\d[\d.]*\s*(?:ms|s|sec|second|m|min|minute|h|hour)s?(?:\s*\d[\d.]*\s*(?:s|sec|second|m|min|minute)s?)*)",
    r"\s+(?:until|remaining|left)\b|(\d[\d.]*)\s*秒",
));

/// Hours, minutes and seconds, or minutes and seconds.
static CLOCK: Pattern = Pattern::new(r"\A(?:(\d{1,2}):)?(\d{1,2}):(\d\d(?:\.\d+)?)");

/// A date in words, such as "resets at 2026-11-21 22:01:00 UTC".
static UNTIL: Pattern = Pattern::new(concat!(
    r"(?i)(?:again|retry|reset|renew|refresh|lift|resum|wait|available|until|after)[^0-9\n]{0,40}?(?:",
    r"(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)\s?([+-]\d\d:?\d\d)?)?",
    r"|([a-z]{3}, \d\d [a-z]{3} \d{4} [\d:]{8} GMT))",
));

/// The seconds in a header such as `RateLimit: "api";r=0;t=55`.
static RESET: Pattern = Pattern::new(r"\b(?:t|reset)=(\d+)");

/// Keys of fields with a hint, in lower case without separators.
static HINT_KEY: Pattern = Pattern::new(concat!(
    r"^(?:retryafter|retrydelay)|^(?:x?ratelimitreset|waitseconds|waittime|secondstowait|cooldown|cooldownseconds",
    r"|resetin|resetafter|resetsafter|quotaresetdelay|retryin|resetsinseconds|estimatedtime)$",
));

static PART: Pattern = Pattern::new(r"(?i)(\d+(?:\.\d+)?)\s*([a-z]*)");

/// Returns the seconds to wait from the headers. A date is compared with the server's own Date, if it sends
/// one.
pub(super) fn in_headers(headers: &HeaderMap, now: SystemTime) -> Option<f64> {
    let text = |name: &str| Some(headers.get(name)?.to_str().ok()?.trim().to_owned());
    let now = text("date")
        .and_then(|date| httpdate::parse_http_date(&date).ok())
        .unwrap_or(now);
    let ms = text("retry-after-ms").or_else(|| text("x-ms-retry-after-ms"));
    if let Some(ms) = ms.and_then(|ms| number(&ms)) {
        return Some(ms / 1000.0);
    }
    // Gateways add prefixes to the name, perhaps to a longer wait of a service behind them.
    let is_prefixed =
        |name: &&str| name.ends_with("retry-after") || name.ends_with("retry-after-seconds");
    let prefixed = headers.keys().map(|name| name.as_str()).filter(is_prefixed);
    let mut names = std::iter::once("retry-after").chain(prefixed);
    let hint = names.find_map(|name| duration_or_time(&text(name)?, now));
    if hint.is_some() {
        return hint;
    }
    // Services name these headers after many limits, each with one for the rest of it.
    let is_reset = |name: &str| {
        name.contains("reset") && (name.contains("ratelimit") || name.contains("rate-limit"))
    };
    let resets: Vec<(f64, bool)> = headers
        .keys()
        .filter(|name| is_reset(name.as_str()))
        .filter_map(|name| {
            let seconds = duration_or_time(&text(name.as_str())?, now)?;
            let remaining = text(&name.as_str().replace("reset", "remaining"));
            let is_used_up = remaining.and_then(|value| number(&value)) == Some(0.0);
            Some((seconds, is_used_up))
        })
        .collect();
    let used_up = resets.iter().filter(|(_, is_used_up)| *is_used_up);
    let longest = used_up.map(|(seconds, _)| *seconds).max_by(f64::total_cmp);
    let soonest = || resets.iter().map(|(s, _)| *s).min_by(f64::total_cmp);
    let in_parts = || number(&RESET.captures(&text("ratelimit")?)?[1]);
    longest.or_else(soonest).or_else(in_parts)
}

/// Returns the seconds to wait from a body: a field such as `retryDelay`, or words.
pub(super) fn in_body(body: &str, now: SystemTime) -> Option<f64> {
    match serde_json::from_str::<Value>(body) {
        Ok(value) => {
            let in_fields = |value: &Value| {
                let mut fields = value.as_object()?.iter();
                fields.find_map(|(key, value)| field(&key.to_lowercase(), value, now))
            };
            let in_text = |value: &Value| in_words(value.as_str()?, now);
            nested(&value, &in_fields, 0).or_else(|| nested(&value, &in_text, 0))
        }
        Err(_) => in_words(body, now),
    }
}

/// Returns the first hint in a value or in those that it contains.
fn nested(value: &Value, hint_in: &dyn Fn(&Value) -> Option<f64>, depth: usize) -> Option<f64> {
    if depth > MAX_DEPTH {
        return None;
    }
    let inner = |value: &Value| nested(value, hint_in, depth + 1);
    hint_in(value).or_else(|| match value {
        Value::Array(items) => items.iter().find_map(inner),
        Value::Object(fields) => fields.values().find_map(inner),
        _ => None,
    })
}

/// Reads a field with a hint, by the name of its key in lower case.
fn field(key: &str, value: &Value, now: SystemTime) -> Option<f64> {
    let key = key.replace(['-', '_'], "");
    let is_ms = key.ends_with("ms") || key.ends_with("milliseconds");
    // Other fields about retries may count them, but a date in the future is a hint.
    if !HINT_KEY.is_match(&key) {
        let seconds = match value {
            _ if !key.contains("retry") && !key.contains("reset") => None,
            Value::Number(number) => {
                let number = number.as_f64().filter(|number| *number >= MIN_EPOCH)?;
                seconds_or_time(number, now)
            }
            Value::String(text) => time_left(text, now),
            _ => None,
        };
        return seconds.filter(|seconds| *seconds > 0.0);
    }
    let seconds = match value {
        Value::Number(number) => seconds_or_time(number.as_f64()?, now)?,
        Value::String(text) => duration_or_time(text, now)?,
        // A Duration of Google's protocol.
        Value::Object(parts) => {
            let part = |name: &str| match parts.get(name)? {
                Value::Number(number) => number.as_f64(),
                Value::String(text) => number(text),
                _ => None,
            };
            part("seconds")? + part("nanos").unwrap_or_default() / 1e9
        }
        _ => return None,
    };
    Some(if is_ms { seconds / 1000.0 } else { seconds })
}

/// Returns the seconds in a text such as "Please try again in 1h2m3.5s" or "resets at 2026-11-21 22:01:00 UTC".
fn in_words(text: &str, now: SystemTime) -> Option<f64> {
    let in_digits = ONE_UNIT.replace_all(text, "1 $1");
    let seconds_until = |until: Captures<'_>| match until.get(4) {
        Some(date) => time_left(date.as_str(), now),
        None => {
            let part = |group, default| until.get(group).map_or(default, |part| part.as_str());
            let (time, zone) = (part(2, "00:00"), part(3, "Z"));
            time_left(&format!("{}T{time}{zone}", &until[1]), now)
        }
    };
    // A past date says nothing about the next request.
    let until = UNTIL.captures(&in_digits).and_then(seconds_until);
    let until = until.filter(|seconds| *seconds > 0.0);
    // Otherwise the year of a date would be read as seconds.
    let without_dates = UNTIL.replace_all(&in_digits, "");
    let text = &*without_dates;
    let after_words = IN_WORDS.captures_iter(text).find_map(|captures| {
        let amount = captures.get(1)?;
        let rest = &text[amount.start()..];
        if let Some(clock) = CLOCK.captures(rest) {
            // After "at", it is a time of the day.
            let mut words = text[..amount.start()].split_whitespace();
            let last_word = words.next_back().unwrap_or_default().to_lowercase();
            let is_duration = ["in", "after", "within", "wait", "for"].contains(&&last_word[..]);
            let part = |group| clock.get(group).and_then(|part| number(part.as_str()));
            let hours = part(1).unwrap_or_default();
            let seconds = hours * 3600.0 + part(2)? * 60.0 + part(3)?;
            return is_duration.then_some(seconds);
        }
        duration(amount.as_str())
    });
    after_words.or(until).or_else(|| {
        let captures = BEFORE_WORDS.captures(text)?;
        let amount = captures.get(1).or_else(|| captures.get(2))?;
        duration(amount.as_str())
    })
}

/// Reads a duration, or a time as a date or a number.
fn duration_or_time(text: &str, now: SystemTime) -> Option<f64> {
    let text = text.trim();
    if let Some(number) = number(text) {
        return seconds_or_time(number, now);
    }
    time_left(text, now).or_else(|| duration(text))
}

/// Returns the seconds until a date.
fn time_left(date: &str, now: SystemTime) -> Option<f64> {
    let until = httpdate::parse_http_date(date).ok().or_else(|| {
        let time: jiff::Timestamp = date.parse().ok()?;
        Some(SystemTime::from(time))
    })?;
    Some(until.duration_since(now).unwrap_or_default().as_secs_f64())
}

/// Returns seconds; a large number is a time since the epoch.
fn seconds_or_time(number: f64, now: SystemTime) -> Option<f64> {
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    if number < MIN_EPOCH {
        return Some(number);
    }
    let until = if number >= MIN_EPOCH_MS {
        number / 1000.0
    } else {
        number
    };
    let now = now.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some((until - now.as_secs_f64()).max(0.0))
}

/// Reads `1h2m3.5s`, `PT1M30S`, `20ms`, `2 minutes and 5 seconds` or plain seconds.
fn duration(text: &str) -> Option<f64> {
    let text = text.strip_prefix("PT").unwrap_or(text);
    if !text.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let mut total = None;
    for part in PART.captures_iter(text) {
        let amount = number(&part[1])?;
        let factor = match part[2].to_lowercase().as_str() {
            "ms" | "msec" | "msecs" | "millis" | "millisecond" | "milliseconds" => 0.001,
            "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
            "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
            "d" | "day" | "days" => 86_400.0,
            "" | "s" | "sec" | "secs" | "second" | "seconds" | "and" => 1.0,
            // The number counts something else.
            "requests" | "tokens" | "calls" | "of" | "per" => return None,
            // Words after the number that are no unit.
            _ if total.is_some() => break,
            _ => 1.0,
        };
        total = Some(total.unwrap_or(0.0) + amount * factor);
    }
    total
}

fn number(text: &str) -> Option<f64> {
    let number = text.trim().trim_end_matches('.').parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number)
}

#[cfg(test)]
mod tests;
