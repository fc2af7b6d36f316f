//! Finds the sentence of the issue that corresponds to a failure: the one that shares its rarest words.

use std::collections::{HashMap, HashSet};

/// Maximum characters of a shown sentence.
const MAX_SENTENCE_LEN: usize = 300;

/// Weight of a line of code, compared with 1 for a sentence of prose. Code often shares most words with a test, but
/// does not say what is wrong.
const CODE_WEIGHT: f64 = 1.0 / 3.0;

/// Words that most tests contain, whatever they check. A sentence that shares only such words is not evidence.
const COMMON_WORDS: [&str; 24] = [
    "and", "are", "assert", "class", "def", "false", "for", "from", "has", "import", "none", "not",
    "pass", "python", "return", "self", "test", "tests", "that", "the", "this", "true", "version",
    "with",
];

/// Returns the sentence (or line of code) of `issue` that shares most with `failure` (the model's reason, the
/// exception, its message, the test's source). Returns `None` if nothing telling is shared. Single values are not
/// evidence, nor are lists of versions. Imports are not either, unless the failure is one.
pub fn best_sentence(issue: &str, failure: &str) -> Option<String> {
    let sentences = sentences(issue);
    let words: Vec<HashSet<String>> = sentences.iter().map(|s| words(&s.text)).collect();
    let mut frequency: HashMap<&str, usize> = HashMap::new();
    for word in words.iter().flatten() {
        *frequency.entry(word).or_default() += 1;
    }
    let mut failure_words = self::words(failure);
    let mut import_errors = ["importerror", "modulenotfounderror"].iter();
    let import_fails = import_errors.any(|name| failure_words.contains(*name));
    if !import_fails {
        let lines = failure.lines().filter(|line| !is_import(line.trim()));
        failure_words = lines.flat_map(self::words).collect();
    }
    let is_evidence = |sentence: &str| {
        let code = without_prompt(sentence);
        !is_single_value(code) && !is_version_list(code) && (import_fails || !is_import(code))
    };
    let is_telling = |sentence: &HashSet<String>| {
        let shared = sentence.intersection(&failure_words);
        let mut telling = shared.filter(|word| !COMMON_WORDS.contains(&word.as_str()));
        let first = telling.next();
        // One small number may be a coincidence.
        first.is_some_and(|word| !is_small_number(word)) || telling.next().is_some()
    };
    let mut best: Option<(f64, usize)> = None;
    for (i, sentence) in words.iter().enumerate() {
        let shared: f64 = sentence
            .intersection(&failure_words)
            .map(|word| 1.0 / frequency.get(word.as_str()).copied().unwrap_or(1) as f64)
            .sum();
        // Long sentences share more by chance.
        let weight = match sentences[i].is_code {
            true => CODE_WEIGHT,
            false => 1.0,
        };
        let score = weight * shared / (4.0 + sentence.len() as f64).sqrt();
        let is_best = best.is_none_or(|(top, _)| score > top);
        if is_best && is_telling(sentence) && is_evidence(&sentences[i].text) {
            best = Some((score, i));
        }
    }
    let (_, i) = best?;
    let sentence = &sentences[i].text;
    Some(match sentence.char_indices().nth(MAX_SENTENCE_LEN) {
        Some((end, _)) => format!("{}…", &sentence[..end]),
        None => sentence.to_owned(),
    })
}

/// Minimum characters of a quotation.
const QUOTED: usize = 12;

/// Returns the text if the issue has it literally. Otherwise, returns its longest quotation from the issue, in any
/// kind of quotation marks.
pub fn quoted_sentence(issue: &str, text: &str) -> Option<String> {
    let whole = single_spaced(text);
    let is_sentence = (QUOTED..=MAX_SENTENCE_LEN).contains(&whole.chars().count());
    if is_sentence && single_spaced(issue).contains(&whole) {
        return Some(whole);
    }
    longest_quotation(issue, text, QUOTED)
}

