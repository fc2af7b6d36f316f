//! Sentences that expect exceptions, such as "`f(-1)` should raise `ValueError`".

use std::sync::LazyLock;

use regex::{Captures, Regex};
use testwright_sandboxes::Pattern;

use super::marks::{MARK, flat, marked, plain, sentences, unlabelled};
use super::pattern;

/// Maximum number of expectations in one issue.
const MAX_EXPECTED: usize = 20;
/// Maximum bytes of one piece of code in a sentence.
const MAX_CODE_LEN: usize = 300;

/// Maximum number of pieces of code in one list.
const MAX_LISTED: usize = 8;

/// An exception that a sentence expects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpectedException {
    /// Class of the exception; `None` if the sentence does not name it.
    pub exception: Option<String>,
    /// Code that should raise it.
    pub code: Vec<String>,
    /// Names of the functions that should raise it, as written; only if there is no `code`.
    pub functions: Vec<String>,
    /// The sentence.
    pub sentence: String,
}

const EXCEPTION: &str = r"\b(?-i:(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception|Warning)|StopIteration|SystemExit|KeyboardInterrupt))\b";
/// Words between a modal verb and its verb; a space is escaped for verbose patterns.
const ADVERBS: &str = r"(?:\ (?:also|always|both|all|each|then|rather|instead|just|simply|probably|really|immediately|have|now|still))*";

/// Returns the exceptions that the prose expects, sentence by sentence.
pub fn expected_exceptions(prose: &str) -> Vec<ExpectedException> {
    let (text, codes) = marked(prose);
    let mut all = Vec::new();
    for paragraph in unlabelled(&text).split("\n\n") {
        let flat = flat(paragraph);
        let mut previous = "";
        for sentence in sentences(&flat) {
            for mut expected in expected_in(sentence, &codes) {
                if all.len() == MAX_EXPECTED {
                    return all;
                }
                let has_code = !expected.code.is_empty() || !expected.functions.is_empty();
                match expected.exception {
                    // In "`f(1)` gives 3. It should raise …", the code is in the sentence before.
                    Some(_) if !has_code => expected.code = first_code(previous, &codes),
                    None if !has_code => continue,
                    _ => {}
                }
                all.push(expected);
            }
            previous = sentence;
        }
    }
    all
}

/// Returns whether the text is the name of an exception's class.
pub fn is_exception_name(text: &str) -> bool {
    static NAME: LazyLock<Regex> = LazyLock::new(|| pattern(&format!("^{EXCEPTION}$")));
    NAME.is_match(text)
}

