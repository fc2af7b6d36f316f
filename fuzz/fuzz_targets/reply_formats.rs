//! Replies that change files. Any reply must be read or rejected, give only paths of the repository, and give text that
//! can be read again. The parts of an input are the reply and an old file.
#![no_main]

use std::collections::BTreeMap;

use testwright_agent::formats::{
    FormatError, ProposedFiles, code_block, function_blocks, snippets, unified_diff,
};
use testwright_fuzz::{bounded_target, texts};

const OLD: &str = "tests/test_a.py";

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let [Some(reply), old] = texts(data) else {
        return;
    };
    let old = BTreeMap::from([(OLD.to_owned(), old.unwrap_or_default())]);
    check(unified_diff::read(&reply, &old));
    check(function_blocks::read(&reply, &old));
    check(snippets::read(&reply, &old));
    if let Ok(code) = code_block::code(&reply) {
        assert!(code.ends_with('\n') && !code.trim().is_empty());
    }
});

fn check(read: Result<ProposedFiles, FormatError>) {
    for path in read.unwrap_or_default().files.keys() {
        let is_odd = |part: &str| part.is_empty() || part == "." || part == ".." || part == ".git";
        assert!(!path.split('/').any(is_odd), "{path:?}");
    }
}
