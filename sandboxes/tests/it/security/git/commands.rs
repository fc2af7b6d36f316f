//! Tests of all features by which a repository can make git run a program.

use super::*;

/// Keys whose value some git command runs. `TRAP` stands for the program.
const KEYS: [(&str, &str); 37] = [
    ("filter.x.clean", "TRAP"),
    ("filter.x.smudge", "TRAP"),
    ("filter.x.process", "TRAP"),
    ("diff.x.command", "TRAP"),
    ("diff.x.textconv", "TRAP"),
    ("diff.external", "TRAP"),
    ("merge.x.driver", "TRAP"),
    ("gpg.program", "TRAP"),
    ("gpg.openpgp.program", "TRAP"),
    ("gpg.x509.program", "TRAP"),
    ("gpg.ssh.program", "TRAP"),
    ("gpg.ssh.defaultKeyCommand", "TRAP"),
    ("core.fsmonitor", "TRAP"),
    ("core.sshCommand", "TRAP"),
    ("core.askPass", "TRAP"),
    ("core.gitProxy", "TRAP"),
    ("core.pager", "TRAP"),
    ("core.editor", "TRAP"),
    ("core.alternateRefsCommand", "TRAP"),
    ("sequence.editor", "TRAP"),
    ("pager.status", "TRAP"),
    ("pager.show", "TRAP"),
    ("pager.config", "TRAP"),
    ("credential.helper", "!TRAP"),
    ("interactive.diffFilter", "TRAP"),
    ("trailer.x.command", "TRAP"),
    ("trailer.x.cmd", "TRAP"),
    ("uploadpack.packObjectsHook", "TRAP"),
    ("remote.origin.vcs", "ext"),
    ("remote.origin.receivepack", "TRAP"),
    ("alias.status", "!TRAP"),
    ("alias.ls-tree", "!TRAP"),
    ("alias.rev-parse", "!TRAP"),
    ("alias.cat-file", "!TRAP"),
    ("submodule.sub.update", "!TRAP"),
    ("browser.x.cmd", "TRAP"),
    ("man.x.cmd", "TRAP"),
];

const ATTRIBUTES: &str = "* filter=x diff=x merge=x\n";

/// Opens the repository in all supported ways.
fn open_all(scene: &Scene, work: &Path) {
    for revision in [None, Some("main"), Some("HEAD"), Some("nearly-main")] {
        for location in [work.to_owned(), work.join("pkg"), work.join(".git")] {
            if location.is_dir() {
                // An error is acceptable, a command that runs is not.
                let _ = scene.open(&location, revision);
            }
        }
        let _ = scene.open_url(&format!("file://{}", work.display()), revision);
    }
}

/// Makes a commit look signed, so that showing signatures would call gpg.
fn sign(work: &Path) {
    let commit = git(work, &["cat-file", "commit", "HEAD"]);
    let (head, message) = commit.split_once("\n\n").unwrap();
    let signed = format!(
        "{head}\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n\n{message}\n"
    );
    let hash = git_with(
        work,
        &["hash-object", "-t", "commit", "-w", "--stdin"],
        &signed,
    );
    git(work, &["update-ref", "refs/heads/main", &hash]);
}

/// Creates files that are changed, that may look changed, and that are new.
fn soil(work: &Path) {
    write(work, "a.py", "a = 2\n");
    write(work, "new.py", "");
    // The file is unchanged, but the index does not know that.
    write(work, "pkg/b.py", "b = 1\n");
}

