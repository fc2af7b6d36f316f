//! Sentences of the prose, with marks in place of inline code.

use std::borrow::Cow;

use testwright_sandboxes::Pattern;

use super::code::closing;

/// A mark, with its number.
pub(super) static MARK: Pattern = Pattern::new(r"⟦(\d+)⟧");

/// Returns a text with single spaces as its white space.
pub fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the sentences of a text whose white space is single spaces.
pub fn sentences(flat: &str) -> impl Iterator<Item = &str> {
    static END: Pattern = Pattern::new(r"[.!?:;] (?:[A-Z⟦`]|$)");
    let mut from = 0;
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    for end in END.find_iter(flat) {
        cuts.push((from, end.start() + 1));
        from = end.start() + 2;
    }
    cuts.push((from.min(flat.len()), flat.len()));
    cuts.into_iter().map(|(a, b)| flat[a..b].trim())
}

/// Removes the colon of labels such as "Expected:" before code, because it would end the sentence.
pub(super) fn unlabelled(text: &str) -> Cow<'_, str> {
    static LABEL: Pattern =
        Pattern::new(r"(?i)\b((?:expect(?:ed)?|actual)(?: (?:output|result|value))?(?: is)?):\s+⟦");
    LABEL.replace_all(text, "$1 ⟦")
}

/// Replaces inline code, calls and plain values in the text by numbered marks.
pub(super) fn marked(prose: &str) -> (String, Vec<String>) {
    // Marks in the issue's own text could refer to code any number of times.
    let prose = &prose.replace(['⟦', '⟧'], " ");
    static INLINE: Pattern = Pattern::new(r"(?s)``(.+?)``|`([^`]+)`");
    let mut codes = Vec::new();
    let mut text = String::new();
    let mut from = 0;
    for captures in INLINE.captures_iter(prose) {
        let (Some(span), Some(code)) = (captures.get(0), captures.get(1).or(captures.get(2)))
        else {
            continue;
        };
        open_code(&prose[from..span.start()], &mut text, &mut codes);
        text.push_str(&format!("⟦{}⟧", codes.len()));
        codes.push(code.as_str().trim().to_owned());
        from = span.end();
    }
    open_code(&prose[from..], &mut text, &mut codes);
    (text, codes)
}

/// Finds calls and values in prose that are not in backquotes.
fn open_code(prose: &str, text: &mut String, codes: &mut Vec<String>) {
    static CALL: Pattern =
        Pattern::new(r"\b[A-Za-z_][\w.]*\([^\s()]|\b(?:True|False|None)\b|\b\d+/\d+\b");
    let mut from = 0;
    while let Some(code_match) = CALL.find_at(prose, from) {
        let rest = &prose[code_match.start()..];
        let line = rest.split('\n').next().unwrap_or(rest);
        let end = match line.find('(') {
            Some(open) if code_match.as_str().contains('(') => {
                closing(&line[open..]).map(|end| code_match.start() + open + end)
            }
            _ => Some(code_match.end()),
        };
        let Some(end) = end else {
            let end = code_match.start() + line.len();
            text.push_str(&prose[from..end]);
            from = end;
            continue;
        };
        text.push_str(&prose[from..code_match.start()]);
        text.push_str(&format!("⟦{}⟧", codes.len()));
        codes.push(prose[code_match.start()..end].to_owned());
        from = end;
    }
    text.push_str(&prose[from..]);
}

/// Puts the code back in place of the marks.
pub(super) fn plain(sentence: &str, codes: &[String]) -> String {
    MARK.replace_all(sentence, |captures: &regex::Captures<'_>| {
        let code = captures[1].parse::<usize>().ok().and_then(|n| codes.get(n));
        format!("`{}`", code.map_or("", String::as_str))
    })
    .into_owned()
}
