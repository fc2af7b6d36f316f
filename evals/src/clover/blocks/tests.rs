use super::*;

fn lines(files: &[(&str, &[u32])]) -> Lines {
    let set = |lines: &[u32]| lines.iter().copied().collect();
    files
        .iter()
        .map(|(path, lines)| ((*path).to_owned(), set(lines)))
        .collect()
}

#[test]
fn blocks_are_lines_of_a_single_test() {
    let tests = BTreeMap::from([
        (
            "test_x".to_owned(),
            lines(&[("a.py", &[2, 3, 4, 6, 7, 8, 12, 13]), ("b.py", &[1])]),
        ),
        ("test_y".to_owned(), lines(&[("a.py", &[8, 20])])),
    ]);
    let unique = unique_lines(&tests);
    assert_eq!(
        unique["test_x"],
        lines(&[("a.py", &[2, 3, 4, 6, 7, 12, 13]), ("b.py", &[1])])
    );
    assert_eq!(unique["test_y"], lines(&[("a.py", &[20])]));
    let file = FileLines {
        hit: [1, 2, 3, 4, 6, 7, 8, 12, 13].into(),
        missed: [14].into(),
    };
    let actual =
        blocks(&unique["test_x"], |path| (path == "a.py").then_some(&file)).unwrap_or_default();
    let expected = Block {
        path: "a.py".to_owned(),
        first: 2,
        last: 7,
        lines: vec![2, 3, 4, 6, 7],
        source: String::new(),
    };
    assert_eq!(actual, [expected]);
    let block = actual[0].clone().with_source("1\n2\n3\n4\n5\n6\n7\n8\n");
    assert_eq!(block.source, "2\n3\n4\n5\n6\n7");
    assert_eq!(
        blocks(&unique["test_y"], |_| Some(&file)),
        Err(DropReason::NoBlock)
    );
    assert!(are_covered(&actual, |_| Some(&file)));
    let less = FileLines {
        hit: [2, 3, 4, 7].into(),
        missed: [6].into(),
    };
    assert!(!are_covered(&actual, |_| Some(&less)));
    assert!(!are_covered(&actual, |_| None));
}

#[test]
fn blocks_in_too_many_files_are_rejected() {
    let run: Vec<u32> = (1..=5).collect();
    let file = FileLines {
        hit: run.iter().copied().collect(),
        missed: BTreeSet::new(),
    };
    let of = |files: usize| -> Lines {
        (0..files)
            .map(|n| (format!("f{n}.py"), run.iter().copied().collect()))
            .collect()
    };
    assert_eq!(
        blocks(&of(10), |_| Some(&file)).map(|list| list.len()),
        Ok(10)
    );
    assert_eq!(blocks(&of(11), |_| Some(&file)), Err(DropReason::ManyFiles));
}
