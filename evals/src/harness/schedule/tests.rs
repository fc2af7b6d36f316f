use super::*;

#[test]
fn workers_are_limited_by_memory_and_disk() {
    let giga = 1 << 30;
    let each = [4 * giga, 2 * giga];
    assert_eq!(workers(2, Some(20 * giga), None, each).note, None);
    let few = workers(8, Some(9 * giga), Some(100 * giga), each);
    assert_eq!(few.number, 2);
    assert_eq!(
        few.note.as_deref(),
        Some("using 2 of 8 workers: each needs up to 4.0 GiB of memory, and 9.0 GiB are free")
    );
    let disk = workers(8, Some(90 * giga), Some(7 * giga), each);
    assert!(disk.note.is_some_and(|note| note.contains("disk")));
    assert_eq!(workers(1, Some(1), Some(1), each).number, 1);
}
