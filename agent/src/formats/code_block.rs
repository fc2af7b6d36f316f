//! A complete file in a fenced block, as models write it.

use testwright_tools::python::indentation::indentation;

use super::{FormatError, with_line_feeds};

/// Returns the longest fenced block, or the whole reply if there is no fence.
///
/// # Errors
///
/// Fails if the reply contains no code.
pub fn code(reply: &str) -> Result<String, FormatError> {
    let text = with_line_feeds(reply);
    let longest = fenced(&text)
        .into_iter()
        .max_by_key(|block| block.text.len());
    let content = longest.map_or_else(|| text.trim().to_owned(), |block| block.text);
    match content.trim().is_empty() {
        true => Err(FormatError::new("the reply contains no code")),
        false => Ok(format!("{}\n", content.trim_matches('\n').trim_end())),
    }
}

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub struct FencedBlock {
    /// Word after the opening fence.
    pub language: String,
    /// Text between the fences.
    pub text: String,
    /// Number of lines in the whole text above the opening fence.
    pub above: usize,
}

/// An opening fence.
struct Fence<'t> {
    ticks: usize,
    indent: &'t str,
}

/// Returns all fenced blocks; an unclosed block extends to the end. A closing fence is at the start of a
/// line, or in the same column as the opening one. Any other fence belongs to the block.
pub fn fenced(text: &str) -> Vec<FencedBlock> {
    let mut blocks = Vec::new();
    let mut open: Option<(Fence<'_>, FencedBlock)> = None;
    for (above, line) in text.lines().enumerate() {
        let indent = indentation(line);
        let ticks = line.trim_start().len() - line.trim_start().trim_start_matches('`').len();
        let rest = line.trim_start().trim_start_matches('`').trim();
        match &mut open {
            None if ticks >= 3 => {
                let language = rest.split_whitespace().next().unwrap_or_default();
                let block = FencedBlock {
                    language: language.to_lowercase(),
                    text: String::new(),
                    above,
                };
                open = Some((Fence { ticks, indent }, block));
            }
            Some((fence, _))
                if ticks >= fence.ticks
                    && rest.is_empty()
                    && (indent.is_empty() || indent == fence.indent) =>
            {
                blocks.extend(open.take().map(|(_, block)| block));
            }
            Some((_, block)) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_block_is_the_file() {
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
        let inner = fenced("x\n  ```py\n    ```\n  ```\n```sh\n ```\n```\n");
        let texts: Vec<(usize, &str)> = inner.iter().map(|b| (b.above, b.text.as_str())).collect();
        assert_eq!(texts, [(1, "    ```\n"), (4, " ```\n")]);
    }
}
