#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn only_small_regular_files_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("a"), "abc").unwrap();
    std::os::unix::fs::symlink("a", path("link")).unwrap();
    nix::unistd::mkfifo(&path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    File::create(path("sparse"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    assert_eq!(read(&path("a"), 3).unwrap(), Ok(b"abc".to_vec()));
    assert_eq!(read(&path("a"), 2).unwrap(), Err(UnreadReason::TooLarge(3)));
    assert_eq!(read(&path("link"), 3).unwrap(), Ok(b"abc".to_vec()));
    assert!(read_itself(&path("link"), 3).is_err());
    assert_eq!(
        read(&path("pipe"), 3).unwrap(),
        Err(UnreadReason::NotRegular)
    );
    assert_eq!(
        read(folder.path(), 3).unwrap(),
        Err(UnreadReason::NotRegular)
    );
    assert_eq!(
        read(&path("sparse"), 3).unwrap(),
        Err(UnreadReason::TooLarge(1 << 40))
    );
    assert!(read(&path("none"), 3).is_err());
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
    assert_eq!(
        read(&path("socket"), 3).unwrap(),
        Err(UnreadReason::NotRegular)
    );
    // These have no size and no end.
    assert_eq!(
        read(Path::new("/dev/zero"), 3).unwrap(),
        Err(UnreadReason::NotRegular)
    );
}
