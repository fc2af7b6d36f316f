#![allow(clippy::unwrap_used)]
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn links_are_not_followed() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path();
    write_below(root, "logs/a/b.log", b"one").unwrap();
    write_below(root, "logs/a/b.log", b"two").unwrap();
    assert_eq!(read_below(root, "logs/a/b.log").unwrap(), b"two");
    symlink(other.path(), root.join("logs/out")).unwrap();
    assert!(write_below(root, "logs/out/x", b"x").is_err());
    assert!(!other.path().join("x").exists());
    std::fs::write(other.path().join("secret"), "secret").unwrap();
    assert!(read_below(root, "logs/out/secret").is_err());
    symlink(other.path().join("secret"), root.join("logs/secret")).unwrap();
    assert!(read_below(root, "logs/secret").is_err());
    write_below(root, "logs/secret", b"log").unwrap();
    let secret = std::fs::read(other.path().join("secret")).unwrap();
    assert_eq!(secret, b"secret");
    for path in ["", "/etc/passwd", "../x", "logs/../../x", "./x"] {
        assert!(write_below(root, path, b"x").is_err(), "{path}");
    }
}
