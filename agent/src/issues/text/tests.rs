#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::io::Seek;

use super::*;

fn text(bytes: &[u8]) -> Issue {
    read(bytes, "x").unwrap()
}

fn parts(bytes: &[u8]) -> (String, String) {
    let issue = text(bytes);
    (issue.title, issue.body)
}

fn is(title: &str, body: &str) -> (String, String) {
    (title.to_owned(), body.to_owned())
}

fn refused(result: Result<Issue>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.render()
}

#[test]
fn first_heading_or_line_is_title() {
    assert_eq!(parts(b"# Title\n\nBody\n"), is("Title", "Body"));
    assert_eq!(
        parts(b"\n\n### Title ###x\nBody\nmore"),
        is("Title ###x", "Body\nmore")
    );
    assert_eq!(parts(b"Title\n=====\n\nBody"), is("Title", "Body"));
    assert_eq!(parts(b"Title"), is("Title", ""));
    assert_eq!(parts(b"Title\n\n    >>> f()\n"), is("Title", "    >>> f()"));
    assert_eq!(
        parts(b"```python\nf()\n```\n"),
        is("(no title)", "```python\nf()\n```")
    );
    for text in [
        "---\nlabel: bug\n---\nIt fails",
        "<!-- Search first -->\nIt fails",
    ] {
        assert_eq!(parts(text.as_bytes()), is("(no title)", text));
    }
    let long = "word ".repeat(100);
    let (title, body) = parts(long.as_bytes());
    assert_eq!((title.chars().count(), body.as_str()), (201, long.trim()));
}

#[test]
fn line_endings_and_encodings_are_normalized() {
    assert_eq!(parts(b"# T\r\n\r\na\r\nb\rc\r\n"), is("T", "a\nb\nc"));
    assert_eq!(parts("\u{feff}# T\nä".as_bytes()), is("T", "ä"));
    assert!(text("# T\nä".as_bytes()).notes.is_empty());

    let latin = text(b"# T\nna\xefve");
    assert_eq!(latin.body, "naïve");
    insta::assert_snapshot!(latin.notes.join("\n"), @"the issue is not UTF-8 (byte 7), so it is read as Latin-1");

    let utf16: Vec<u8> = "\u{feff}T\nä"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(parts(&utf16), is("T", "ä"));
}

#[test]
fn other_files_are_refused() {
    insta::assert_snapshot!(refused(read(b"\x7fELF\0\0".as_slice(), "toolbox")), @r"
    error: failed to read the issue in toolbox
      cause: it is not text: it contains NUL bytes
      hint: pass a Markdown or text file
    ");
    insta::assert_snapshot!(refused(read(b"".as_slice(), "standard input")), @r"
    error: failed to read the issue in standard input
      cause: it is empty
      hint: describe what happens and what should happen instead
    ");
    insta::assert_snapshot!(refused(read(b" \r\n\t".as_slice(), "blank.md")), @r"
    error: failed to read the issue in blank.md
      cause: it is empty
      hint: describe what happens and what should happen instead
    ");
}

#[test]
fn huge_issue_is_refused_unread() {
    struct Endless(u64);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            self.0 += buffer.len() as u64;
            assert!(self.0 < 64 << 20, "it goes on reading");
            buffer.fill(b'a');
            Ok(buffer.len())
        }
    }
    insta::assert_snapshot!(refused(read(Endless(0), "standard input")), @r"
    error: failed to read the issue in standard input
      cause: it has more than 1.0 MiB, but the maximum is 1.0 MiB
      hint: shorten it to a description, a short example and the expected result
    ");

    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.as_file_mut().set_len(100 << 20).unwrap();
    let message = refused(load_now(file.path().to_str().unwrap()));
    assert!(
        message.contains("it has 100.0 MiB, but the maximum is 1.0 MiB"),
        "{message}"
    );
    // A file of exactly the maximum length is read.
    file.as_file_mut().set_len(0).unwrap();
    file.as_file_mut().rewind().unwrap();
    std::fs::write(file.path(), vec![b'a'; 1 << 20]).unwrap();
    assert!(load_now(file.path().to_str().unwrap()).is_ok());
}

#[test]
fn missing_file_suggests_existing_ones() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("issue.md"), "x").unwrap();
    let error_for = |name: &str| {
        let path = folder.path().join(name);
        let message = refused(load_now(path.to_str().unwrap()));
        message.replace(folder.path().to_str().unwrap(), "DIR")
    };
    insta::assert_snapshot!(error_for("isue.md"), @r"
    error: failed to read the issue in DIR/isue.md
      cause: the file does not exist
      hint: did you mean DIR/issue.md?
    ");
    insta::assert_snapshot!(error_for("zebra.txt"), @r"
    error: failed to read the issue in DIR/zebra.txt
      cause: the file does not exist
      hint: pass the URL of an issue, or `-` for standard input
    ");
    insta::assert_snapshot!(error_for("nowhere/issue.md"), @r"
    error: failed to read the issue in DIR/nowhere/issue.md
      cause: the file does not exist
      hint: the folder DIR/nowhere does not exist either
    ");
    insta::assert_snapshot!(error_for(""), @r"
    error: failed to read the issue in DIR/
      cause: it is a folder
      hint: pass the file with the issue's text
    ");
}
