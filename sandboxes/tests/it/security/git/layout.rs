//! Tests of git folders that contain pipes, outward links and files.

use std::os::unix::fs::symlink;

use testwright_sandboxes::error::ErrorKind;

use super::*;

/// Opens the repository in a thread, so that blocking on a pipe is noticed.
fn opened(scene: &Scene, location: &Path, revision: Option<&'static str>) -> Result<Source> {
    let (location, cache) = (location.to_str().unwrap().to_owned(), scene.cache());
    let what = location.clone();
    in_time(&what, move || {
        open(&location, revision, &cache, &OpenOptions::default())?.source()
    })
}

#[test]
fn pipes_in_git_folder_cannot_hang() {
    let files = [
        "HEAD",
        "config",
        "packed-refs",
        "shallow",
        "index",
        "refs/heads/other",
        "objects/info/alternates",
        "objects/info/commit-graph",
        "objects/pack/multi-pack-index",
        "objects/pack/pack-0000000000000000000000000000000000000000.idx",
        "info/exclude",
        "info/attributes",
        "info/grafts",
        "info/sparse-checkout",
        "commondir",
        "ORIG_HEAD",
        "logs/HEAD",
    ];
    for file in files {
        let scene = Scene::new();
        let work = scene.repository();
        let path = work.join(".git").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        fifo(&path);
        for revision in [None, Some("main"), Some("HEAD@{0}"), Some("ORIG_HEAD")] {
            let _ = opened(&scene, &work, revision);
        }
    }
}

#[test]
fn pipes_instead_of_objects_are_rejected() {
    for packed in [false, true] {
        let scene = Scene::new();
        let work = scene.repository();
        let objects = work.join(".git/objects");
        let object = if packed {
            git(&work, &["gc", "-q"]);
            let entries = std::fs::read_dir(objects.join("pack")).unwrap();
            let mut paths = entries.map(|e| e.unwrap().path());
            paths
                .find(|p| p.extension().is_some_and(|e| e == "pack"))
                .unwrap()
        } else {
            let hash = git(&work, &["rev-parse", "HEAD:a.py"]);
            objects.join(&hash[..2]).join(&hash[2..])
        };
        fifo(&object);
        let error = opened(&scene, &work, None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{}", error.message);
        assert!(error.message.contains("pipe"), "{}", error.message);
    }
}

#[test]
fn pipes_in_plain_folder_cannot_hang() {
    for (file, nested) in [
        (".gitignore", false),
        (".gitattributes", false),
        ("pkg/.gitignore", false),
        ("nested/.git/HEAD", true),
        ("nested/.git/config", true),
    ] {
        let scene = Scene::new();
        let folder = scene.path("plain");
        write(&folder, "a.py", "a = 1\n");
        write(&folder, "pkg/b.py", "b = 1\n");
        if nested {
            write(&folder, "nested/n.py", "");
            git(&folder.join("nested"), &["init", "-q"]);
            commit(&folder.join("nested"), "inner");
        }
        fifo(&folder.join(file));
        let error = opened(&scene, &folder, None).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input, "{file}: {}", error.message);
    }
}

#[test]
fn pipes_in_work_tree_cannot_hang() {
    for file in [".gitignore", ".gitattributes", "a.py"] {
        let scene = Scene::new();
        let work = scene.repository();
        fifo(&work.join(file));
        let source = opened(&scene, &work, None).unwrap();
        assert_eq!(paths(&source), ["a.py", "pkg/b.py"]);
    }
}

/// Creates a private repository of the user that an untrusted folder must not lead to.
fn private(scene: &Scene) -> PathBuf {
    let private = scene.path("private");
    write(&private, "secret.py", "KEY = 1\n");
    git(&private, &["init", "-q", "-b", "main"]);
    commit(&private, "secret");
    private
}

/// Checks that the opened source contains no private files.
fn shows_nothing_private(scene: &Scene, location: &Path) {
    for revision in [None, Some("main"), Some("HEAD")] {
        if let Ok(source) = opened(scene, location, revision) {
            let paths = paths(&source);
            assert!(!paths.contains(&"secret.py".to_owned()), "{paths:?}");
        }
    }
}