#[test]
fn repository_keys_run_no_program() {
    let scene = Scene::new();
    let work = scene.repository();
    write(&work, ".gitattributes", ATTRIBUTES);
    commit(&work, "attributes");
    sign(&work);
    for (i, (key, value)) in KEYS.iter().enumerate() {
        let trap = scene.trap(&format!("{i}-{key}"));
        let value = value.replace("TRAP", trap.to_str().unwrap());
        git(&work, &["config", key, &value]);
    }
    git(&work, &["config", "log.showSignature", "true"]);
    git(&work, &["config", "status.submoduleSummary", "true"]);
    git(&work, &["config", "diff.submodule", "log"]);
    soil(&work);
    open_all(&scene, &work);
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn commit_of_patch_runs_no_program() {
    let scene = Scene::new();
    let work = scene.repository();
    write(&work, ".gitattributes", ATTRIBUTES);
    commit(&work, "attributes");
    for (i, (key, value)) in KEYS.iter().enumerate() {
        let trap = scene.trap(&format!("{i}-{key}"));
        let value = value.replace("TRAP", trap.to_str().unwrap());
        git(&work, &["config", key, &value]);
    }
    for name in [
        "pre-commit",
        "post-checkout",
        "post-index-change",
        "reference-transaction",
    ] {
        let hook = work.join(".git/hooks").join(name);
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::copy(scene.trap(name), hook).unwrap();
    }
    for (key, value) in [
        ("commit.gpgSign", "true"),
        ("user.name", "a"),
        ("user.email", "b"),
    ] {
        git(&work, &["config", key, value]);
    }
    let patch = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n";
    let tree = WorkTree::find(work.to_str().unwrap()).unwrap().unwrap();
    let placement = Placement {
        branch: Some("topic"),
        message: Some("change a"),
    };
    let commit = tree.apply(patch, placement).unwrap().unwrap();
    // git itself would run the traps here.
    let head = std::fs::read_to_string(work.join(".git/refs/heads/topic")).unwrap();
    assert_eq!(commit.as_deref(), Some(head.trim()));
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn filters_never_see_changed_files() {
    for key in ["filter.x.clean", "filter.x.process"] {
        let scene = Scene::new();
        let work = scene.repository();
        write(&work, ".gitattributes", ATTRIBUTES);
        commit(&work, "attributes");
        git(
            &work,
            &["config", key, scene.trap("filter").to_str().unwrap()],
        );
        soil(&work);
        let source = scene.open(&work, None).unwrap();
        assert_eq!(scene.marks(), [""; 0], "{key}");
        // The omitted change is still noted.
        assert!(
            source.notes[0].contains("uncommitted change"),
            "{:?}",
            source.notes
        );
    }
}

#[test]
fn user_filters_ignore_repository_attributes() {
    // git finds a user's configuration through HOME, so the test runs itself again with another one.
    let name = "security::git::commands::user_filters_ignore_repository_attributes";
    if std::env::var_os("TESTWRIGHT_TEST_HOME").is_none() {
        let home = tempfile::tempdir().unwrap();
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env("TESTWRIGHT_TEST_HOME", home.path())
            .env("HOME", home.path())
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}"
        );
        return;
    }
    let scene = Scene::new();
    let work = scene.repository();
    write(&work, ".gitattributes", ATTRIBUTES);
    commit(&work, "attributes");
    let trap = scene.trap("global");
    git(
        &work,
        &[
            "config",
            "--global",
            "filter.x.clean",
            trap.to_str().unwrap(),
        ],
    );
    soil(&work);
    scene.open(&work, None).unwrap();
    std::fs::remove_dir_all(work.join(".git")).unwrap();
    scene.open(&work, None).unwrap();
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn signatures_are_not_verified() {
    let scene = Scene::new();
    let work = scene.repository();
    sign(&work);
    git(&work, &["config", "log.showSignature", "true"]);
    git(
        &work,
        &["config", "gpg.program", scene.trap("gpg").to_str().unwrap()],
    );
    scene.open(&work, Some("main")).unwrap();
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn missing_objects_trigger_no_command() {
    for (key, value) in [
        ("remote.origin.uploadpack", "TRAP"),
        ("core.sshCommand", "TRAP"),
        ("core.gitProxy", "TRAP"),
        ("remote.origin.vcs", "x"),
    ] {
        let scene = Scene::new();
        let work = scene.repository();
        let trap = scene.trap("fetch");
        let url = match key {
            "core.sshCommand" => "ssh://127.0.0.1/x".to_owned(),
            "core.gitProxy" => "git://127.0.0.1/x".to_owned(),
            _ => format!("file://{}", work.display()),
        };
        for (key, value) in [
            ("core.repositoryFormatVersion", "1"),
            ("extensions.partialClone", "origin"),
            ("remote.origin.promisor", "true"),
            ("remote.origin.url", &url),
            (key, &value.replace("TRAP", trap.to_str().unwrap())),
        ] {
            git(&work, &["config", key, value]);
        }
        let object = git(&work, &["rev-parse", "HEAD:a.py"]);
        let (folder, file_name) = object.split_at(2);
        std::fs::remove_file(work.join(".git/objects").join(folder).join(file_name)).unwrap();
        let source = scene.open(&work, Some("main")).unwrap();
        assert_eq!(scene.marks(), [""; 0], "{key}");
        assert_eq!(paths(&source), ["pkg/b.py"]);
        assert!(
            source.notes.iter().any(|n| n.contains("a.py")),
            "{:?}",
            source.notes
        );
    }
}

#[test]
fn included_configuration_is_ignored() {
    let scene = Scene::new();
    let work = scene.repository();
    write(&work, ".gitattributes", ATTRIBUTES);
    commit(&work, "attributes");
    sign(&work);
    let trap = scene.trap("included");
    let section = format!(
        "[filter \"x\"]\n clean = {0}\n[log]\n showSignature = true\n[gpg]\n program = {0}\n[core]\n fsmonitor = {0}\n",
        trap.display()
    );
    write(&work, "evil.config", &section);
    write(&work, ".git/config.worktree", &section);
    for (key, value) in [
        ("include.path", "../evil.config"),
        ("includeIf.onbranch:main.path", "../evil.config"),
        ("core.repositoryFormatVersion", "1"),
        ("extensions.worktreeConfig", "true"),
    ] {
        git(&work, &["config", key, value]);
    }
    soil(&work);
    open_all(&scene, &work);
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn hooks_do_not_run() {
    let scene = Scene::new();
    let work = scene.repository();
    let hooks = [
        "post-index-change",
        "pre-auto-gc",
        "reference-transaction",
        "post-checkout",
        "fsmonitor-watchman",
    ];
    for hook in hooks {
        let trap = scene.trap(hook);
        std::fs::create_dir_all(work.join(".git/hooks")).unwrap();
        std::fs::copy(trap, work.join(".git/hooks").join(hook)).unwrap();
    }
    soil(&work);
    open_all(&scene, &work);
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn submodule_runs_nothing() {
    let scene = Scene::new();
    let work = scene.repository();
    let inner = scene.path("inner");
    write(&inner, "i.py", "");
    git(&inner, &["init", "-q"]);
    commit(&inner, "inner");
    git(
        &work,
        &[
            "submodule",
            "--quiet",
            "add",
            inner.to_str().unwrap(),
            "sub",
        ],
    );
    write(&work, "sub/.gitattributes", ATTRIBUTES);
    commit(&work, "with a submodule");
    let sub = work.join("sub");
    let trap = scene.trap("submodule");
    for key in [
        "core.fsmonitor",
        "filter.x.clean",
        "gpg.program",
        "core.sshCommand",
    ] {
        git(&sub, &["config", key, trap.to_str().unwrap()]);
    }
    git(&work, &["config", "diff.ignoreSubmodules", "none"]);
    git(&work, &["config", "submodule.sub.ignore", "none"]);
    // Counts only marks that appear while the repository is read.
    let _ = std::fs::remove_file(scene.path("mark-submodule"));
    write(&work, "sub/i.py", "changed = 1\n");
    soil(&work);
    open_all(&scene, &work);
    let source = scene.open(&sub, None).unwrap();
    assert_eq!(paths(&source), ["i.py"]);
    assert_eq!(scene.marks(), [""; 0]);
}

#[test]
fn embedded_bare_repository_runs_nothing() {
    let scene = Scene::new();
    let work = scene.repository();
    let bare = work.join("sub");
    git(
        &work,
        &[
            "clone",
            "-q",
            "--bare",
            work.to_str().unwrap(),
            bare.to_str().unwrap(),
        ],
    );
    let inner = scene.path("checkout");
    git(
        scene.folder.path(),
        &[
            "clone",
            "-q",
            bare.to_str().unwrap(),
            inner.to_str().unwrap(),
        ],
    );
    sign(&inner);
    git(&inner, &["push", "-q", "--force", "origin", "main"]);
    let trap = scene.trap("bare");
    for (key, value) in [
        ("log.showSignature", "true"),
        ("gpg.program", trap.to_str().unwrap()),
        ("core.fsmonitor", trap.to_str().unwrap()),
        ("core.bare", "false"),
        ("core.worktree", ".."),
    ] {
        git(
            &work,
            &[
                "config",
                "--file",
                bare.join("config").to_str().unwrap(),
                key,
                value,
            ],
        );
    }
    commit(&work, "tracked");
    for revision in [None, Some("main"), Some("HEAD")] {
        let _ = scene.open(&bare, revision);
        let _ = scene.open(&bare.join("objects"), revision);
    }
    assert_eq!(scene.marks(), [""; 0]);
}

/// Repeats the tests of programs, links and logins as an ordinary user.
#[test]
fn ordinary_user_is_equally_safe() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: an ordinary user already runs these tests");
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let program = place.path().join("it");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    set_mode(&program, 0o755);
    let home = place.path().join("home");
    std::fs::create_dir(&home).unwrap();
    set_mode(place.path(), 0o755);
    set_mode(&home, 0o777);
    let output = Command::new("setpriv")
        .args(["--reuid=12345", "--regid=12345", "--clear-groups"])
        .arg(&program)
        .args(["security::git::commands", "security::git::layout"])
        .args([
            "security::git::clones",
            "--skip",
            "ordinary_user",
            "--skip",
            "pipes",
        ])
        .current_dir(&home)
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && text.contains("filters_never_see_changed_files ... ok"),
        "{text}"
    );
}

/// A hostile repository around the current folder must not matter either.
#[test]
fn surrounding_repository_runs_nothing() {
    let name = "security::git::commands::surrounding_repository_runs_nothing";
    let scene = Scene::new();
    if std::env::var_os("TESTWRIGHT_TEST_INSIDE").is_some() {
        let mine = scene.repository();
        let source = scene.open(&mine, None).unwrap();
        let url = format!("file://{}", mine.display());
        scene.open_url(&url, None).unwrap();
        let patch = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 3\n";
        let tree = source.tree().unwrap();
        let applied = testwright_sandboxes::repository::apply(&tree, &Default::default(), patch);
        applied.unwrap().unwrap();
        std::fs::remove_dir_all(mine.join(".git")).unwrap();
        scene.open(&mine, None).unwrap();
        return;
    }
    let work = scene.repository();
    for (i, (key, value)) in KEYS.iter().enumerate() {
        let trap = scene.trap(&format!("{i}-{key}"));
        let value = value.replace("TRAP", trap.to_str().unwrap());
        git(&work, &["config", key, &value]);
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env("TESTWRIGHT_TEST_INSIDE", "1")
        .current_dir(&work)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}"
    );
    assert_eq!(scene.marks(), [""; 0]);
}
