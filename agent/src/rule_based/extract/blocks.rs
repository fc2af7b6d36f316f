//! Markdown blocks: fences, indented code, headings, and prompts without a fence.

use testwright_sandboxes::Pattern;

use super::repl::dedent;
use super::{Kind, Part, code, open_code, repl, traceback};

static HTML_COMMENT: Pattern = Pattern::new(r"<!--.*?-->");
static HEADING: Pattern =
    Pattern::new(r"^\s{0,3}(?:#{1,6}\s+(.+?)\s*#*|\*\*([^*]+)\*\*\s*:?|__([^_]+)__\s*:?)\s*$");
static FENCE: Pattern = Pattern::new(r"^(\s*)(`{3,}|~{3,})\s*([^`]*)$");
static PROMPT: Pattern = Pattern::new(r"^\s*(?:>>>(?:\s|\w|$)|In ?\[\d*\]:)");
/// Sections of issue templates that say nothing about the behaviour.
static IDLE: Pattern = Pattern::new(
    r"(?i)(?:\b|_)versions?\b|environment|system info|confirmation|your project|screenshot|installed|references to|release notes|checklist",
);
static PYTHON_LINE: Pattern = Pattern::new(
    r"^\s*(?:(?:import|from|def|class|for|with|if|while|try|print|assert|return|raise|del|async|await|lambda)\b|@\w|[\w.]+(?:\[[^\]]*\])?\s*(?:,\s*\w+\s*)*[-+*/|]?=[^=]|[\w.]+\(.*|\)+\s*$|[\w.()\[\]]+\s*(?:==|!=|<=|>=|in|is)\s)",
);
/// Languages of blocks with commands of a shell.
static SHELL: Pattern = Pattern::new("^(?:(?:ba|z)?sh|(?:power)?shell|shell-session|console|cmd)$");
static LEADS_TO_OUTPUT: Pattern = Pattern::new(
    r"(?i)\b(?:outputs?|gives?|gave|returns?|results?(?: in)?|prints?|get|got|produces?|shows?|is|becomes?|contains?|output is|like(?: this)?)\b[^.`]{0,25}:?\s*$",
);

/// Returns the parts of an issue's body, in order.
pub(super) fn parts(body: &str) -> Vec<Part> {
    let mut reader = BlockReader::default();
    let lines = uncommented(body);
    let lines: Vec<&str> = lines.lines().collect();
    let has_fences = lines.iter().any(|line| FENCE.is_match(line));
    let mut i = 0;
    while i < lines.len() {
        if let Some(fence) = FENCE.captures(lines[i]) {
            let (indent, mark) = (fence[1].len(), fence[2].to_owned());
            let lang = fence[3].trim().to_lowercase();
            let closes = |l: &&str| {
                let l = l.trim();
                l.starts_with(&mark) && l.trim_start_matches(&mark[..1]).is_empty()
            };
            let end = lines[i + 1..]
                .iter()
                .position(closes)
                .map_or(lines.len(), |n| i + 1 + n);
            let inner: Vec<&str> = lines[i + 1..end]
                .iter()
                .map(|l| outdent(l, indent))
                .collect();
            reader.block(&lang, &inner.join("\n"));
            i = end + 1;
        } else if PROMPT.is_match(lines[i]) {
            let end = open_repl(&lines, i);
            reader.block("pycon", &dedent(&lines[i..end]));
            i = end;
        } else if lines[i]
            .trim_start()
            .starts_with("Traceback (most recent call last)")
        {
            let continues = |next: &&str| next.starts_with([' ', '\t']);
            let end = (i + 1..lines.len())
                .find(|&n| lines[n].trim().is_empty() && !lines.get(n + 1).is_some_and(continues))
                .map_or(lines.len(), |n| n + 1);
            reader.block("pytb", &dedent(&lines[i..end]));
            i = end;
        } else if indented(lines[i]) && (i == 0 || lines[i - 1].trim().is_empty()) {
            let end = (i..lines.len())
                .find(|&n| !lines[n].trim().is_empty() && !indented(lines[n]))
                .unwrap_or(lines.len());
            let text = dedent(&lines[i..end]);
            if looks_like_python(&text)
                || PROMPT.is_match(&text)
                || traceback::starts_in(&text).is_some()
            {
                reader.block("", &text);
            } else {
                reader.prose.push_str(&text);
                reader.prose.push('\n');
            }
            i = end;
        } else {
            // An issue with fences has its code in them.
            let run = match has_fences {
                true => &lines[i..i],
                false => open_code::run(&lines[i..]),
            };
            let end = i + run.len().max(1);
            match open_code::is_code(run) {
                true => reader.block("python", &run.join("\n")),
                false => lines[i..end].iter().for_each(|line| reader.line(line)),
            }
            i = end;
        }
    }
    reader.flush();
    reader.parts
}

