#![allow(clippy::unwrap_used)]

use std::path::Path;

use serde_json::json;

use super::*;
use crate::testing::Fixture;

/// Encodes a Python file that declares its encoding and has these words in a string.
fn declared(name: &str, words: &[u8]) -> Vec<u8> {
    let mut bytes = format!("# -*- coding: {name} -*-\nx = '").into_bytes();
    bytes.extend(words);
    bytes.extend(b"'\n");
    bytes
}

#[test]
fn declared_encodings_are_kept() {
    let cases: [(&str, &[u8], &str); 12] = [
        ("cp1252", b"\x93caf\xe9\x94", "“café”"),
        ("windows-1251", b"\xcf\xf0", "Пр"),
        ("koi8_r", b"\xf0\xd2", "Пр"),
        ("latin-1", b"\xe9\x80", "é\u{80}"),
        ("iso8859-15", b"\xa4", "€"),
        ("gbk", b"\xd6\xd0\xce\xc4", "中文"),
        ("euc_jp", b"\xc6\xfc\xcb\xdc", "日本"),
        ("shift_jis", b"\x93\xfa\x96{", "日本"),
        ("cp949", b"\xc7\xd1", "한"),
        ("big5", b"\xa4\xa4", "中"),
        ("utf-8", "中".as_bytes(), "中"),
        // Unknown tables are shown byte by byte.
        ("cp437", b"\x82", "\u{82}"),
    ];
    for (name, words, text) in cases {
        let path = Path::new("a.py");
        let bytes = declared(name, words);
        let file = TextFile::read(path, &bytes).unwrap();
        assert!(
            file.text.ends_with(&format!("x = '{text}'\n")),
            "{name}: {}",
            file.text
        );
        let changed = file.text.replace("x =", "y =");
        let expected = String::from_utf8_lossy(&bytes).replace("x =", "y =");
        let encoded = file.encode(path, &changed).unwrap();
        assert_eq!(String::from_utf8_lossy(&encoded), expected, "{name}");
        assert_eq!(file.encode(path, &file.text).unwrap(), bytes, "{name}");
    }
}

#[test]
fn characters_outside_the_encoding_are_refused() {
    for (name, letter) in [
        ("cp1252", "中"),
        ("latin-1", "€"),
        ("cp437", "é"),
        ("ascii", "é"),
    ] {
        let bytes = declared(name, b"");
        let file = TextFile::read(Path::new("a.py"), &bytes).unwrap();
        let error = file.encode(Path::new("a.py"), &format!("{}{letter}", file.text));
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains(&format!("which has no `{letter}`")),
            "{name}: {error}"
        );
    }
}

#[test]
fn new_declaration_decides_the_encoding() {
    let file = TextFile::read(Path::new("a.py"), b"x = 1\n").unwrap();
    let gbk = file
        .encode(Path::new("a.py"), "# coding=gbk\nx = '中'\n")
        .unwrap();
    assert_eq!(gbk, b"# coding=gbk\nx = '\xd6\xd0'\n");
    let file = TextFile::read(Path::new("a.py"), &gbk).unwrap();
    let utf8 = file.encode(Path::new("a.py"), "x = '中'\n").unwrap();
    assert_eq!(utf8, "x = '中'\n".as_bytes());
    // Only Python files are read as they declare.
    let notes = "# coding: gbk\n中\n".as_bytes();
    assert!(
        TextFile::read(Path::new("a.md"), notes)
            .unwrap()
            .text
            .contains('中')
    );
    // The first line is code, so the second declares nothing.
    let late = "x = 1\n# coding: gbk\ny = '中'\n".as_bytes();
    assert!(
        TextFile::read(Path::new("a.py"), late)
            .unwrap()
            .text
            .contains('中')
    );
}

#[test]
fn byte_order_marks_are_kept() {
    let cases: [(&str, &[u8]); 3] = [
        ("a.py", b"\xef\xbb\xbfx = 1\r\n"),
        ("a.txt", b"\xff\xfex\0 \0=\0 \x001\0\r\0\n\0"),
        ("a.txt", b"\xfe\xff\0x\0 \0=\0 \x001\0\r\0\n"),
    ];
    for (path, bytes) in cases {
        let file = TextFile::read(Path::new(path), bytes).unwrap();
        assert_eq!(file.text, "x = 1\n");
        assert_eq!(file.encode(Path::new(path), "x = 1\n").unwrap(), bytes);
    }
    assert!(TextFile::read(Path::new("a.txt"), b"\xff\xfe\0").is_err());
}

#[test]
fn undeclared_data_is_shown_byte_by_byte() {
    let file = TextFile::read(Path::new("a.txt"), b"caf\xe9\r\n").unwrap();
    assert_eq!(file.text, "café\n");
    let encoded = file.encode(Path::new("a.txt"), "un café\n").unwrap();
    assert_eq!(encoded, b"un caf\xe9\r\n");
    assert!(file.encode(Path::new("a.txt"), "thé à\n").is_err());
}