/// Returns the expectations of a sentence whose code is replaced by marks.
pub(super) fn expected_in(sentence: &str, codes: &[String]) -> Vec<ExpectedException> {
    static CORE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(
            r"(?ix)
            \b(?:should|must|shall|ought\ to|needs?\ to|ha(?:s|ve)\ to|(?:supposed|expected)\ to){ADVERBS}
                \ (?:(?P<fails>raised?|thrown?|fail(?:ed)?|error(?:ed)?)|give|produce|return|result\ in|end\ in|get|see|yield)\b
                (?:[^⟦.,;]{{0,40}}?(?P<a>{EXCEPTION}))?
            |\b(?P<hope>expect(?:ed|s|ing)?)
                (?:\ (?:an?|the|to|get|see|have|some|kind|of|is|was|be|exception|error|behaviou?r|result|output|same|usual|that))*
                \ (?P<b>{EXCEPTION})
            |\b(?P<wish>expect(?:ed|s|ing)?|(?:would|i'd|we'd)\ (?:like|want|prefer)|want(?:ed)?)\b(?P<subject>[^.;]{{0,100}}?)
                \b(?:(?P<future>(?:to|would|will){ADVERBS}\ (?:raise|throw|fail|error))|raises?|throws?|raising|throwing)\b
                (?:[^⟦.,;]{{0,40}}?(?P<c>{EXCEPTION}))?
            |(?:(?P<d>{EXCEPTION})|\b(?:error|exception))(?:\ exception|\ error)?
                \ (?:should|must|ought\ to|has\ to|needs\ to){ADVERBS}\ be\ (?:raised|thrown)\b"
        ))
    });
    let text = with_exception_names(sentence, codes);
    let cores: Vec<Captures<'_>> = CORE.captures_iter(&text).collect();
    let spans: Vec<(usize, usize)> = cores
        .iter()
        .filter_map(|core| core.get(0).map(|m| (m.start(), m.end())))
        .collect();
    let mut all = Vec::new();
    for (n, core) in cores.iter().enumerate() {
        let (start, end) = spans[n];
        let from = n.checked_sub(1).map_or(0, |before| spans[before].1);
        let to = spans.get(n + 1).map_or(text.len(), |after| after.0);
        if is_denied(core, &text[from..start], &text[end..]) {
            continue;
        }
        let name = ["a", "b", "c", "d"].iter().find_map(|g| core.name(g));
        let is_failure = ["fails", "wish", "future"]
            .iter()
            .any(|group| core.name(group).is_some());
        let is_passive = core[0].ends_with("raised") || core[0].ends_with("thrown");
        if name.is_none() && !is_failure && !is_passive {
            continue;
        }
        let groups = [
            last_list(&text[start..end], codes),
            last_list(&text[from..start], codes),
            list_after(&text[end..to], codes),
        ];
        let of_kind = |kind: CodeKind| {
            let of_group = |group: &Vec<String>| -> Vec<String> {
                let codes = group.iter().filter(|code| kind_of(code) == kind);
                codes.cloned().collect()
            };
            groups.iter().map(of_group).find(|codes| !codes.is_empty())
        };
        let code = of_kind(CodeKind::Code).unwrap_or_default();
        all.push(ExpectedException {
            exception: name.map(|m| m.as_str().to_owned()),
            functions: match code.is_empty() {
                true => of_kind(CodeKind::Name).unwrap_or_default(),
                false => Vec::new(),
            },
            code,
            sentence: plain(sentence, codes),
        });
    }
    all
}

/// Returns whether the words in or around the expectation deny it: "should not raise", "as expected".
fn is_denied(core: &Captures<'_>, before: &str, after: &str) -> bool {
    static DENIED: Pattern = Pattern::new(
        r"(?i)\b(?:not|never|no|cannot|but|however|yet|whereas|although|though|got|nor|neither|while|instead of)\b|n['’]t\b",
    );
    static BEFORE_WISH: Pattern = Pattern::new(
        r"(?i)(?:\b(?:not|never|no longer|hardly|as|than|without)|n['’]t)(?: \w+){0,2} ?$",
    );
    static DOUBT: Pattern =
        Pattern::new(r"(?i)(?:\bnot|n['’]t) (?:think|believe|see why|sure|agree)\b[^.]*$");
    static AFTER: Pattern = Pattern::new(r"(?i)^ (?:to |should |must )?(?:not|never)\b");
    let is_wish = core.name("wish").is_some() || core.name("hope").is_some();
    // "As expected, `f(1)` raises …" tells what happens.
    let is_aside = core.name("wish").is_some()
        && core.name("future").is_none()
        && core
            .name("subject")
            .is_some_and(|m| m.as_str().contains(','));
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(60))..];
    DENIED.is_match(&core[0])
        || is_aside
        || is_wish && BEFORE_WISH.is_match(before)
        || DOUBT.is_match(before)
        || AFTER.is_match(after)
}

/// Replaces marks of exceptions by their names, so that the other marks are code and values.
fn with_exception_names(sentence: &str, codes: &[String]) -> String {
    static RAISED: LazyLock<Regex> = LazyLock::new(|| {
        pattern(&format!(
            r"^(raise )?(?:an? )?({EXCEPTION}|Exception|BaseException)(?:\(.*\))?$"
        ))
    });
    let name = |captures: &Captures<'_>| {
        let code = captures[1].parse::<usize>().ok().and_then(|n| codes.get(n));
        match code.and_then(|code| RAISED.captures(code)) {
            Some(raised) => {
                format!("{}{}", raised.get(1).map_or("", |m| m.as_str()), &raised[2])
            }
            None => captures[0].to_owned(),
        }
    };
    MARK.replace_all(sentence, name).into_owned()
}

