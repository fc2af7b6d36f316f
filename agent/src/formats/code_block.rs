//! A whole file in a fenced block, as models write it.

use testwright_tools::python::indentation::indentation;

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
    /// Lines of the whole text above the first fence.
    pub above: usize,
}

/// An opening fence.
struct Fence<'t> {
    ticks: usize,
    indent: &'t str,
}

/// All fenced blocks; one that is not closed goes to the end. A fence that closes stands at the beginning of a line, or where
/// the one that opened did: any other is the block's own.
pub fn fenced(text: &str) -> Vec<FencedBlock> {
    let mut found = Vec::new();
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
        let inner = fenced("x\n  ```py\n    ```\n  ```\n```sh\n ```\n```\n");
        let texts: Vec<(usize, &str)> = inner.iter().map(|b| (b.above, b.text.as_str())).collect();
        assert_eq!(texts, [(1, "    ```\n"), (4, " ```\n")]);
    }
}