#[derive(Default)]
struct BlockReader {
    heading: String,
    prose: String,
    parts: Vec<Part>,
}

impl BlockReader {
    fn line(&mut self, line: &str) {
        if let Some(captures) = HEADING.captures(line) {
            self.flush();
            let heading = captures
                .iter()
                .skip(1)
                .flatten()
                .next()
                .map_or("", |m| m.as_str());
            // Truncated, because every part below has a copy.
            self.heading = heading.chars().take(200).collect::<String>().to_lowercase();
            return;
        }
        let text = line.trim_start();
        if text.starts_with("- [ ]") || text.starts_with("- [x]") || text.starts_with("- [X]") {
            return;
        }
        self.prose.push_str(line);
        self.prose.push('\n');
    }

    fn flush(&mut self) {
        let prose = std::mem::take(&mut self.prose);
        if !prose.trim().is_empty() && !IDLE.is_match(&self.heading) {
            self.push(Kind::Prose(prose.trim().to_owned()));
        }
    }

    fn block(&mut self, lang: &str, text: &str) {
        let before = self.prose.trim_end().to_owned();
        self.flush();
        if IDLE.is_match(&self.heading) || text.trim().is_empty() {
            return;
        }
        let announced = before
            .lines()
            .last()
            .is_some_and(|l| LEADS_TO_OUTPUT.is_match(l));
        for kind in classify(lang, text, announced) {
            self.push(kind);
        }
    }

    fn push(&mut self, kind: Kind) {
        self.parts.push(Part {
            heading: self.heading.clone(),
            kind,
        });
    }
}

fn classify(lang: &str, text: &str, announced: bool) -> Vec<Kind> {
    let plain = || Kind::Text {
        lang: lang.to_owned(),
        text: text.to_owned(),
    };
    if text.lines().any(|l| PROMPT.is_match(l)) {
        return vec![Kind::Repl(repl::entries(text))];
    }
    if let Some(at) = traceback::starts_in(text) {
        let mut kinds = Vec::new();
        if !text[..at].trim().is_empty() {
            kinds.extend(classify(lang, &text[..at], announced));
        }
        match traceback::read(&text[at..]) {
            Some(raised) => kinds.push(Kind::Raised(raised)),
            None => kinds.push(plain()),
        }
        return kinds;
    }
    let printed = traceback::without_warnings(text);
    if printed != text {
        return match printed.trim().is_empty() {
            true => Vec::new(),
            false => classify(lang, &printed, announced),
        };
    }
    if let Some(raised) = traceback::bare(text) {
        return vec![Kind::Raised(raised)];
    }
    let python = lang.starts_with("py") || lang == "ipython" || lang == "python3";
    let has_commands = text.lines().any(is_command);
    if SHELL.is_match(lang) || has_commands && !python {
        return vec![Kind::Shell(text.to_owned())];
    }
    if has_commands {
        // Between the commands are files, as `cat` shows them, and outputs.
        let lines: Vec<&str> = text.lines().collect();
        let pieces = lines.split(|line| is_command(line));
        let pieces = pieces.map(|piece| piece.join("\n"));
        let pieces = pieces.filter(|piece| !piece.trim().is_empty());
        return pieces
            .flat_map(|piece| classify("", &piece, announced))
            .collect();
    }
    if !python && !lang.is_empty() && !["julia", "text", "txt", "none", "ipython3"].contains(&lang)
    {
        return vec![plain()];
    }
    let output = announced && !text.lines().any(is_statement);
    if !output && (python || looks_like_python(text)) {
        return vec![Kind::Code(text.trim_matches('\n').to_owned())];
    }
    vec![plain()]
}

