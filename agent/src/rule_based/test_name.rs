//! Names of tests: the called function, and what the test expects of it or under which condition.

use std::fmt;

use super::probe::Subject;

/// Maximum length of a name in characters.
const MAX_LEN: usize = 60;
/// Maximum words of a name after `test`.
const MAX_WORDS: usize = 8;
/// Maximum words of a condition.
const MAX_CONDITION_WORDS: usize = 6;

/// The behaviour that a test expects.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Behaviour {
    Gives(String),
    DoesNotGive(String),
    Contains(String),
    /// Prints a whole text, with all its lines.
    Prints,
    DoesNotPrint,
    /// At least one of the values in the issue is wrong.
    DoesNotGiveAll,
    Raises(String),
    DoesNotRaise(String),
    RaisesWithOtherMessage,
    /// The test is in the issue.
    AsWritten,
}

impl fmt::Display for Behaviour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first_line = |text: &str| text.lines().next().unwrap_or_default().to_owned();
        match self {
            Behaviour::Gives(value) => write!(f, "gives {}", first_line(value)),
            Behaviour::DoesNotGive(value) => write!(f, "does not give {}", first_line(value)),
            Behaviour::Contains(text) => write!(f, "gives a text with {}", first_line(text)),
            Behaviour::Prints => f.write_str("prints what the issue expects"),
            Behaviour::DoesNotPrint => f.write_str("does not print what the issue shows"),
            Behaviour::DoesNotGiveAll => f.write_str("does not give all that the issue shows"),
            Behaviour::Raises(exception) => write!(f, "raises {exception}"),
            Behaviour::DoesNotRaise(exception) => write!(f, "does not raise {exception}"),
            Behaviour::RaisesWithOtherMessage => f.write_str("raises with another message"),
            Behaviour::AsWritten => f.write_str("does what the test in the issue asserts"),
        }
    }
}

impl Behaviour {
    /// Returns descriptions for a name, the most precise first. All of them stay true once the issue is fixed.
    fn phrases(&self, condition: Option<String>) -> Vec<String> {
        let precise = match self {
            Behaviour::Gives(value) => value_words(value, false).map(|v| format!("returns_{v}")),
            Behaviour::DoesNotGive(value) => {
                value_words(value, true).map(|v| format!("does_not_return_{v}"))
            }
            Behaviour::Contains(text) => text_words(text).map(|v| format!("contains_{v}")),
            Behaviour::Raises(name) => Some(format!("raises_{}", snake_case(name))),
            Behaviour::DoesNotRaise(name) => Some(format!("does_not_raise_{}", snake_case(name))),
            _ => None,
        };
        let general = match self {
            Behaviour::Gives(_) => "returns_expected_value",
            Behaviour::DoesNotGive(_) => "returns_other_value",
            Behaviour::Contains(_) => "contains_expected_text",
            Behaviour::Prints => "prints_expected_output",
            Behaviour::DoesNotPrint => "prints_other_output",
            Behaviour::DoesNotGiveAll => "returns_other_values",
            Behaviour::Raises(_) => "raises",
            Behaviour::DoesNotRaise(_) => "does_not_raise",
            Behaviour::RaisesWithOtherMessage => "raises_with_other_message",
            Behaviour::AsWritten => "example",
        };
        let kind = match self {
            Behaviour::Gives(value) => value_kind(value),
            _ => None,
        };
        let kind = kind.map(|kind| format!("returns_expected_{kind}"));
        let phrases = precise.into_iter().chain(condition).chain(kind);
        phrases.chain([general.to_owned()]).collect()
    }
}

/// Returns a name with as much of the call and of the value as fits; only whole parts are left out. If the value has
/// no words, the name has the condition in the title of the issue, or the kind of the value. If there is no call, it
/// has the function in the title.
pub(super) fn test_name(subject: &Subject, behaviour: &Behaviour, title: &str) -> String {
    let words = |names: &[String]| names.iter().map(|n| snake_case(n)).collect::<Vec<_>>();
    let call = match subject.names.is_empty() {
        true => words(&function_in(title).into_iter().collect::<Vec<_>>()),
        false => words(&subject.names),
    };
    let function = call.last().cloned().unwrap_or_default();
    let keywords = match words(&subject.keywords) {
        all if (1..=2).contains(&all.len()) => format!("with_{}", all.join("_and_")),
        _ => String::new(),
    };
    let condition = condition(title).filter(|_| !call.is_empty());
    let phrases = behaviour.phrases(condition);
    let options = phrases.iter().flat_map(|phrase| {
        let call = call.join("_");
        [
            (call.clone(), keywords.as_str()),
            (call, ""),
            (function.clone(), ""),
        ]
        .map(|(call, keywords)| joined(&["test", &call, keywords, phrase]))
    });
    let last = phrases.last().map_or("", String::as_str);
    let fits = |name: &String| name.len() <= MAX_LEN && name.split('_').count() <= MAX_WORDS + 1;
    options
        .into_iter()
        .find(fits)
        .unwrap_or_else(|| joined(&["test", last]))
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join("_")
}

/// Returns the function that a title names as code: in backquotes, or with parentheses or an underscore.
fn function_in(title: &str) -> Option<String> {
    let is_code =
        |token: &&str| token.starts_with('`') || token.contains("()") || token.contains('_');
    let token = title.split_whitespace().find(is_code)?;
    let name = token.trim_start_matches('`').split(['(', '`']).next()?;
    let name = name.rsplit('.').next()?;
    let is_identifier = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    is_identifier.then(|| name.to_owned())
}

