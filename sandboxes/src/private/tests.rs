#![allow(clippy::unwrap_used)]

use super::*;

#[test]
fn folders_are_private_to_their_owner() {
    let place = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    let new = place.path().join("runs/one");
    create(&new).unwrap();
    assert_eq!((mode(&new), mode(new.parent().unwrap())), (0o700, 0o700));
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o755)).unwrap();
    create(&new).unwrap();
    assert_eq!(mode(&new), 0o755);
    create_closed(&new).unwrap();
    assert_eq!(mode(&new), 0o700);
}

#[test]
fn existing_gitignore_or_link_stays() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join(".gitignore");
    ignore_in_git(place.path()).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "*\n");
    std::fs::write(&file, "mine\n").unwrap();
    ignore_in_git(place.path()).unwrap();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(place.path().join("other"), &file).unwrap();
    ignore_in_git(place.path()).unwrap();
    assert!(!place.path().join("other").exists());
}

#[test]
fn cache_folders_are_closed_without_following_links() {
    let place = tempfile::tempdir().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    let (cache, other) = (place.path().join("cache"), place.path().join("other"));
    let folders = ["", "sources", "environments", "local", "local/states"];
    for folder in folders.map(|name| cache.join(name)).iter().chain([&other]) {
        std::fs::create_dir(folder).unwrap();
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
    }
    std::os::unix::fs::symlink(&other, cache.join("link")).unwrap();
    close_folders(&cache).unwrap();
    for name in folders {
        assert_eq!(mode(&cache.join(name)), 0o700, "{name}");
    }
    assert_eq!(mode(&other), 0o777);
}
