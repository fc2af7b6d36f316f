//! Tests of forged objects: a clone of a real project with other content under the same hashes.

use std::io::Write as _;

use testwright_sandboxes::error::ErrorKind;

use super::*;

/// Stores other content under the name of a loose object.
fn forge(repository: &Path, name: &str, kind: &str, content: &[u8]) {
    let path = repository.join(format!(".git/objects/{}/{}", &name[..2], &name[2..]));
    set_mode(&path, 0o644);
    let file = std::fs::File::create(path).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(file, flate2::Compression::default());
    write!(zlib, "{kind} {}\0", content.len()).unwrap();
    zlib.write_all(content).unwrap();
    zlib.finish().unwrap();
}

fn raw(repository: &Path, kind: &str, name: &str) -> Vec<u8> {
    let output = Command::new("git")
        .current_dir(repository)
        .args(["cat-file", kind, name])
        .output()
        .unwrap();
    assert!(output.status.success());
    output.stdout
}

/// Copies a repository byte for byte.
fn copy(scene: &Scene, from: &Path, name: &str) -> PathBuf {
    let to = scene.path(name);
    let status = Command::new("cp")
        .arg("-r")
        .args([from, &to])
        .status()
        .unwrap();
    assert!(status.success());
    to
}

#[test]
fn forged_objects_are_rejected() {
    // git itself verifies a commit when it looks it up.
    for kind in ["blob", "tree"] {
        let scene = Scene::new();
        let genuine = scene.repository();
        let hostile = copy(&scene, &genuine, "hostile");
        match kind {
            "blob" => {
                let name = git(&hostile, &["rev-parse", "HEAD:pkg/b.py"]);
                forge(&hostile, &name, kind, b"b = 'forged'\n");
            }
            _ => {
                let name = git(&hostile, &["rev-parse", "HEAD:pkg"]);
                let mut content = raw(&hostile, kind, &name);
                let at = content.windows(4).position(|w| w == b"b.py").unwrap();
                content[at] = b'c';
                forge(&hostile, &name, kind, &content);
            }
        }
        // Whichever repository is opened first, neither source may contain the forged content.
        let error = scene.open(&hostile, None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{kind}: {error}");
        assert!(
            error.to_string().contains("does not match its hash"),
            "{kind}: {error}"
        );
        let source = scene.open(&genuine, None).unwrap();
        assert_eq!(paths(&source), ["a.py", "pkg/b.py"], "{kind}");
        let tree = source.tree().unwrap();
        assert_eq!(
            tree.read("pkg/b.py").unwrap().unwrap(),
            b"b = 1\n",
            "{kind}"
        );
    }
}

#[test]
fn forged_history_does_not_describe_commit() {
    let scene = Scene::new();
    let genuine = scene.repository();
    git(&genuine, &["tag", "1.0"]);
    write(&genuine, "a.py", "a = 2\n");
    let second = commit(&genuine, "second");
    write(&genuine, "a.py", "a = 3\n");
    commit(&genuine, "third");
    let hostile = copy(&scene, &genuine, "hostile");
    // Its files and refs are the same, but its history does not contain the tag.
    let text = String::from_utf8(raw(&hostile, "commit", &second)).unwrap();
    let orphan: Vec<_> = text.lines().filter(|l| !l.starts_with("parent")).collect();
    forge(&hostile, &second, "commit", orphan.join("\n").as_bytes());
    let of = |repository: &Path| scene.open(repository, None).unwrap().describe;
    assert_eq!(of(&hostile), None);
    assert!(of(&genuine).unwrap().starts_with("1.0-2-"));
}