/// Returns the condition that a title names, such as `for_nested_models`, unless it is long or a complaint.
fn condition(title: &str) -> Option<String> {
    const CLAUSES: [&str; 2] = ["when", "if"];
    const PHRASES: [&str; 5] = ["with", "without", "for", "on", "after"];
    // A phrase ends before the verb of the sentence, but a clause contains one.
    const VERBS: &str = "is are was were isn't aren't does do did doesn't don't not no should must can can't cannot could \
                         may will has have had always never still get gets fail fails raise raises give gives return \
                         returns produce produces print prints break breaks crash crashes cause causes lead leads \
                         ignore ignores show shows drop drops lose loses result results work works";
    const COMPLAINTS: &str = "error errors exception exceptions warning warnings wrong wrongly incorrect incorrectly \
                              bug failure failures failing broken strange unexpected";
    const DANGLING: &str =
        "with without for on after when if of to in by from as at than and or using is are some";
    let has = |list: &str, word: &str| list.split_whitespace().any(|w| w == word);
    let mut tokens = title.split_whitespace().skip_while(|token| {
        let token = token.to_lowercase();
        !CLAUSES.contains(&token.as_str()) && !PHRASES.contains(&token.as_str())
    });
    let start = tokens.next()?.to_lowercase();
    let is_clause = CLAUSES.contains(&start.as_str());
    let mut words = vec![start];
    for token in tokens {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        let lower = word.to_lowercase();
        if word.is_empty() || token.starts_with('(') || !is_clause && has(VERBS, &lower) {
            break;
        }
        if !word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-./".contains(c))
        {
            return None;
        }
        if !["a", "an", "the"].contains(&lower.as_str()) {
            let parts = word.split(['-', '.', '/', '_']).map(snake_case);
            words.extend(
                parts.flat_map(|part| part.split('_').map(str::to_owned).collect::<Vec<_>>()),
            );
        }
        if token.ends_with([',', ';', ':', '.', '!', '?', ')']) {
            break;
        }
    }
    words.retain(|word| !word.is_empty());
    let is_short = (2..=MAX_CONDITION_WORDS).contains(&words.len());
    let is_complaint = words.iter().any(|word| has(COMPLAINTS, word));
    let is_whole = words.last().is_some_and(|word| !has(DANGLING, word));
    (is_short && is_whole && !is_complaint).then(|| words.join("_"))
}

/// Converts `DataFrame` to `data_frame`, and `_turn` to `turn`.
pub(super) fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.trim_matches('_').chars().collect();
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let starts_word = before.is_some_and(|b| b.is_lowercase())
            || before.is_some_and(|b| b.is_alphanumeric())
                && chars.get(at + 1).is_some_and(|n| n.is_lowercase());
        if c.is_uppercase() && starts_word {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// Returns the words of a short literal. With `exact`, no other literal has the same words.
fn value_words(value: &str, exact: bool) -> Option<String> {
    let value = value.trim();
    let inside = |open: &str, close: &str| value.strip_prefix(open)?.strip_suffix(close);
    match value {
        "''" | "\"\"" => return Some("empty_string".to_owned()),
        "[]" => return Some("empty_list".to_owned()),
        "()" => return Some("empty_tuple".to_owned()),
        "{}" => return Some("empty_dict".to_owned()),
        "True" | "False" | "None" => return Some(value.to_lowercase()),
        _ => {}
    }
    if let Some(items) = inside("[", "]").or_else(|| inside("(", ")")) {
        let items: Vec<&str> = items.split(',').map(str::trim).collect();
        let plain = items
            .iter()
            .all(|i| !i.is_empty() && !i.contains(['[', '(', '{']));
        let words: Option<Vec<String>> = items.iter().map(|i| value_words(i, exact)).collect();
        return words
            .filter(|_| plain && !exact && (2..=3).contains(&items.len()))
            .map(|words| words.join("_and_"));
    }
    let digits = value.strip_prefix('-').unwrap_or(value);
    let is_digit = |c: char| c.is_ascii_digit();
    if digits.starts_with(is_digit) && digits.ends_with(is_digit) {
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = whole.chars().chain(fraction.chars()).all(is_digit);
        let sign = if digits == value { "" } else { "minus_" };
        return is_number.then(|| format!("{sign}{}", digits.replace('.', "_point_")));
    }
    let is_name = value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if is_name && !exact {
        return Some(snake_case(value));
    }
    let text = inside("'", "'").or_else(|| inside("\"", "\""))?;
    let is_word = |c: char| c.is_ascii_alphanumeric();
    let is_known = |c: char| {
        is_word(c) && !(exact && c.is_uppercase()) || c == '_' || !exact && " -".contains(c)
    };
    let is_plain =
        text.starts_with(is_word) && text.ends_with(is_word) && text.chars().all(is_known);
    is_plain.then(|| text.to_lowercase().replace([' ', '-'], "_"))
}

/// Returns the type of a literal, or the class of an instance such as `Grid([1])`.
fn value_kind(value: &str) -> Option<String> {
    let value = value.trim();
    let name = value.split('(').next().unwrap_or_default();
    let class = name.rsplit('.').next().unwrap_or_default();
    let kind = match (value.chars().next()?, value.chars().next_back()?) {
        ('[', ']') => "list",
        ('{', '}') if value.contains(':') => "dict",
        ('{', '}') => "set",
        ('(', ')') if value.contains(',') => "tuple",
        ('\'', '\'') | ('"', '"') => "text",
        (_, ')') if class.starts_with(|c: char| c.is_ascii_uppercase()) => {
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_call = class.chars().all(is_word) && value.matches('(').count() == 1;
            return is_call.then(|| snake_case(class));
        }
        _ => return None,
    };
    Some(kind.to_owned())
}

/// Returns the words of a short text.
fn text_words(text: &str) -> Option<String> {
    let words: Vec<String> = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    (text.is_ascii() && (1..=4).contains(&words.len())).then(|| words.join("_"))
}

#[cfg(test)]
mod tests;
