//! Tokens as OpenAI's models since GPT-4o count them (`o200k_base`); others count nearly the same.

use tiktoken_rs::{CoreBPE, o200k_base_singleton};

/// Name of the tokenizer, for records.
pub const TOKENIZER: &str = "o200k_base";
/// A line that is longer is counted in pieces of so many bytes: the tokenizer takes quadratic time for it.
const PIECE: usize = 4 << 10;

fn tokenizer() -> &'static CoreBPE {
    o200k_base_singleton()
}

pub fn count(text: &str) -> usize {
    pieces(text)
        .map(|piece| tokenizer().encode_ordinary(piece).len())
        .sum()
}

/// The whole lines from the begin of a text that take at most so many tokens.
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

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            let (piece, left) = rest.split_at(rest.floor_char_boundary(PIECE));
            rest = left;
            (!piece.is_empty()).then_some(piece)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_and_cut_by_lines() {
        assert_eq!(count("hello world"), 2);
        let text = "def f():\n    return 1\n\n";
        assert_eq!(first(text, 100), text);
        assert_eq!(first(text, count("def f():\n")), "def f():\n");
        assert_eq!(first(text, 0), "");
    }

    #[test]
    fn a_long_line_is_counted_at_once() {
        let line = "ä".repeat(1 << 20);
        assert!(count(&line) > 1_000);
    }
}
