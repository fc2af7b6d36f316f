//! Tests of hostile patches that are applied on the host.

use testwright_sandboxes::repository::{Files, apply, apply_check};

use super::*;

/// A patch that git rejects but GNU `patch` may accept, because the first hunk does not match exactly.
const FUZZY: &str = "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n nothing like it\n-a = 1\n+a = 2\n";

/// Applies a patch with a separate temporary folder, and checks that no files remain around it.
fn applied(scene: &Scene, source: &Source, patch: &str) -> std::result::Result<Files, String> {
    let tree = source.tree().unwrap();
    let patch = patch.to_owned();
    let _ = scene;
    in_time("apply", move || {
        apply(&tree, &Files::new(), &patch)
            .unwrap()
            .map(|applied| applied.files)
    })
}

#[test]
fn patch_writes_nothing_outside() {
    let scene = Scene::new();
    let work = scene.repository();
    let target = scene.path("target");
    std::fs::create_dir_all(&target).unwrap();
    std::os::unix::fs::symlink(&target, work.join("out")).unwrap();
    commit(&work, "a link");
    let source = scene.open(&work, None).unwrap();
    let there = target.display().to_string();
    let new = |path: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+evil\n"
        )
    };
    let link = |mode: &str| {
        format!(
            "diff --git a/ln b/ln\nnew file mode {mode}\n--- /dev/null\n+++ b/ln\n@@ -0,0 +1 @@\n+{there}\n\\ No newline at end of file\n"
        )
    };
    let mut patches = vec![
        new("../evil"),
        new("../../../../../../../../tmp/evil"),
        new(&format!("{there}/evil")),
        new("out/evil"),
        new(".git/hooks/evil"),
        new("pkg/../../evil"),
        format!("--- {there}/evil\n+++ {there}/evil\n@@ -0,0 +1 @@\n+evil\n"),
        format!("Index: {there}/evil\n--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+evil\n"),
        "diff --git a/a.py b/../evil\nrename from a.py\nrename to ../evil\n".to_owned(),
        "diff --git a/a.py b/out/evil\ncopy from a.py\ncopy to out/evil\n".to_owned(),
    ];
    for mode in ["120000", "0120000", "120777", "00120644", "\t120000"] {
        patches.push(format!("{}{}", link(mode), new("ln/evil")));
    }
    for patch in patches {
        for patch in [patch.clone(), format!("{FUZZY}{patch}")] {
            if let Ok(files) = applied(&scene, &source, &patch) {
                for path in files.keys() {
                    assert!(!path.contains("..") && !path.starts_with('/'), "{path}");
                }
            }
            let _ = apply_check(&source, &patch).unwrap();
            let entries: Vec<_> = std::fs::read_dir(&target).unwrap().collect();
            assert!(entries.is_empty(), "written by:\n{patch}");
            assert!(!std::env::temp_dir().join("evil").exists());
        }
    }
}

/// GNU `patch` also recognizes the mode of a link in spellings that git never writes.
#[test]
fn fuzzy_patch_creates_no_links() {
    let scene = Scene::new();
    let work = scene.repository();
    let source = scene.open(&work, None).unwrap();
    for mode in ["120000", "0120000", "\t120000", "120777"] {
        let patch = format!(
            "{FUZZY}diff --git a/ln b/ln\nnew file mode {mode}\n--- /dev/null\n+++ b/ln\n@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
        );
        let result = applied(&scene, &source, &patch);
        assert!(result.is_err(), "{mode}: {result:?}");
    }
}

