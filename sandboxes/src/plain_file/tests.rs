#![allow(clippy::unwrap_used)]
use std::io::Write as _;
use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::*;

const MAX: u64 = 1000;

#[test]
fn special_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("plain"), "text").unwrap();
    symlink(at("plain"), at("link")).unwrap();
    symlink("/dev/zero", at("zero")).unwrap();
    mkfifo(&at("pipe"), Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    let problem = |name: &str, links| match read(&at(name), links, MAX) {
        Ok(bytes) => panic!("{name}: {} bytes", bytes.len()),
        Err(error) => error.to_string(),
    };
    assert_eq!(problem("link", Links::Refuse), "it is a symbolic link");
    assert_eq!(problem(".", Links::Refuse), "it is a folder");
    for name in ["pipe", "socket", "zero"] {
        assert_eq!(problem(name, Links::Follow), NOT_PLAIN, "{name}");
    }
    assert_eq!(read_text(&at("link"), Links::Follow, MAX).unwrap(), "text");
    let missing = read(&at("missing"), Links::Refuse, MAX).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NotFound);
}

#[test]
fn oversized_sparse_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sparse");
    File::create(&path).unwrap().set_len(MAX + 1).unwrap();
    let error = read(&path, Links::Refuse, MAX).unwrap_err().to_string();
    assert_eq!(error, "it has 1001 bytes, and the limit is 1000");
    // A file can grow after it was opened.
    let endless = File::open("/dev/zero").unwrap();
    assert!(read_all(endless, MAX).is_err());
}

#[test]
fn long_and_incomplete_lines_are_rejected() {
    let mut lines = LineReader::new(&b"one\n\ntwo\nthr"[..]);
    let mut read = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        read.push(line.to_vec());
    }
    assert_eq!(read, [&b"one"[..], b"", b"two"]);
    assert_eq!(lines.complete_bytes(), 9);
    assert_eq!(lines.partial_line(), b"thr");

    let mut long = vec![b'x'; MAX_LINE];
    long.push(b'\n');
    assert_eq!(
        LineReader::new(&long[..])
            .next_line()
            .unwrap()
            .unwrap()
            .len(),
        MAX_LINE
    );
    long.insert(0, b'x');
    let error = LineReader::new(&long[..])
        .next_line()
        .unwrap_err()
        .to_string();
    assert_eq!(error, "line 1 has more than 16777216 bytes, the limit");
    let endless = BufReader::new(File::open("/dev/zero").unwrap());
    assert!(LineReader::new(endless).next_line().is_err());
}

#[test]
fn pipe_with_writer_is_read() {
    let (reader, mut writer) = io::pipe().unwrap();
    let path = format!("/dev/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
    let writing = std::thread::spawn(move || {
        for part in ["one ", "two"] {
            writer.write_all(part.as_bytes()).unwrap();
        }
    });
    assert_eq!(read_user_file(path.as_ref(), MAX).unwrap(), b"one two");
    writing.join().unwrap();

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    mkfifo(&path, Mode::S_IRWXU).unwrap();
    let pipe = open_any(&path, Links::Follow).unwrap();
    let silent = read_pipe(pipe, MAX, Duration::from_millis(1)).unwrap_err();
    assert_eq!(silent.to_string(), "it is a pipe without a writer");
    let zero = read_user_file("/dev/zero".as_ref(), MAX).unwrap_err();
    assert_eq!(zero.to_string(), NOT_PLAIN);
}
