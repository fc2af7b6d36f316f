//! Shortens texts that are too long or repetitive.

/// Maximum characters of a message.
const MAX_MESSAGE_CHARS: usize = 2000;
/// Maximum characters of a line in a message that is too long.
const MAX_LINE_CHARS: usize = 300;

/// Minimum number of consecutive lines that are left out because the message already contains them.
const MIN_REPEATED_LINES: usize = 3;

/// Minimum characters for a line to count as repeated if it is only a part of a message line.
const MIN_PARTIAL_MATCH_CHARS: usize = 12;

/// Returns the output of a test without lines that the message, as shown, already contains.
pub(super) fn without_message_lines(captured: &str, message: &str) -> String {
    let lines: Vec<&str> = captured.lines().collect();
    let is_there = |line: &&str| {
        let line = line.trim();
        line.is_empty()
            || (line.chars().count() >= MIN_PARTIAL_MATCH_CHARS && message.contains(line))
            || message.lines().any(|of_message| of_message.trim() == line)
    };
    let mut out: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let stretch: Vec<&&str> = lines[at..].iter().take_while(|l| is_there(l)).collect();
        let telling = stretch.iter().filter(|l| !l.trim().is_empty()).count();
        if telling >= MIN_REPEATED_LINES {
            out.push(format!(
                "[... {telling} lines that stand in the message above ...]"
            ));
            at += stretch.len();
        } else {
            let next = stretch.len().max(1);
            out.extend(lines[at..at + next].iter().map(|l| (*l).to_owned()));
            at += next;
        }
    }
    out.join("\n")
}

/// Shows repeated consecutive lines once, with their number.
pub fn without_repeats(text: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let mut more = 0;
        while lines.next_if_eq(&line).is_some() {
            more += 1;
        }
        out.push(line.to_owned());
        match more {
            0 => {}
            1 => out.push(line.to_owned()),
            _ => out.push(format!("[... the line above {more} more times ...]")),
        }
    }
    out.join("\n")
}

pub(super) fn indented(text: &str, by: &str) -> String {
    text.replace('\n', &format!("\n{by}"))
}

/// Shortens a message to the available room. Overlong lines lose their middles first, so that a line such as `At index
/// 39 diff` stays.
pub(super) fn shorten_message(message: &str) -> String {
    shorten_message_to_lines(message, usize::MAX)
}

/// Shortens a message like [`shorten_message`], and to at most `most_lines` lines, by cutting lines in the middle.
pub fn shorten_message_to_lines(message: &str, most_lines: usize) -> String {
    let message = &without_full_diff(message);
    let count = message.lines().count();
    if message.chars().count() <= MAX_MESSAGE_CHARS && count <= most_lines {
        return message.to_owned();
    }
    if let Some(deciding) = deciding_lines(message) {
        return cut(&deciding, MAX_MESSAGE_CHARS);
    }
    let mut lines: Vec<String> = message.lines().map(shortened).collect();
    if count > most_lines {
        let half = most_lines / 2;
        let note = format!("[... {} lines left out ...]", count - 2 * half);
        lines.splice(half..count - half, [note]);
    }
    cut(&lines.join("\n"), MAX_MESSAGE_CHARS)
}

/// Removes the diff of two values that the first line shows completely.
fn without_full_diff(message: &str) -> String {
    let lines: Vec<&str> = message.lines().collect();
    let first = lines.first().copied().unwrap_or_default();
    let is_whole =
        first.starts_with("assert ") && !first.contains("...") && first.len() <= MAX_LINE_CHARS;
    let diff = lines.iter().position(|line| line.trim() == "Full diff:");
    let Some(diff) = diff.filter(|_| is_whole) else {
        return message.to_owned();
    };
    // The end says which lines belong to which side.
    let is_end = |line: &&str| line.starts_with("[diff: ");
    let end = lines[diff..].iter().position(is_end);
    let end = end.map_or(lines.len(), |end| diff + end + 1);
    [&lines[..diff], &lines[end..]].concat().join("\n")
}

/// Lines of pytest's `fnmatch_lines` that are kept before the deciding ones.
const LEADING_LINES: usize = 6;

/// Summarizes a list of lines of which none matched: the first lines, the one nearest to the pattern, and the pattern.
fn deciding_lines(message: &str) -> Option<String> {
    let lines: Vec<&str> = message.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.trim_start().starts_with("remains unmatched: "))?;
    let pattern = lines[at].split_once(": ")?.1;
    let bare = |text: &str| text.replace(['*', '\'', '"'], "");
    let tried = lines[..at]
        .iter()
        .rposition(|line| line.trim_start() == format!("nomatch: {pattern}"))?;
    let compared = lines[tried..at]
        .iter()
        .filter_map(|line| line.trim_start().strip_prefix("and: "));
    let similarity = |line: &&str| strsim::jaro_winkler(&bare(line), &bare(pattern));
    let nearest = compared.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let lead_count = at.min(LEADING_LINES);
    let mut out: Vec<String> = lines[..lead_count]
        .iter()
        .map(|line| shortened(line))
        .collect();
    if at > lead_count {
        out.push(format!("[... {} lines left out ...]", at - lead_count));
    }
    if let Some(nearest) = nearest {
        out.push(format!("nearest to it: {}", shortened(nearest)));
    }
    out.push(lines[at].to_owned());
    Some(out.join("\n"))
}

/// Cuts the middle out of a long line.
fn shortened(line: &str) -> String {
    let length = line.chars().count();
    if length <= MAX_LINE_CHARS {
        return line.to_owned();
    }
    let head = line.chars().take(MAX_LINE_CHARS / 2);
    let tail = line.chars().skip(length - MAX_LINE_CHARS / 2);
    head.chain(" … ".chars()).chain(tail).collect()
}

/// Maximum excess characters that are kept, because the note about a cut would be as long.
const CUT_TOLERANCE: usize = 40;

/// Cuts the middle out of a text that is too long, with a note.
pub fn cut(text: &str, max_chars: usize) -> String {
    let length = text.chars().count();
    if length <= max_chars.saturating_add(CUT_TOLERANCE) {
        return text.to_owned();
    }
    let half = max_chars / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(length - half).collect();
    format!(
        "{head}\n[... {} characters left out ...]\n{tail}",
        length - 2 * half
    )
}

/// Returns the first line of a message that has words, otherwise the first one that is not blank.
pub fn headline(message: &str) -> &str {
    let lines = || message.lines().map(str::trim);
    let worded = lines().find(|line| line.contains(char::is_alphanumeric));
    let headline = worded.or_else(|| lines().find(|line| !line.is_empty()));
    headline.unwrap_or_default()
}

/// Returns the [`headline`] of a message with at most `max_chars` characters. An ellipsis marks a cut.
pub fn short_headline(message: &str, max_chars: usize) -> String {
    let headline = headline(message);
    match headline.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", &headline[..end]),
        None => headline.to_owned(),
    }
}

#[cfg(test)]
mod tests;
