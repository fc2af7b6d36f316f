//! Parses lists of names as Python prints them (`['a', "b's"]`), or as NumPy does, without commas. Some tools write
//! them to files in place of JSON.

/// Parses a list of strings; `None` if the text is not one.
pub(super) fn python_list(text: &str) -> Option<Vec<String>> {
    let inside = text.trim().strip_prefix('[')?.strip_suffix(']')?;
    let mut names = Vec::new();
    let mut rest = inside.trim_start();
    while !rest.is_empty() {
        let (name, behind) = string(rest)?;
        names.push(name);
        rest = behind.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    Some(names)
}

/// Parses a string literal at the start of the text, and returns it with the rest.
fn string(text: &str) -> Option<(String, &str)> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let mut name = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Some((name, &text[at + 1..]));
        }
        if c != '\\' {
            name.push(c);
            continue;
        }
        let escaped = chars.next()?.1;
        let mut code = |digits: usize| {
            let code: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
            char::from_u32(u32::from_str_radix(&code, 16).ok()?)
        };
        match escaped {
            'n' => name.push('\n'),
            't' => name.push('\t'),
            'r' => name.push('\r'),
            'x' => name.push(code(2)?),
            'u' => name.push(code(4)?),
            'U' => name.push(code(8)?),
            c @ ('\\' | '\'' | '"') => name.push(c),
            other => name.extend(['\\', other]),
        }
    }
    None
}

#[cfg(test)]
mod tests;
