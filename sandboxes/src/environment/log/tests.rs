#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn endless_line_is_cut() {
    let mut lines = LogLines::default();
    for _ in 0..100 {
        assert_eq!(lines.push(&[b'x'; 16 << 10]), "");
        assert!(lines.line.len() <= MAX_LINE_BYTES);
    }
    let whole = lines.push(b"y\nnext\nla");
    let (first, others) = whole.split_once('\n').unwrap();
    let left_out = 100 * (16 << 10) + 1 - MAX_LINE_BYTES;
    assert!(first.starts_with(&"x".repeat(MAX_LINE_BYTES)) && first.len() < MAX_LINE_BYTES + 100);
    assert!(
        first.contains(&format!("{left_out} bytes")),
        "{}",
        &first[MAX_LINE_BYTES..]
    );
    assert_eq!(others, "next\n");
    assert_eq!(lines.push(b"st"), "");
    assert_eq!(
        (lines.rest(), lines.rest()),
        ("last\n".into(), String::new())
    );
    assert_eq!(lines.push(b"\n\nx\n"), "\n\nx\n");
}

#[test]
fn long_log_keeps_beginning_and_end() {
    let file = tempfile::tempfile().unwrap();
    let mut log = BoundedFile::new(file, 100, 50);
    let mut all = String::new();
    for number in 0..1000 {
        let line = format!("line {number}\n");
        log.write(line.as_bytes()).unwrap();
        all.push_str(&line);
        let length = log.file.metadata().unwrap().len();
        assert!(length < 100 + 2 * 50 + 60, "{length}");
    }
    log.write(&[b'z'; 10_000]).unwrap();
    log.write(b"\nthe end\n").unwrap();
    all.push_str(&"z".repeat(10_000));
    all.push_str("\nthe end\n");
    let mut text = String::new();
    log.file.rewind().unwrap();
    log.file.read_to_string(&mut text).unwrap();
    let (beginning, rest) = text.split_once("\n== ").unwrap();
    let (number, end) = rest.split_once(" bytes omitted ==\n").unwrap();
    assert!(all.starts_with(beginning) && beginning.len() == 100);
    assert!(all.ends_with(end) && end.len() >= 50);
    let number: usize = number.parse().unwrap();
    assert_eq!(beginning.len() + number + end.len(), all.len());
}

#[test]
fn times_of_steps_add_up_to_total() {
    let begun = Instant::now();
    let seconds = |n: u64| begun + Duration::from_secs(n);
    let mut times = Times::since(begun);
    assert_eq!(times.take_gap(seconds(3)), Some(Duration::from_secs(3)));
    // A step of two seconds, and a short gap that counts later.
    times.last_end = seconds(5);
    let short = Duration::from_millis(20);
    assert_eq!(times.take_gap(seconds(5) + short), None);
    times.last_end = seconds(6);
    let gap = times.take_gap(seconds(7));
    assert_eq!(gap, Some(Duration::from_secs(1) + short));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.log");
    let log = Log::create(path.clone(), Vec::new()).unwrap();
    let begun = log.begin_step();
    assert!(log.end_step(begun) < 1.0);
    log.finish();
    let text = std::fs::read_to_string(path).unwrap();
    assert!(text.ends_with("== the build took 0.0 s\n"), "{text}");
}

#[test]
fn short_log_is_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("logs/x.log");
    let log = Log::create(path.clone(), vec!["me:secret".to_owned()]).unwrap();
    log.line("one me:secret");
    log.line("two");
    assert_eq!(std::fs::read_to_string(path).unwrap(), "one ***\ntwo\n");
}