const CODE: &str = "def test_new():\n    assert 1\n";

/// Returns the bytes of a file after each editing tool has changed it.
fn edited(path: &str, before: &[u8]) -> Vec<Vec<u8>> {
    let calls = [
        ("insert_function", json!({"path": path, "code": CODE})),
        (
            "edit",
            json!({"path": path, "old": "x = 1\ny = 2", "new": "x = 1\ny = 3"}),
        ),
        (
            "edit_lines",
            json!({"path": path, "first": 3, "last": 3, "text": "y = 3\n"}),
        ),
        (
            "rewrite_function",
            json!({"path": path, "name": "f", "code": "def f():\n    return 2"}),
        ),
    ];
    let edit = |(tool, arguments)| {
        let mut f = Fixture::new(&[(path, before)]);
        f.text(tool, arguments);
        std::fs::read(f.workspace.root().join(path)).unwrap()
    };
    calls.into_iter().map(edit).collect()
}

#[test]
fn every_editing_tool_keeps_the_format() {
    let text = "# coding: CODEC\nx = 1\ny = 2\n\n\ndef f():\n    return 'WORD'\n";
    let formats: [(&str, &[u8], &[u8], &str); 5] = [
        ("utf-8", "é".as_bytes(), b"\xef\xbb\xbf", "\r\n"),
        ("cp1252", b"\x80", b"", "\r\n"),
        ("gbk", b"\xd6\xd0", b"", "\n"),
        ("latin-1", b"\xe9", b"", "\r"),
        ("utf-8", "é".as_bytes(), b"", "\r"),
    ];
    for (codec, word, mark, end) in formats {
        let text = text.replace("CODEC", codec).replace('\n', end);
        let (head, tail) = text.split_once("WORD").unwrap();
        let bytes = [mark, head.as_bytes(), word, tail.as_bytes()].concat();
        for (at, after) in edited("tests/test_a.py", &bytes).into_iter().enumerate() {
            assert!(after.starts_with(mark), "{codec} {at}");
            let is_kept = at == 3 || after.windows(word.len()).any(|part| part == word);
            assert!(is_kept, "{codec} {at}: {after:?}");
            let without_ends = String::from_utf8_lossy(&after).replace(end, "");
            assert!(
                !without_ends.contains(['\r', '\n']),
                "{codec} {at}: {without_ends:?}"
            );
        }
    }
}

#[test]
fn imports_follow_the_byte_order_mark() {
    let mut f = Fixture::new(&[("tests/test_a.py", b"\xef\xbb\xbffrom pkg import f\n")]);
    let code = format!("import pytest\n\n@pytest.mark.slow\n{CODE}");
    f.text(
        "insert_function",
        json!({"path": "tests/test_a.py", "code": code}),
    );
    let text = f.read("tests/test_a.py");
    assert!(text.starts_with("\u{feff}import pytest\n"), "{text:?}");
    assert_eq!(text.matches('\u{feff}').count(), 1);
}

#[test]
fn new_file_follows_its_neighbours() {
    let crlf: &[u8] = b"\xef\xbb\xbfx = 1\r\n";
    let mut f = Fixture::new(&[
        ("tests/test_a.py", crlf),
        ("tests/test_b.py", crlf),
        ("tests/data.txt", b"x\n"),
        ("src/a.py", b"x = 1\n"),
    ]);
    for tool in ["insert_function", "create_file", "edit"] {
        let text = match tool {
            "insert_function" => "code",
            "create_file" => "content",
            _ => "new",
        };
        for (path, expected) in [
            (
                format!("tests/test_{tool}.py"),
                "\u{feff}def test_new():\r\n    assert 1\r\n",
            ),
            (
                format!("tests/sub_{tool}/test_c.py"),
                "\u{feff}def test_new():\r\n    assert 1\r\n",
            ),
            (format!("src/{tool}.py"), CODE),
        ] {
            f.text(tool, json!({"path": path, text: CODE}));
            assert_eq!(f.read(&path), expected, "{path}");
        }
    }
    f.text(
        "create_file",
        json!({"path": "tests/more.txt", "content": "a\nb"}),
    );
    assert_eq!(f.read("tests/more.txt"), "a\nb\n");
}

#[test]
fn searches_find_text_in_any_encoding() {
    let gbk = declared("gbk", b"\xd6\xd0");
    let mut f = Fixture::new(&[
        ("a.py", gbk.as_slice()),
        ("b.py", b"a = 1\rb = 2\rmarked = 3\r"),
    ]);
    let answer = f.text("search", json!({"pattern": "中"}));
    assert!(answer.contains("2: x = '中'"), "{answer}");
    let answer = f.text("search", json!({"pattern": "marked"}));
    assert!(answer.contains("3: marked = 3"), "{answer}");
}
