//! Patches applied by git. The input is a file before and after and its name, divided by the byte 0xff. The written
//! diff, applied by git, must give the new file. A third part is applied unchanged, and must write nothing outside the
//! folder.
#![no_main]

use testwright_fuzz::{bounded_target, folder, texts};
use testwright_sandboxes::repository::{Files, Tree, apply};
use testwright_tools::tools::submission::Change;
use testwright_tools::workspace::{FileChange, patch};

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let parts: Vec<&[u8]> = data.splitn(3, |byte| *byte == 0xff).collect();
    let [first, second, name] = parts[..] else {
        return;
    };
    let [Some(name), foreign] = texts(name) else {
        return;
    };
    let odd = |part: &str| part.is_empty() || part == "." || part == ".." || part.eq_ignore_ascii_case(".git");
    if name.split('/').any(odd) || name.contains('\0') || name.len() > 200 {
        return;
    }
    let archive = folder().join("source.tar");
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(first.len() as u64);
    builder.append_data(&mut header, &name, first).expect("an entry");
    std::fs::write(&archive, builder.into_inner().expect("an archive")).expect("a file");
    let tree = Tree::open(&archive).expect("a tree");
    if let Some(foreign) = foreign {
        if let Ok(Ok(applied)) = apply(&tree, &Files::new(), &foreign) {
            assert!(applied.files.keys().all(|path| !path.split('/').any(odd)));
        }
        return;
    }
    if first == second {
        return;
    }
    let written = patch(&[FileChange {
        path: name.clone(),
        change: Change::Modified,
        base: Some(first.to_vec()),
        now: Some(second.to_vec()),
        base_mode: Some(0o100_644),
        mode: Some(0o100_644),
        oversized: None,
    }]);
    let applied = apply(&tree, &Files::new(), &written).expect("git runs");
    let applied = applied.unwrap_or_else(|reason| panic!("{reason}\n{written}"));
    assert!(applied.notes.is_empty(), "{written}");
    let file = applied.files.get(&name).and_then(Option::as_ref);
    assert_eq!(file.map(|file| file.content.as_slice()), Some(second), "{written}");
});
