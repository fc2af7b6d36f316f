#![allow(clippy::unwrap_used)]
use super::*;
use crate::error::ErrorKind;

fn read(text: &str) -> Result<References> {
    references(text, &BTreeMap::new())
}

#[test]
fn images_of_all_stages_are_listed() {
    let text = "# syntax=docker/dockerfile:1\nARG VERSION=3.11\nARG IMAGE=\"python:${VERSION}\"\n\
                FROM --platform=linux/amd64 $IMAGE AS Base\nRUN a && \\\n    # why\n    b\n\
                from base as second\nCOPY --from=ghcr.io/astral-sh/uv:0.5 /uv /bin/\nCOPY --from=base /a /b\n\
                COPY --from=0 /a /b\n";
    let references = read(text).unwrap();
    assert_eq!(
        references.images,
        ["python:3.11", "ghcr.io/astral-sh/uv:0.5"]
    );
    assert_eq!(references.base.as_deref(), Some("python:3.11"));
    assert!(!references.copies_files);
    let args = BTreeMap::from([("VERSION".to_owned(), "3.12".to_owned())]);
    assert_eq!(
        super::references(text, &args).unwrap().images[0],
        "python:3.12"
    );
}

#[test]
fn copies_of_files_are_noticed() {
    let text = "FROM scratch\nCOPY --chown=1 a b\n";
    let references = read(text).unwrap();
    assert!(references.copies_files && references.base.is_none());
    assert!(read("FROM x\nONBUILD COPY . .\n").unwrap().copies_files);
    assert!(read("FROM x\nADD a.tar.gz /\n").unwrap().copies_files);
}

#[test]
fn hidden_images_are_found_or_refused() {
    for text in [
        "FROM \\\n  testwright/state:x",
        "FROM\\\n testwright/state:x",
        "ARG A=testwright/st\nARG B=ate:x\nFROM $A${B}",
        "FROM ${NONE:-testwright/state:x}",
        "FROM x\nONBUILD COPY --from=testwright/state:x / /",
        "FROM x AS testwright\nCOPY --link --from=testwright/state:x / /",
    ] {
        let images = read(text).unwrap().images;
        assert_eq!(images.last().unwrap(), "testwright/state:x", "{text}");
    }
    for text in [
        "# escape=`\nFROM x",
        "FROM x\nRUN a \\\\\nFROM y",
        "FROM x\nRUN a \\\n  # b\nFROM y",
        "FROM ${X:+y}",
        "FROM \"x\"",
        "FROM $NONE",
        "FROM x\nCOPY --from=$Y / /",
        "FROM x\nADD https://example.org/a /",
        "FROM x\nADD $URL /",
        "FROM x\nADD [\"http\\u003a//example.org/a\", \"/\"]",
    ] {
        assert_eq!(read(text).unwrap_err().kind, ErrorKind::Input, "{text}");
    }
}