/// Returns the longest quotation from the issue in the text that has at least `min_len` characters. Text between two
/// quotations, which begins with a space, is not one.
pub fn longest_quotation(issue: &str, text: &str, min_len: usize) -> Option<String> {
    const MARKS: [(char, char); 5] = [('"', '"'), ('“', '”'), ('`', '`'), ('«', '»'), ('\'', '\'')];
    let plain = single_spaced(issue);
    let mut best: Option<String> = None;
    for (open, close) in MARKS {
        for (start, mark) in text.match_indices(open) {
            let rest = &text[start + mark.len()..];
            let Some(end) = rest.find(close) else { break };
            let quoted = single_spaced(&rest[..end]);
            let quoted = quoted.trim_end_matches('…').trim_end_matches("...").trim();
            let length = quoted.chars().count();
            let is_longer = (best.as_ref()).is_none_or(|best| best.chars().count() < length);
            if (min_len..=MAX_SENTENCE_LEN).contains(&length)
                && is_longer
                && !rest.starts_with(' ')
                && plain.contains(quoted)
            {
                best = Some(quoted.to_owned());
            }
        }
    }
    best
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A part of an issue: a sentence, a paragraph or a line of code.
struct Passage {
    text: String,
    is_code: bool,
}

impl Passage {
    fn new(text: &str, is_code: bool) -> Self {
        Passage {
            text: text.trim().to_owned(),
            is_code,
        }
    }
}

/// Returns the sentences of the prose and the lines of the code. A full stop ends a sentence only before
/// white space and a capital letter, so not inside a name, a number or a call.
fn sentences(text: &str) -> Vec<Passage> {
    let mut sentences = Vec::new();
    for Passage { text, is_code } in blocks(text) {
        let mut start = 0;
        for (at, stop) in text.match_indices(['.', '!', '?']) {
            let end = at + stop.len();
            let next = text[end..].trim_start();
            if next.len() < text[end..].len() && next.starts_with(char::is_uppercase) {
                sentences.push(Passage::new(&text[start..end], is_code));
                start = end;
            }
        }
        sentences.push(Passage::new(&text[start..], is_code));
    }
    sentences.retain(|part| part.text.chars().filter(|c| c.is_alphanumeric()).count() > 3);
    sentences
}

/// Returns the paragraphs of the prose, each as one line, and the lines of the code.
fn blocks(text: &str) -> Vec<Passage> {
    let mut blocks: Vec<Passage> = Vec::new();
    // Whether the next line of prose continues the last block.
    let (mut continues, mut in_code) = (false, false);
    for line in text.lines() {
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
            continues = false;
        } else if line.is_empty() || line.starts_with("<!--") {
            continues = false;
        } else if in_code || is_indented && !continues || is_own_block(line) {
            let is_code =
                in_code || is_indented || [">>>", "..."].iter().any(|p| line.starts_with(p));
            blocks.push(Passage::new(line, is_code));
            // A list item goes on in the next line; code, headings and rows of tables don't.
            continues = !in_code && line.starts_with(['-', '*', '+']);
        } else {
            match blocks.last_mut().filter(|_| continues) {
                Some(block) => block.text += &format!(" {line}"),
                None => blocks.push(Passage::new(line, false)),
            }
            continues = true;
        }
    }
    blocks
}

/// Returns whether the line is a heading, a list item, a row of a table, or Python's prompt.
fn is_own_block(line: &str) -> bool {
    let markers = ["#", "- ", "* ", "+ ", "|", ">>>", "...", "> "];
    markers.iter().any(|marker| line.starts_with(marker))
}

/// Returns a sentence without the prompt of Python or IPython, markers of a list, and backticks.
fn without_prompt(sentence: &str) -> &str {
    let code = sentence.trim_start_matches(['>', '.', '-', '*', '+', '|', '`', ' ']);
    let code = code.trim_end_matches(['`', '.', ',', ';', '|', ' ']);
    match code.split_once("]: ") {
        Some((prompt, code)) if prompt.starts_with("In [") || prompt.starts_with("Out[") => code,
        _ => code,
    }
}

/// Returns whether the code is a constant. Shorter values, such as digits, are not sentences at all.
fn is_single_value(code: &str) -> bool {
    matches!(code, "True" | "False" | "None")
}

/// Returns whether a word is a number of at most three digits.
fn is_small_number(word: &str) -> bool {
    word.len() <= 3 && word.chars().all(|c| c.is_ascii_digit())
}

/// Returns whether the text is a list of programs with their versions, such as `slugs 0.3.0, Python 3.11`. Other
/// numbers have one point too.
fn is_version_list(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_said = |part: &&str| !matches!(*part, "" | "and" | "version");
    let parts: Vec<&str> = (text.split([' ', ',', ';', ':', '=']))
        .filter(is_said)
        .collect();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    let is_number =
        |part: &str| part.contains('.') && part.starts_with(|c: char| c.is_ascii_digit());
    let versions = parts.iter().filter(|part| is_number(part)).count();
    let is_certain =
        |part: &&str| *part == "python" || is_number(part) && part.matches('.').count() > 1;
    parts.iter().all(|part| part.chars().all(is_part))
        && parts.len() <= 2 * versions
        && parts.iter().any(is_certain)
}

/// Returns whether the code is an import statement and nothing else.
fn is_import(code: &str) -> bool {
    let names = match code.strip_prefix("from ") {
        Some(rest) => rest.split_once(" import ").map(|(_, names)| names),
        None => code.strip_prefix("import "),
    };
    let is_name = |name: &str| {
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '*');
        name.trim().chars().all(is_part)
    };
    names.is_some_and(|names| {
        let names = names.split('#').next().unwrap_or_default();
        let names = names.trim_matches(['(', ')', '\\', ' ']);
        names.replace(" as ", ",").split(',').all(is_name)
    })
}

fn words(text: &str) -> HashSet<String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.len() > 2)
        .map(str::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests;