#[test]
fn patch_runs_no_editor() {
    let scene = Scene::new();
    let work = scene.repository();
    let source = scene.open(&work, None).unwrap();
    let mark = scene.path("mark-ed");
    for script in ["1a\n", "0a\n", "1,1c\n", "1i\n"] {
        for tail in ["", FUZZY] {
            let patch = format!(
                "--- a/a.py\n+++ b/a.py\n{script}!touch {}\n.\nw\nq\n{tail}",
                mark.display()
            );
            let _ = applied(&scene, &source, &patch);
        }
    }
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn small_patch_cannot_write_much() {
    let scene = Scene::new();
    let work = scene.repository();
    write(&work, "large.txt", &"large\n".repeat(4 << 20));
    commit(&work, "a large file");
    let source = scene.open(&work, None).unwrap();
    // Copies 24 MiB four hundred times.
    let copies: Vec<_> = (0..400)
        .map(|i| {
            format!(
                "diff --git a/large.txt b/c{i}.txt\nsimilarity index 100%\ncopy from large.txt\ncopy to c{i}.txt\n"
            )
        })
        .collect();
    let result = applied(&scene, &source, &copies.concat()).map(|files| files.len());
    let reason = result.unwrap_err();
    assert!(reason.contains("MiB"), "{reason}");
    // Creates 64 MiB of zeros from a few kilobytes, five times.
    let zeros = scene.path("zeros");
    write(&zeros, "a", "");
    git(&zeros, &["init", "-q"]);
    commit(&zeros, "empty");
    for i in 0..5 {
        let file = std::fs::File::create(zeros.join(format!("{i}.bin"))).unwrap();
        file.set_len(64 << 20).unwrap();
    }
    git(&zeros, &["add", "-A"]);
    let patch = git(&zeros, &["diff", "--cached", "--binary"]) + "\n";
    assert!(patch.len() < 2 << 20, "{}", patch.len());
    let result = applied(&scene, &source, &patch).map(|files| files.len());
    let reason = result.unwrap_err();
    assert!(reason.contains("MiB"), "{reason}");
}

#[test]
fn deep_patch_is_handled() {
    let scene = Scene::new();
    let work = scene.repository();
    let source = scene.open(&work, None).unwrap();
    let deep = "d/".repeat(1900) + "f.py";
    let patch = format!(
        "diff --git a/{deep} b/{deep}\nnew file mode 100644\n--- /dev/null\n+++ b/{deep}\n@@ -0,0 +1 @@\n+x\n"
    );
    let files = applied(&scene, &source, &patch);
    assert!(files.is_err() || files.unwrap().contains_key(&deep));
    let long = "n".repeat(70_000);
    assert!(applied(&scene, &source, &patch.replace("f.py", &long)).is_err());
}

#[test]
fn oversized_patch_is_rejected() {
    let scene = Scene::new();
    let work = scene.repository();
    let source = scene.open(&work, None).unwrap();
    let patch = format!(
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+{}\n",
        "x".repeat(200 << 20)
    );
    let result = applied(&scene, &source, &patch).map(|files| files.len());
    let reason = result.unwrap_err();
    assert!(
        reason.len() < 300 && reason.contains("MiB"),
        "{}",
        reason.len()
    );
    let reason = apply_check(&source, &patch).unwrap().unwrap_err();
    assert!(reason.contains("MiB"));
}

/// A relative entry in PATH leads into the current folder, and into the one in which a patch is applied.
#[test]
fn relative_path_entries_are_ignored() {
    let name = "security::git::patches::relative_path_entries_are_ignored";
    const PROGRAMS: [&str; 3] = ["git", "patch", "sh"];
    let patch = |context: &str, more: &str| -> String {
        let places = ["", "bin/"].iter();
        let paths = places.flat_map(|place| PROGRAMS.map(|name| format!("{place}{name}")));
        paths
            .map(|path| {
                format!(
                    "--- a/{path}\n+++ b/{path}\n@@ -5,4 +5,5 @@\n 1\n 2\n{context}\n 4\n+{more}\n"
                )
            })
            .collect()
    };
    // The patches apply with git, with whitespace ignored, and with fuzz.
    let patches = [patch(" 3", "5"), patch("  3", "6"), patch(" drei", "7")];
    if let Some(work) = std::env::var_os("TESTWRIGHT_TEST_INSIDE") {
        let scene = Scene::new();
        let source = scene.open(Path::new(&work), None).unwrap();
        let tree = source.tree().unwrap();
        for patch in patches {
            apply(&tree, &Files::new(), &patch).unwrap().unwrap();
        }
        return;
    }
    let scene = Scene::new();
    let work = scene.repository();
    for program in PROGRAMS {
        let trap = std::fs::read_to_string(scene.trap(program)).unwrap();
        for path in [work.join(program), work.join("bin").join(program)] {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, format!("{trap}\n1\n2\n3\n4\n")).unwrap();
            set_mode(&path, 0o755);
        }
    }
    commit(&work, "programs");
    let path = std::env::var("PATH").unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("TESTWRIGHT_TEST_INSIDE", &work)
        .env("PATH", format!(":.:bin:{path}"))
        .current_dir(&work)
        .output()
        .unwrap();
    assert_eq!(scene.marks(), [""; 0]);
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
}
