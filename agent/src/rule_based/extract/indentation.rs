//! Indentation that a whole block has.

/// Lines without the blanks that all of them begin with.
pub fn dedent(lines: &[&str]) -> String {
    let least = lines
        .iter()
        .filter(|l| !l.trim().is_empty())
        .map(|l| l.len() - l.trim_start().len())
        .min()
        .unwrap_or(0);
    let cut: Vec<&str> = lines.iter().map(|l| l.get(least..).unwrap_or("")).collect();
    cut.join("\n")
}
