//! Shortens repeated tracebacks in the output of a snippet.

const HEAD: &str = "Traceback (most recent call last):";

/// Replaces each traceback that already appeared with one line.
pub(super) fn folded(printed: &str) -> String {
    if printed.matches(HEAD).count() < 2 {
        return printed.to_owned();
    }
    let lines: Vec<&str> = printed.split_inclusive('\n').collect();
    let mut earlier_blocks: Vec<&[&str]> = Vec::new();
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let length = length(&lines[at..]);
        let block = &lines[at..at + length.max(1)];
        if length > 0 && earlier_blocks.contains(&block) {
            let last = block.last().map_or("", |line| line.trim_end());
            out.push_str(&format!("[the same traceback as above: {last}]\n"));
        } else {
            if length > 0 {
                earlier_blocks.push(block);
            }
            block.iter().for_each(|line| out.push_str(line));
        }
        at += block.len();
    }
    out
}

/// Returns the number of lines in the traceback that begins here, including the exception; 0 if none does.
fn length(lines: &[&str]) -> usize {
    if lines.first().is_none_or(|line| line.trim_end() != HEAD) {
        return 0;
    }
    let frames = lines[1..]
        .iter()
        .take_while(|line| line.starts_with(' '))
        .count();
    (frames + 2).min(lines.len())
}

#[cfg(test)]
mod tests {
    use super::folded;

    #[test]
    fn repeated_traceback_becomes_one_line() {
        let one = "Traceback (most recent call last):\n  File \"snippet.py\", line 1, in <module>\n    f()\nValueError: no\n";
        let other = one.replace("no\n", "other\n");
        assert_eq!(
            folded(&format!("a\n{one}b\n{one}{other}c\n")),
            format!("a\n{one}b\n[the same traceback as above: ValueError: no]\n{other}c\n")
        );
        assert_eq!(folded(one), one);
    }
}
