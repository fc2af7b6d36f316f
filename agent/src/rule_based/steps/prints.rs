//! Code that calls `print` several times.

use testwright_sandboxes::Pattern;
use testwright_tools::python::Module;

/// Maximum bytes of code to split; each block of output below it may rescan the code.
const MAX_SPLIT_LEN: usize = 4_000;

/// Counts the calls of `print`. Returns 0 if the code is too long to be split.
pub(super) fn count(source: &str) -> usize {
    static PRINT: Pattern = Pattern::new(r"\bprint\b");
    match source.len() <= MAX_SPLIT_LEN {
        true => PRINT.find_iter(source).count(),
        false => 0,
    }
}

/// Splits code after each statement that prints.
pub(super) fn split(source: &str) -> Vec<String> {
    let module = Module::parse(source);
    let root = module.root();
    let (mut pieces, mut start) = (Vec::new(), 0);
    let mut cursor = root.walk();
    for node in root.named_children(&mut cursor) {
        if source[node.byte_range()].starts_with("print") {
            pieces.push(source[start..node.end_byte()].to_owned());
            start = node.end_byte();
        }
    }
    pieces.push(source[start..].to_owned());
    for piece in &mut pieces {
        *piece = piece.trim_matches(['\n', ' ', ';']).to_owned();
    }
    pieces.retain(|piece| !piece.is_empty());
    pieces
}
