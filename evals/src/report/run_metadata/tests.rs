#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn metadata_survives_and_is_optional() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        RunMetadata::read(folder.path()).unwrap(),
        RunMetadata::default()
    );
    let metadata = RunMetadata {
        workers: Some(2),
        notes: vec!["slow disk".to_owned()],
        ..RunMetadata::default()
    };
    metadata.write(folder.path()).unwrap();
    assert_eq!(RunMetadata::read(folder.path()).unwrap(), metadata);
    std::fs::write(folder.path().join(FILE), "{\"workers\": 3, \"new\": 1}").unwrap();
    assert_eq!(RunMetadata::read(folder.path()).unwrap().workers, Some(3));
    std::fs::write(folder.path().join(FILE), "{").unwrap();
    let error = RunMetadata::read(folder.path()).unwrap_err().to_string();
    assert!(
        error.starts_with("read ") && error.contains(FILE),
        "{error}"
    );
}
