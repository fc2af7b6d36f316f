//! Unified diffs. For any text, all readers must agree on paths and lines. For two texts (divided by the byte 0xff),
//! the written diff must list exactly the removed and added lines, for any file name.
#![no_main]

use std::collections::BTreeSet;

use testwright_evals::harness::changed_lines::ChangedLines;
use testwright_fuzz::{bounded_target, texts};
use testwright_sandboxes::repository::touched_paths;
use testwright_tools::tools::submission::Change;
use testwright_tools::workspace::{FileChange, patch};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let [Some(first), second, name] = texts(data) else {
        return;
    };
    let lines = ChangedLines::from_patch(&first);
    let paths = touched_paths(&first);
    for file in lines.removed.keys().chain(lines.added.keys()) {
        assert!(paths.contains(file), "{file:?} is not among {paths:?}");
    }
    let Some(second) = second else {
        return;
    };
    let name = name.unwrap_or_default();
    if name.split('/').any(|part| part.is_empty()) || name.contains('\0') {
        return;
    }
    let changed = FileChange {
        path: format!("{name}.py"),
        change: Change::Modified,
        base: Some(first.clone().into_bytes()),
        now: Some(second.clone().into_bytes()),
        base_mode: Some(0o100_644),
        mode: Some(0o100_644),
        oversized: None,
    };
    let written = patch(std::slice::from_ref(&changed));
    if first == second || first.contains('\0') || second.contains('\0') {
        return;
    }
    assert!(touched_paths(&written).contains(&changed.path), "{written}");
    let lines = ChangedLines::from_patch(&written);
    let without = |text: &str, gone: Option<&BTreeSet<u32>>| -> Vec<String> {
        let numbered = (1..).zip(text.split_inclusive('\n'));
        numbered
            .filter(|(number, _)| gone.is_none_or(|gone| !gone.contains(number)))
            .map(|(_, line)| line.to_owned())
            .collect()
    };
    assert_eq!(
        without(&first, lines.removed.get(&changed.path)),
        without(&second, lines.added.get(&changed.path)),
        "{written}"
    );
});
