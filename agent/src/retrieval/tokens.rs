//! Counts tokens like OpenAI's models since GPT-4o (`o200k_base`); other models count nearly the same.

use tiktoken_rs::{CoreBPE, o200k_base_singleton};

/// Name of the tokenizer, for records.
pub const TOKENIZER: &str = "o200k_base";
/// Maximum bytes of a line to count at once, because the tokenizer takes quadratic time. Longer lines are
/// split.
const MAX_PIECE_LEN: usize = 4 << 10;

fn tokenizer() -> &'static CoreBPE {
    o200k_base_singleton()
}

/// Returns the number of tokens in a text, by the encoding `o200k_base`.
pub fn count(text: &str) -> usize {
    pieces(text)
        .map(|piece| tokenizer().encode_ordinary(piece).len())
        .sum()
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

fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            let (piece, tail) = rest.split_at(rest.floor_char_boundary(MAX_PIECE_LEN));
            rest = tail;
            (!piece.is_empty()).then_some(piece)
        })
    })
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