#[test]
fn separate_git_folder_must_name_work_tree() {
    let scene = Scene::new();
    let private = private(&scene);
    let evil = scene.path("evil");
    write(&evil, "e.py", "");
    for at in [
        private.join(".git").display().to_string(),
        "../private/.git".to_owned(),
    ] {
        write(&evil, ".git", &format!("gitdir: {at}\n"));
        shows_nothing_private(&scene, &evil);
    }
    // This git folder has the user's repository as its common folder.
    let own = evil.join("own");
    write(&own, "HEAD", "ref: refs/heads/main\n");
    write(&own, "commondir", "../../private/.git\n");
    write(
        &own,
        "gitdir",
        &format!("{}\n", evil.join(".git").display()),
    );
    write(&evil, ".git", "gitdir: own\n");
    shows_nothing_private(&scene, &evil);
    // This one is bare, without a `.git` file.
    let bare = scene.path("bare");
    std::fs::create_dir_all(bare.join("refs")).unwrap();
    std::fs::create_dir_all(bare.join("objects")).unwrap();
    write(&bare, "HEAD", "ref: refs/heads/main\n");
    write(&bare, "commondir", "../private/.git\n");
    shows_nothing_private(&scene, &bare);
    std::fs::remove_file(bare.join("commondir")).unwrap();
    write(
        &bare,
        "config",
        "[core]\n bare = false\n worktree = ../private\n",
    );
    shows_nothing_private(&scene, &bare);
    // This one is a link.
    std::fs::remove_file(evil.join(".git")).unwrap();
    symlink(private.join(".git"), evil.join(".git")).unwrap();
    shows_nothing_private(&scene, &evil);
}

#[test]
fn refs_cannot_leave_git_folder() {
    let scene = Scene::new();
    let private = private(&scene);
    let head = private.join(".git/refs/heads/main");
    for file in [
        "HEAD",
        "refs/heads/main",
        "packed-refs",
        "refs/heads",
        "refs",
    ] {
        let work = scene.path(&format!("evil-{}", file.replace('/', "-")));
        write(&work, "e.py", "");
        git(&work, &["init", "-q", "-b", "main"]);
        commit(&work, "evil");
        // Objects are found only by hash, so only refs could lead outside.
        write(
            &work,
            ".git/objects/info/alternates",
            &format!("{}\n", private.join(".git/objects").display()),
        );
        let path = work.join(".git").join(file);
        let target = match file {
            "HEAD" => head.clone(),
            "refs/heads" => head.parent().unwrap().to_owned(),
            "refs" => private.join(".git/refs"),
            _ => head.clone(),
        };
        if path.is_dir() {
            std::fs::remove_dir_all(&path).unwrap();
        } else if path.exists() {
            std::fs::remove_file(&path).unwrap();
        }
        symlink(target, &path).unwrap();
        shows_nothing_private(&scene, &work);
        // The same ref is also requested by name.
        let _ = std::fs::remove_file(&path);
        write(
            &work,
            ".git/HEAD",
            "ref: ../../private/.git/refs/heads/main\n",
        );
        shows_nothing_private(&scene, &work);
    }
}

#[test]
fn foreign_parent_repository_is_ignored() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root can change the owner of files");
        return;
    }
    let scene = Scene::new();
    let work = scene.repository();
    write(&work, "mine/m.py", "theirs = 1\n");
    commit(&work, "a folder that the user has, too");
    std::fs::remove_dir_all(work.join("mine")).unwrap();
    write(&work, "mine/m.py", "mine = 1\n");
    let status = Command::new("chown")
        .args(["-R", "12345:12345"])
        .arg(work.join(".git"))
        .status();
    assert!(status.unwrap().success());
    let source = scene.open(&work.join("mine"), None).unwrap();
    let text = source.tree().unwrap().text("m.py").unwrap();
    assert_eq!(text.as_deref(), Some("mine = 1\n"));
    // Opened by its own path, the repository is used.
    assert_eq!(
        paths(&scene.open(&work, Some("main")).unwrap()),
        ["a.py", "mine/m.py", "pkg/b.py"]
    );
}

