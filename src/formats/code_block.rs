//! A whole file in a fenced block, as models write it.

use super::{FormatError, with_line_feeds};

/// The longest fenced block, or the whole reply where there is no fence.
pub fn code(reply: &str) -> Result<String, FormatError> {
    let text = with_line_feeds(reply);
    let found = fenced(&text)
        .into_iter()
        .max_by_key(|block| block.text.len())
        .map_or_else(|| text.trim().to_owned(), |block| block.text);
    match found.trim().is_empty() {
        true => Err(FormatError::new("the reply holds no code")),
        false => Ok(format!("{}\n", found.trim_matches('\n').trim_end())),
    }
}

/// What stands between two fences.
#[derive(Debug, PartialEq, Eq)]
pub struct FencedBlock {
    /// The word behind the first fence.
    pub language: String,
    pub text: String,
}

/// All fenced blocks; one that is not closed goes to the end.
pub fn fenced(text: &str) -> Vec<FencedBlock> {
    let mut found = Vec::new();
    let mut open: Option<(usize, FencedBlock)> = None;
    for line in text.lines() {
        let ticks = line.trim_start().len() - line.trim_start().trim_start_matches('`').len();
        let rest = line.trim_start().trim_start_matches('`').trim();
        match &mut open {
            None if ticks >= 3 => {
                let language = rest.split_whitespace().next().unwrap_or_default();
                let block = FencedBlock {
                    language: language.to_lowercase(),
                    text: String::new(),
                };
                open = Some((ticks, block));
            }
            Some((fence, _)) if ticks >= *fence && rest.is_empty() => {
                found.extend(open.take().map(|(_, block)| block));
            }
            Some((_, block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    found.extend(open.map(|(_, block)| block));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_block_is_the_file() {
        let reply = "Run `pytest`:\n```sh\npytest\n```\nThe test:\r\n```python\r\nimport x\r\n\r\ndef test():\r\n    '''```'''\r\n```\nThat's it.";
        assert_eq!(
            code(reply).as_deref(),
            Ok("import x\n\ndef test():\n    '''```'''\n")
        );
        assert_eq!(code("import x\n\n").as_deref(), Ok("import x\n"));
        assert_eq!(code("```python\nx = 1").as_deref(), Ok("x = 1\n"));
        assert!(code(" \n").is_err() && code("```\n```").is_err());
        let nested = fenced("````md\n```py\nx\n```\n````");
        assert_eq!(nested[0].text, "```py\nx\n```\n");
        assert_eq!(nested.len(), 1);
    }
}
