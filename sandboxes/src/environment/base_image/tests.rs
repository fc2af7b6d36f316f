#![allow(clippy::unwrap_used)]
use super::*;

#[test]
fn context_holds_files_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let (from, to) = (folder.path().join("from.tar"), folder.path().join("to.tar"));
    let mut builder = tar::Builder::new(File::create(&from).unwrap());
    for path in ["a/Dockerfile", "a/b/c", "ab", "d"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(1);
        builder.append_data(&mut header, path, &b"x"[..]).unwrap();
    }
    builder.into_inner().unwrap();
    write_context(
        Some(from.as_path()),
        "a",
        Some("FROM x\n"),
        File::create(&to).unwrap(),
    )
    .unwrap();
    let mut paths = Vec::new();
    for entry in tar::Archive::new(File::open(&to).unwrap())
        .entries()
        .unwrap()
    {
        paths.push(entry.unwrap().path().unwrap().display().to_string());
    }
    assert_eq!(paths, ["Dockerfile", "b/c", OUTSIDE]);
}

#[test]
fn dockerfile_is_found_in_its_context() {
    let mut image = ImageSource {
        path: Some("docker/Dockerfile".to_owned()),
        context: "docker".to_owned(),
        ..ImageSource::default()
    };
    let copying = References {
        copies_files: true,
        ..References::default()
    };
    assert_eq!(image.path_in_context(&copying), "Dockerfile");
    assert_eq!(image.path_in_context(&References::default()), OUTSIDE);
    image.context = "doc".to_owned();
    assert_eq!(image.path_in_context(&copying), OUTSIDE);
}
