//! Counts tokens like OpenAI's models since GPT-4o (`o200k_base`); other models count nearly the same.

use std::sync::LazyLock;

use tiktoken::CoreBpe;
use tiktoken::encoding::o200k_base;

/// Name of the tokenizer, for records.
pub const TOKENIZER: &str = "o200k_base";

// `tiktoken::get_encoding` would add the vocabularies of all encodings to the program.
static ENCODING: LazyLock<CoreBpe> = LazyLock::new(o200k_base);

/// Returns the number of tokens in a text, by the encoding `o200k_base`.
pub fn count(text: &str) -> usize {
    ENCODING.count(text)
}

/// Returns the complete lines at the start of a text that have at most `most` tokens.
pub fn first(text: &str, most: usize) -> &str {
    let (mut end, mut tokens) = (0, 0);
    for line in text.split_inclusive('\n') {
        tokens += count(line);
        if tokens > most {
            break;
        }
        end += line.len();
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_and_cut() {
        assert_eq!(count("hello world"), 2);
        let text = "def f():\n    return 1\n\n";
        assert_eq!(first(text, 100), text);
        assert_eq!(first(text, count("def f():\n")), "def f():\n");
        assert_eq!(first(text, 0), "");
    }

    #[test]
    fn long_line_is_counted_quickly() {
        let line = "ä".repeat(1 << 20);
        assert!(count(&line) > 1_000);
    }
}