/// Returns whether a line is a command of a shell with its prompt.
fn is_command(line: &str) -> bool {
    line.starts_with("$ ") || line.starts_with('❯')
}

/// Returns whether a line is a statement, so that it cannot be an output.
fn is_statement(line: &str) -> bool {
    static STATEMENT: Pattern =
        Pattern::new(r"^\s*(?:(?:import|from|def|class|with|assert) |print)");
    STATEMENT.is_match(line)
}

/// Returns whether most lines look like Python and the brackets match.
fn looks_like_python(text: &str) -> bool {
    let lines: Vec<&str> = text
        .lines()
        .filter(|l| !l.trim().is_empty() && !l.trim_start().starts_with('#'))
        .collect();
    let alike = lines
        .iter()
        .filter(|l| PYTHON_LINE.is_match(l) || (lines.len() > 1 && l.starts_with([' ', '\t'])))
        .count();
    !lines.is_empty() && alike * 3 >= lines.len() * 2 && code::balanced(text)
}

/// Returns the end of a transcript without a fence: a blank line that no prompt follows, or prose.
fn open_repl(lines: &[&str], start: usize) -> usize {
    let indent = lines[start].len() - lines[start].trim_start().len();
    let mut i = start + 1;
    while i < lines.len() {
        let outside = lines[i].len() - lines[i].trim_start().len() < indent;
        if lines[i].trim().is_empty() {
            let next = lines[i..]
                .iter()
                .position(|l| !l.trim().is_empty())
                .map(|n| i + n);
            match next {
                Some(n) if PROMPT.is_match(lines[n]) || (indent >= 4 && indented(lines[n])) => {
                    i = n
                }
                _ => break,
            }
        } else if outside
            || FENCE.is_match(lines[i])
            || HEADING.is_match(lines[i])
            || indent < 4 && is_prose(lines, i)
        {
            break;
        }
        i += 1;
    }
    i
}

/// Returns whether a line of a transcript is prose: a sentence after an output, or a label before a prompt.
fn is_prose(lines: &[&str], at: usize) -> bool {
    static SENTENCE: Pattern =
        Pattern::new(r"^(?:[A-Z][A-Za-z'’]*|\([a-z]+),? (?:\S+ ){2,}\S+[.?!:]\s*$");
    static LABEL: Pattern = Pattern::new(r"^[A-Za-z][\w ().-]*:\s*$");
    static CONTINUED: Pattern = Pattern::new(r"^\s*\.\.\.");
    let line = lines[at];
    let (before, next) = (lines[at - 1], lines.get(at + 1));
    // The text after an input is its output.
    if PROMPT.is_match(before) || CONTINUED.is_match(before) || line.starts_with("Traceback") {
        return false;
    }
    SENTENCE.is_match(line) || LABEL.is_match(line) && next.is_some_and(|l| PROMPT.is_match(l))
}

/// Removes the comments of templates, except within a fence.
fn uncommented(body: &str) -> String {
    let mut out = String::new();
    let mut fence: Option<String> = None;
    let mut comment = false;
    for line in body.lines() {
        if comment {
            if let Some((_, rest)) = line.split_once("-->") {
                comment = false;
                out.push_str(rest);
                out.push('\n');
            }
            continue;
        }
        match &fence {
            Some(mark) if line.trim().starts_with(mark.as_str()) => fence = None,
            Some(_) => {}
            None => fence = FENCE.captures(line).map(|captures| captures[2].to_owned()),
        }
        if fence.is_some() {
            out.push_str(line);
        } else {
            let visible_line = HTML_COMMENT.replace_all(line, "");
            match visible_line.split_once("<!--") {
                Some((before, _)) => {
                    comment = true;
                    out.push_str(before);
                }
                None => out.push_str(&visible_line),
            }
        }
        out.push('\n');
    }
    out
}

fn indented(line: &str) -> bool {
    line.starts_with("    ") || line.starts_with('\t')
}

fn outdent(line: &str, most: usize) -> &str {
    let blank = line.len() - line.trim_start_matches(' ').len();
    &line[blank.min(most)..]
}
