//! Tar archives: as old code (on the host and in the sandbox), and as sent by an engine.
#![no_main]

use testwright_fuzz::{bounded_target, file};
use testwright_sandboxes::docker::archive::{Ids, first, rewrite};
use testwright_sandboxes::repository::Tree;
use testwright_tools::workspace::Archive;

bounded_target!(fixed: 32 << 20, per_byte: 512, |data: &[u8]| {
    let path = file("source.tar", data);
    if let Ok(tree) = Tree::open(&path) {
        let paths: Vec<&str> = tree.paths().take(16).collect();
        for path in paths {
            if let Ok(Some(content)) = tree.read(path) {
                assert!(content.len() <= data.len());
            }
            let _ = tree.file(path);
        }
    }
    if let Ok(archive) = Archive::open(&path) {
        for (path, entry) in archive.entries().iter().take(16) {
            assert!(path.is_relative() && !path.starts_with(".."));
            if let Ok(content) = archive.content(entry) {
                assert!(content.len() <= data.len());
            }
        }
    }
    let _ = first(data);
    let mut out = Vec::new();
    let folder = std::path::Path::new("testbed");
    if rewrite(&path, folder, Ids { uid: 1000, gid: 1000 }, &mut out).is_ok() {
        assert!(out.len() <= 4 * data.len() + 10_240, "{} bytes of {}", out.len(), data.len());
        for entry in tar::Archive::new(&out[..]).entries().expect("entries") {
            let entry = entry.expect("an entry that was written");
            assert!(entry.path_bytes().starts_with(b"testbed"));
            assert_eq!(entry.header().uid().ok(), Some(1000));
        }
    }
});
