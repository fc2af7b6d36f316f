#![allow(clippy::unwrap_used)]
use super::*;
use crate::report::sample;

#[test]
fn result_moves_with_its_logs() {
    let (there, here) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut result = sample::results(&["a"], 1, 1).remove(0);
    // The last digit of a float may change during serialization.
    result.seconds = crate::result::Seconds::default();
    let path = "logs/x/a/old.log";
    folder::write_below(there.path(), path, b"1 failed").unwrap();
    let names = [("old", path), ("new", "logs/x/a/gone.log")];
    result.logs = names.map(|(name, path)| (name.into(), path.into())).into();
    let packed = PortableResult::pack(there.path(), result.clone());
    let text = serde_json::to_string(&packed).unwrap();
    let packed: PortableResult = serde_json::from_str(&text).unwrap();
    assert_eq!(packed.clone().unpack(here.path()).unwrap(), result);
    let log = std::fs::read_to_string(here.path().join(path)).unwrap();
    assert_eq!(log, "1 failed");

    // A packed result from the database must not write any other files.
    let outside = PortableResult {
        logs: [("../outside".to_owned(), String::new())].into(),
        ..packed
    };
    assert!(outside.unpack(here.path()).is_err());
}
