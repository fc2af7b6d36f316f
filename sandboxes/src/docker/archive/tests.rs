#![allow(clippy::unwrap_used)]
use futures::StreamExt;

use super::*;

fn ids(uid: u64, gid: u64) -> Ids {
    Ids { uid, gid }
}

#[test]
fn users_are_parsed() {
    assert_eq!(Ids::parse("1000"), Some(ids(1000, 1000)));
    assert_eq!(Ids::parse("1:2"), Some(ids(1, 2)));
    assert_eq!(Ids::parse("alice"), None);
}

#[test]
fn file_archive_includes_parent_folders() {
    let tar = file(Path::new("a/b/c.txt"), b"text", 0o640, ids(7, 8)).unwrap();
    let mut archive = tar::Archive::new(&tar[..]);
    let mut listing = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let header = entry.header();
        let (uid, mode) = (header.uid().unwrap(), header.mode().unwrap());
        listing.push(format!("{} {uid} {mode:o}", path.trim_end_matches('/')));
    }
    assert_eq!(listing, ["a 7 755", "a/b 7 755", "a/b/c.txt 7 640"]);
}

#[tokio::test]
async fn archive_gets_new_folder_and_owner() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("in.tar");
    let long = format!("{}/file.py", "d".repeat(180));
    let mut builder = tar::Builder::new(Vec::new());
    let mut plain = header(tar::EntryType::Regular, 0o755, Ids::ROOT);
    plain.set_size(3);
    plain.set_mtime(12345);
    builder.append_data(&mut plain, &long, &b"abc"[..]).unwrap();
    let mut link = header(tar::EntryType::Symlink, 0o777, Ids::ROOT);
    builder
        .append_link(&mut link, "link", "../elsewhere")
        .unwrap();
    std::fs::write(&path, builder.into_inner().unwrap()).unwrap();

    let to = PathBuf::from("to");
    let chunks: Vec<_> = owned(&path, to, ids(1000, 1001)).collect().await;
    let tar: Vec<u8> = chunks
        .into_iter()
        .flat_map(|c| c.unwrap().to_vec())
        .collect();
    let mut archive = tar::Archive::new(&tar[..]);
    let mut seen = Vec::new();
    for entry in archive.entries().unwrap() {
        let entry = entry.unwrap();
        let h = entry.header();
        assert_eq!((h.uid().unwrap(), h.gid().unwrap()), (1000, 1001));
        let path = entry.path().unwrap().display().to_string();
        let link = entry.link_name().unwrap().map(|l| l.display().to_string());
        seen.push((
            path.trim_end_matches('/').to_owned(),
            h.mode().unwrap(),
            h.mtime().unwrap(),
            link,
        ));
    }
    assert_eq!(seen[1], (format!("to/{long}"), 0o755, 12345, None));
    assert_eq!(seen[2].0, "to/link");
    assert_eq!(seen[2].3.as_deref(), Some("../elsewhere"));
}

#[test]
fn oversized_sparse_entry_is_refused() {
    // GNU tar writes sparse files in this format: the real size, and the positions of data.
    let mut header = tar::Header::new_gnu();
    header.set_path("large").unwrap();
    header.set_entry_type(tar::EntryType::GNUSparse);
    header.set_mode(0o644);
    header.set_size(0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.set_real_size(1 << 40);
    gnu.sparse[0].set_offset(1 << 40);
    gnu.sparse[0].set_length(0);
    header.set_cksum();
    let mut tar = header.as_bytes().to_vec();
    tar.extend([0; 1024]);
    assert!(first(&tar).is_err());
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("in.tar");
    std::fs::write(&path, tar).unwrap();
    let written = rewrite(&path, Path::new("to"), Ids::ROOT, io::sink());
    assert!(written.is_err());
}

#[tokio::test]
async fn broken_archive_fails_the_stream() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("in.tar");
    std::fs::write(&path, [b'x'; 1024]).unwrap();
    let chunks: Vec<_> = owned(&path, PathBuf::new(), Ids::ROOT).collect().await;
    assert!(chunks.iter().any(|chunk| chunk.is_err()));
}