static LIST: Pattern = Pattern::new(r"⟦\d+⟧(?:(?:, ⟦\d+⟧)*,? (?:and|or) (?:also )?⟦\d+⟧)?");

/// Returns the last list of code in a text, apart from code that is only context or comparison.
fn last_list(text: &str, codes: &[String]) -> Vec<String> {
    static CONTEXT: Pattern = Pattern::new(
        r"(?i)\b(?:after|before|with|given|since|because|once|like|as|unlike|than|instead of|whereas|while)(?: \w+){0,2} ?$",
    );
    static REASON: Pattern = Pattern::new(r"(?i)\b(?:so|hence|therefore|thus|then)\b");
    let lists: Vec<regex::Match<'_>> = LIST.find_iter(text).collect();
    let mut from = 0;
    let mut heads = Vec::new();
    for list in &lists {
        heads.push(&text[from..list.start()]);
        from = list.end();
    }
    let mut to = text.len();
    for (list, head) in lists.iter().zip(heads).rev() {
        if REASON.is_match(&text[list.end()..to]) {
            return Vec::new();
        }
        let testable = testable(list.as_str(), codes);
        if !testable.is_empty() && !CONTEXT.is_match(head) {
            return testable;
        }
        to = list.start();
    }
    Vec::new()
}

/// Returns the list of code that follows an expectation: "should be raised by `f(-1)`".
fn list_after(text: &str, codes: &[String]) -> Vec<String> {
    static LEADS: Pattern = Pattern::new(
        r"(?i)^[^⟦]{0,40}?\b(?:for|from|by|when|whenever|on|if|in|upon|at|calling|running|evaluating|executing|accessing)(?: \w+){0,3} ?$",
    );
    static OTHER: Pattern =
        Pattern::new(r"(?i)\b(?:like|as|instead|but|not|unlike|than|before|after|and)\b");
    let Some(list) = LIST.find(text) else {
        return Vec::new();
    };
    let head = &text[..list.start()];
    match LEADS.is_match(head) && !OTHER.is_match(head) {
        true => testable(list.as_str(), codes),
        false => Vec::new(),
    }
}

/// Returns the code of the first list of a sentence that has any.
fn first_code(sentence: &str, codes: &[String]) -> Vec<String> {
    let mut lists = LIST.find_iter(sentence).map(|list| {
        let mut code = testable(list.as_str(), codes);
        code.retain(|code| kind_of(code) == CodeKind::Code);
        code
    });
    lists.find(|code| !code.is_empty()).unwrap_or_default()
}

fn testable(list: &str, codes: &[String]) -> Vec<String> {
    MARK.captures_iter(list)
        .filter_map(|mark| codes.get(mark[1].parse::<usize>().ok()?))
        .filter(|code| kind_of(code) != CodeKind::Value && code.len() <= MAX_CODE_LEN)
        .take(MAX_LISTED)
        .cloned()
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodeKind {
    /// A literal, which cannot raise.
    Value,
    /// A dotted name, perhaps with empty parentheses.
    Name,
    Code,
}

fn kind_of(code: &str) -> CodeKind {
    static VALUE: Pattern = Pattern::new(
        r#"^(?:[-+]?[\d.][\w.+-]*|[bruf]{0,2}'[^']*'|[bruf]{0,2}"[^"]*"|True|False|None|\[[^\[\]()]*\]|\([^()\[\]]*\)|\{[^{}()\[\]]*\}|\W*)$"#,
    );
    static NAME: Pattern = Pattern::new(r"^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:\((?:\.\.\.|…)?\))?$");
    if VALUE.is_match(code) || is_exception_name(code) {
        CodeKind::Value
    } else if NAME.is_match(code) {
        CodeKind::Name
    } else {
        CodeKind::Code
    }
}

#[cfg(test)]
mod tests;
