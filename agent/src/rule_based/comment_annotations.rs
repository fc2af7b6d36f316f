//! Code outside of a session whose comments state its results: `f(1)  # gives 2`.

use testwright_sandboxes::Pattern;

use super::extract::{Polarity, balanced, classify_words, split_note};
use super::stated_output::{Role, StatedOutput, right_in};

/// A piece of code, and the comment on its last statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Piece {
    pub source: String,
    pub outputs: Vec<StatedOutput>,
    pub stance: Polarity,
}

/// Splits the code into pieces; there is only one if no comment states a result.
pub(super) fn pieces(source: &str) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut lines: Vec<&str> = Vec::new();
    // Index of the line where the last statement starts.
    let mut start = 0;
    let mut all = source.lines().peekable();
    while let Some(line) = all.next() {
        if starts_statement(line) {
            start = lines.len();
        }
        lines.push(line);
        let more = all
            .peek()
            .is_some_and(|next| next.starts_with([' ', '\t', ')', ']', '}']));
        let (code, mut note) = split_note(line);
        if code.is_empty() || more || start + 1 != lines.len() || !gives(code) || !balanced(code) {
            continue;
        }
        // The comment may be below the code.
        let below = all.peek().and_then(|next| next.strip_prefix('#'));
        if let (true, Some(below)) = (note.is_empty(), below)
            && !stated(below.trim()).is_empty()
        {
            note = below.trim();
            all.next();
        }
        let outputs = stated(note);
        if !outputs.is_empty() {
            lines.pop();
            lines.push(code);
            pieces.push(Piece {
                source: lines.join("\n"),
                outputs,
                stance: classify_words(note),
            });
            lines.clear();
            start = 0;
        }
    }
    if !lines.iter().all(|l| split_note(l).0.trim().is_empty()) || pieces.is_empty() {
        pieces.push(Piece {
            source: lines.join("\n"),
            outputs: Vec::new(),
            stance: Polarity::Unknown,
        });
    }
    pieces
}

fn starts_statement(line: &str) -> bool {
    !line.starts_with([' ', '\t', '#', ')', ']', '}']) && !line.trim().is_empty()
}

/// Returns whether the code is an expression or prints something, rather than an assignment or a block.
fn gives(code: &str) -> bool {
    static OTHER: Pattern = Pattern::new(
        r"^(?:(?:return|raise|import|from|def|class|if|elif|else|for|while|with|assert|del|pass|try|except|yield|async|global)\b|@|[A-Za-z_][\w.]*(?:\[[^\]]*\])?(?:\s*,\s*\w+)*\s*[-+*/|&]?=[^=])",
    );
    !OTHER.is_match(code)
}

/// Returns the outputs that a comment states for its value.
fn stated(note: &str) -> Vec<StatedOutput> {
    static GIVES: Pattern = Pattern::new(
        r"(?i)^(?:(?:this|it|which|currently|now|actually|wrongly|incorrectly|but)?\s*(?:gives?|returns?|prints?|outputs?|yields?|evaluates to|results? in|shows?|is)\b:?|(?:current |actual |wrong )?(?:output|result|value)\s*(?:is|:|=)|-+>|=+>|→|==|Out(?:\[\d*\])?:)\s*(\S.*)$",
    );
    static VALUE: Pattern = Pattern::new(
        r#"^(?:True|False|None|nan|-?\d[\d.e+*/-]*|['"\[{(].*['"\]})]|[A-Za-z_][\w.]*\(.*\))$"#,
    );
    if note.is_empty() {
        return Vec::new();
    }
    let say = |text: &str, role: Role| StatedOutput::new(text.trim(), role, note);
    let (first, rest) = split_remark(note);
    let output = GIVES
        .captures(first)
        .and_then(|captures| captures.get(1))
        .map(|value| value.as_str().trim())
        .filter(|text| value_like(text))
        .or_else(|| VALUE.is_match(first).then_some(first));
    let right = right_in(note).map(|text| split_remark(&text).0.to_owned());
    let mut all = Vec::new();
    if let Some(right) = &right {
        all.push(say(right, Role::Right));
    }
    if let Some(output) = output
        && right.as_deref() != Some(output)
    {
        let role = match classify_words(rest) {
            _ if right.is_some() => Role::Wrong,
            Polarity::Expected => Role::Wrong,
            Polarity::Unknown => match classify_words(first) {
                Polarity::Bad => Role::Wrong,
                Polarity::Good => Role::Fine,
                _ => Role::Shown,
            },
            stance => stance.into(),
        };
        all.push(say(output, role));
    }
    all
}

/// Splits `3, which is wrong` into the value and the remark on it.
fn split_remark(note: &str) -> (&str, &str) {
    static REMARK: Pattern = Pattern::new(
        r"(?i)\s*(?:\s#|,? (?:but|instead|which|while|whereas|not)\b|, (?:as|correctly|wrong|should|expected|incorrect)\b|\s\((?:but|wrong|correct|incorrect|expected|should|bug|ok|bad|good)\b|\s-+ |; |\s<-|!+$)",
    );
    match REMARK.find(note) {
        Some(remark) if remark.start() > 0 => (
            note[..remark.start()].trim(),
            note[remark.start()..].trim_matches([' ', ',', ';', '(', ')', '#', '<', '-']),
        ),
        _ => (note, ""),
    }
}

/// Returns whether a text looks like a value; plain words are not one.
fn value_like(text: &str) -> bool {
    !text.contains(' ') || text.contains(['(', '[', '{', '\'', '"', '*', '+', '/'])
}

#[cfg(test)]
mod tests;
