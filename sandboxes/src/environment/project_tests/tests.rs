use super::*;

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

#[test]
fn files_are_split_by_project() {
    let request = Request {
        files: texts(&["a/tests/test_x.py", "ab/test_y.py", "a/c/test_z.py"]),
        ..Request::default()
    };
    let parts = split(&request, &texts(&["a", "a/c"]));
    let parts: Vec<_> = parts
        .iter()
        .map(|(f, r)| (f.as_str(), r.files.clone()))
        .collect();
    assert_eq!(
        parts,
        [
            ("", texts(&["ab/test_y.py"])),
            ("a", texts(&["tests/test_x.py"])),
            ("a/c", texts(&["test_z.py"])),
        ]
    );
}

#[test]
fn sample_is_shared_by_files() {
    let request = Request {
        sample: Some(10),
        ..Request::default()
    };
    let tests = texts(&["a/test_1.py", "a/test_2.py", "a/test_3.py", "test_4.py"]);
    let parts = shares(&request, &texts(&["a", "b"]), &tests);
    let parts: Vec<_> = parts.iter().map(|(f, r)| (f.as_str(), r.sample)).collect();
    assert_eq!(parts, [("", Some(3)), ("a", Some(8))]);
}

#[test]
fn reports_name_files_of_repository() {
    let mut report = SmokeTestReport {
        collected: [
            ("tests/test_a.py".to_owned(), 1),
            ("a/test_b.py".to_owned(), 2),
        ]
        .into(),
        ..SmokeTestReport::default()
    };
    add_folder(&mut report, "a");
    let files: Vec<_> = report.collected.keys().map(String::as_str).collect();
    assert_eq!(files, ["a/test_b.py", "a/tests/test_a.py"]);
}
