//! Tracebacks in what a snippet printed: one that was printed before is not shown again.

const HEAD: &str = "Traceback (most recent call last):";

/// What was printed, with a line in the place of each traceback that stands above already.
pub fn folded(printed: &str) -> String {
    if printed.matches(HEAD).count() < 2 {
        return printed.to_owned();
    }
    let lines: Vec<&str> = printed.split_inclusive('\n').collect();
    let mut known: Vec<&[&str]> = Vec::new();
    let mut out = String::new();
    let mut at = 0;
    while at < lines.len() {
        let length = length(&lines[at..]);
        let block = &lines[at..at + length.max(1)];
        if length > 0 && known.contains(&block) {
            let last = block.last().map_or("", |line| line.trim_end());
            out.push_str(&format!("[the same traceback as above: {last}]\n"));
        } else {
            if length > 0 {
                known.push(block);
            }
            block.iter().for_each(|line| out.push_str(line));
        }
        at += block.len();
    }
    out
}

/// Lines of the traceback that begins here, the exception's among them; 0 where none does.
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
    fn the_second_of_two_equal_tracebacks_is_one_line() {
        let one = "Traceback (most recent call last):\n  File \"snippet.py\", line 1, in <module>\n    f()\nValueError: no\n";
        let other = one.replace("no\n", "other\n");
        assert_eq!(
            folded(&format!("a\n{one}b\n{one}{other}c\n")),
            format!("a\n{one}b\n[the same traceback as above: ValueError: no]\n{other}c\n")
        );
        assert_eq!(folded(one), one);
    }
}