#[test]
fn common_layouts_are_read() {
    let scene = Scene::new();
    let work = scene.repository();
    let head = git(&work, &["rev-parse", "HEAD"]);
    let expect = |location: &Path, revision: Option<&str>| {
        let source = scene.open(location, revision).unwrap();
        assert_eq!(paths(&source), ["a.py", "pkg/b.py"], "{location:?}");
        assert_eq!(source.commit.as_deref(), Some(head.as_str()));
        source
    };
    git(&work, &["tag", "-a", "v1.0", "-m", "tagged"]);
    git(&work, &["pack-refs", "--all"]);
    git(&work, &["branch", "loose"]);
    assert_eq!(expect(&work, None).describe.as_deref(), Some("v1.0"));
    for revision in [
        "loose", "v1.0", "HEAD", "main~0", "@", "HEAD@{0}", "main@{0}",
    ] {
        expect(&work, Some(revision));
    }
    // Linked work trees are read, even those of a repository with reftables.
    let linked = scene.path("linked");
    git(
        &work,
        &[
            "worktree",
            "add",
            "-q",
            "-b",
            "topic",
            linked.to_str().unwrap(),
        ],
    );
    expect(&linked, None);
    expect(&linked, Some("loose"));
    write(&linked, "a.py", "changed\n");
    assert!(expect(&linked, None).notes[0].starts_with("1 uncommitted"));
    // Shared objects, shallow clones and detached heads are read.
    let shared = scene.path("shared");
    let clone = |options: &[&str], from: &str, to: &Path| {
        let mut arguments = vec!["clone", "-q"];
        arguments.extend(options);
        arguments.extend([from, to.to_str().unwrap()]);
        git(scene.folder.path(), &arguments);
    };
    clone(&["--shared"], work.to_str().unwrap(), &shared);
    let twice = scene.path("twice");
    clone(&["--shared"], shared.to_str().unwrap(), &twice);
    git(&twice, &["checkout", "-q", "--detach"]);
    expect(&twice, None);
    let shallow = scene.path("shallow");
    write(&work, "later.py", "");
    commit(&work, "later");
    git(&work, &["rm", "-q", "later.py"]);
    let head = commit(&work, "the same files as at first");
    clone(
        &["--depth=1"],
        &format!("file://{}", work.display()),
        &shallow,
    );
    let source = scene.open(&shallow, None).unwrap();
    assert_eq!(source.commit.as_deref(), Some(head.as_str()));
    // A separate git folder created by git itself and a submodule are read.
    let apart = scene.path("apart");
    clone(
        &[
            "--separate-git-dir",
            scene.path("elsewhere").to_str().unwrap(),
        ],
        work.to_str().unwrap(),
        &apart,
    );
    assert_eq!(
        scene.open(&scene.path("elsewhere"), None).unwrap().commit,
        Some(head.clone())
    );
    let outer = scene.path("outer");
    write(&outer, "o.py", "");
    git(&outer, &["init", "-q"]);
    git(
        &outer,
        &[
            "submodule",
            "--quiet",
            "add",
            work.to_str().unwrap(),
            "deep/sub",
        ],
    );
    let source = scene.open(&outer.join("deep/sub"), None).unwrap();
    assert_eq!(source.commit.as_deref(), Some(head.as_str()));
    assert_eq!(
        paths(&scene.open(&outer.join("deep/sub/pkg"), None).unwrap()),
        ["b.py"]
    );
}

#[test]
fn old_leftovers_are_removed() {
    let scene = Scene::new();
    let work = scene.repository();
    for (name, hours) in [("snapshot-old", 30), ("snapshot-new", 1), ("kept", 30)] {
        let folder = scene.cache().join(name);
        write(&folder, "config", "");
        let time = std::time::SystemTime::now() - Duration::from_secs(3600 * hours);
        let folder = std::fs::File::open(folder).unwrap();
        folder.set_modified(time).unwrap();
    }
    drop(scene.open(&work, None).unwrap());
    let there = |name: &str| scene.cache().join(name).exists();
    assert!(!there("snapshot-old") && there("snapshot-new") && there("kept"));
    let entries = std::fs::read_dir(scene.cache()).unwrap();
    let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
    let snapshot_count = names.filter(|n| n.starts_with("snapshot-")).count();
    assert_eq!(snapshot_count, 1, "only the git folder in use stayed");
}

#[test]
fn other_formats_are_read() {
    for format in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let scene = Scene::new();
        let work = scene.path("project");
        write(&work, "a.py", "a = 1\n");
        let init = [&["init", "-q", "-b", "main"], format].concat();
        git(&work, &init);
        let head = commit(&work, "first");
        git(&work, &["tag", "v1.0"]);
        let linked = scene.path("linked");
        git(
            &work,
            &[
                "worktree",
                "add",
                "-q",
                "-b",
                "topic",
                linked.to_str().unwrap(),
            ],
        );
        for location in [&work, &linked, &work.join(".git")] {
            for revision in [None, Some("v1.0"), Some("topic"), Some("HEAD@{0}")] {
                let source = scene.open(location, revision).unwrap();
                assert_eq!(source.commit.as_deref(), Some(head.as_str()), "{format:?}");
                assert_eq!(source.describe.as_deref(), Some("v1.0"));
                assert_eq!(source.notes, [""; 0]);
            }
        }
    }
}
