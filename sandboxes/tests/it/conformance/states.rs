//! Checks of forks, saved states, and ends.

use std::time::Duration;

use futures::FutureExt;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::{Command, Sandbox, SandboxSource};

use super::{
    Check, CheckFn, Fault, Fixture, Verdict, download, ensure, expect, noise, sh, stop, upload,
};

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check {
            name: "a fork starts with the present files",
            what: CheckFn::Making(|g| fork_has_files(g).boxed()),
            fault: Fault::ForkIsFresh,
        },
        Check {
            name: "a fork and its original do not see each other's changes",
            what: CheckFn::Making(|g| fork_is_apart(g).boxed()),
            fault: Fault::ForkIsSame,
        },
        Check {
            name: "a fork and a second state have all changes, removals and replacements",
            what: CheckFn::Making(|g| fork_of_saved(g).boxed()),
            fault: Fault::ForkIsFresh,
        },
        Check {
            name: "a saved state comes back",
            what: CheckFn::Making(|g| saved(g).boxed()),
            fault: Fault::SavedIsFresh,
        },
        Check {
            name: "a saved state is not changed by what starts from it",
            what: CheckFn::Making(|g| saved_stays(g).boxed()),
            fault: Fault::SavedIsShared,
        },
        Check {
            name: "times of files are kept",
            what: CheckFn::Making(|g| times(g).boxed()),
            fault: Fault::TouchWorkspace,
        },
        Check {
            name: "a missing state is reported as such",
            what: CheckFn::Making(|g| no_state(g).boxed()),
            fault: Fault::SavedIsFresh,
        },
        Check {
            name: "a removed state is gone",
            what: CheckFn::Making(|g| removed(g).boxed()),
            fault: Fault::KeepSaved,
        },
        Check {
            name: "the size of a saved state excludes what it shares with the one below",
            what: CheckFn::Making(|g| saved_bytes(g).boxed()),
            fault: Fault::CountShared,
        },
        Check {
            name: "a saved state comes back from its archive",
            what: CheckFn::Making(|g| archived(g).boxed()),
            fault: Fault::ForgetArchive,
        },
        Check {
            name: "stop ends every process, even a detached one",
            what: CheckFn::Making(|g| stop_ends_all(g).boxed()),
            fault: Fault::StopNothing,
        },
        Check {
            name: "a stopped sandbox is dead, and stopping twice is not an error",
            what: CheckFn::Making(|g| stopped_is_dead(g).boxed()),
            fault: Fault::AlwaysHealthy,
        },
        Check {
            name: "cleaning leaves live sandboxes alone",
            what: CheckFn::Making(|g| clean_spares(g).boxed()),
            fault: Fault::CleanAll,
        },
    ]
}

async fn fork(sandbox: &dyn Sandbox) -> Result<Box<dyn Sandbox>, String> {
    sandbox.fork().await.map_err(|e| format!("fork: {e}"))
}

async fn fork_has_files(ground: Fixture<'_>) -> Verdict {
    let sandbox = ground.sandbox(&ground.spec()).await?;
    let paths = sandbox.info().paths.clone();
    upload(
        sandbox.as_ref(),
        &paths.workspace.join("sub folder/a"),
        b"in the workspace",
    )
    .await?;
    upload(
        sandbox.as_ref(),
        &paths.temporary.join("b"),
        b"in the temporary folder",
    )
    .await?;
    upload(sandbox.as_ref(), &paths.store.join("c"), b"in the store").await?;
    sh(
        sandbox.as_ref(),
        "ln -s 'sub folder/a' link; chmod 750 'sub folder/a'; mkdir -m 500 closed",
    )
    .await?;
    let copy = fork(sandbox.as_ref()).await?;
    let inside = copy.info().paths.clone();
    let script = format!(
        "cat link '{}/b' '{}/c'; stat -c %a 'sub folder/a' closed; echo \"$FROM_SPEC\"",
        inside.temporary.display(),
        inside.store.display()
    );
    let (_, text) = sh(copy.as_ref(), &script).await?;
    stop(copy).await?;
    stop(sandbox).await?;
    let expected = "in the workspacein the temporary folderin the store750\n500\nspec\n";
    expect("files of the fork", text.as_str(), expected)
}

async fn fork_is_apart(ground: Fixture<'_>) -> Verdict {
    let sandbox = ground.sandbox(&ground.spec()).await?;
    let script = |word: &str| {
        format!("echo {word} >> file; echo {word} >> \"$TMPDIR/file\"; cat file \"$TMPDIR/file\"")
    };
    sh(sandbox.as_ref(), &script("before")).await?;
    let copy = fork(sandbox.as_ref()).await?;
    let there = sh(copy.as_ref(), &script("fork")).await?.1;
    let here = sh(sandbox.as_ref(), &script("original")).await?.1;
    let second = fork(copy.as_ref()).await?;
    stop(copy).await?;
    let again = sh(second.as_ref(), "cat file").await?.1;
    stop(second).await?;
    sandbox
        .health()
        .await
        .map_err(|e| format!("the original: {e}"))?;
    stop(sandbox).await?;
    expect(
        "files of the fork",
        there.as_str(),
        "before\nfork\nbefore\nfork\n",
    )?;
    expect(
        "files of the original",
        here.as_str(),
        "before\noriginal\nbefore\noriginal\n",
    )?;
    expect("files of the fork's fork", again.as_str(), "before\nfork\n")
}

/// Modification time of a file in the saved state, in seconds since 1970.
const TIME: u64 = 1_400_000_000;

/// Returns a name that no other run of these checks uses.
fn name(what: &str) -> String {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos();
    format!("conformance-{what}-{}-{now}", std::process::id())
}

async fn save_one(ground: Fixture<'_>, name: &str) -> Verdict {
    let mut spec = ground.spec();
    spec.root = true;
    let sandbox = ground.sandbox(&spec).await?;
    let paths = sandbox.info().paths.clone();
    let script = format!(
        "echo workspace > file; chmod 640 file; mkdir -p sub '{0}'; touch -d @{TIME} file sub; \
         echo environment > '{0}/file'; echo store > '{1}/file'",
        paths.environment.display(),
        paths.store.display()
    );
    let (code, text) = sh(sandbox.as_ref(), &script).await?;
    expect("while it is built", (code, text.as_str()), (0, ""))?;
    let result = sandbox.save(name).await;
    stop(sandbox).await?;
    result.map_err(|e| format!("save: {e}"))
}

async fn from_saved(ground: Fixture<'_>, name: &str) -> Result<Box<dyn Sandbox>, String> {
    let mut spec = ground.spec();
    spec.start = SandboxSource::Saved(name.to_owned());
    ground.sandbox(&spec).await
}

async fn remove(ground: Fixture<'_>, name: &str) -> Verdict {
    let result = ground.backend.remove_saved(name).await;
    result.map_err(|e| format!("remove: {e}"))
}

async fn saved(ground: Fixture<'_>) -> Verdict {
    let name = name("saved");
    save_one(ground, &name).await?;
    let is_saved = ground
        .backend
        .has_saved(&name)
        .await
        .map_err(|e| e.to_string())?;
    let verdict = async {
        ensure(is_saved, "the state is unknown")?;
        let sandbox = from_saved(ground, &name).await?;
        let paths = sandbox.info().paths.clone();
        let script = format!(
            "cat file '{}/file' '{}/file'; stat -c %a file; python3 -c 'print(6*7)'",
            paths.environment.display(),
            paths.store.display()
        );
        let (_, text) = sh(sandbox.as_ref(), &script).await?;
        let copy = fork(sandbox.as_ref()).await?;
        let (_, forked) = sh(
            copy.as_ref(),
            &format!(
                "cat file '{}/file'",
                copy.info().paths.environment.display()
            ),
        )
        .await?;
        stop(copy).await?;
        stop(sandbox).await?;
        expect(
            "files",
            text.as_str(),
            "workspace\nenvironment\nstore\n640\n42\n",
        )?;
        expect(
            "files of a fork",
            forked.as_str(),
            "workspace\nenvironment\n",
        )
    }
    .await;
    remove(ground, &name).await?;
    verdict
}

async fn fork_of_saved(ground: Fixture<'_>) -> Verdict {
    let (name, second) = (name("layers"), name("second"));
    let mut spec = ground.spec();
    spec.root = true;
    let sandbox = ground.sandbox(&spec).await?;
    let setup = "mkdir -p kept gone replaced/sub; touch kept/a kept/b gone/c replaced/d replaced/sub/e; echo old > file";
    sh(sandbox.as_ref(), setup).await?;
    let result = sandbox.save(&name).await;
    stop(sandbox).await?;
    result.map_err(|e| format!("save: {e}"))?;
    let sandbox = from_saved(ground, &name).await?;
    let changed = "rm kept/a; rm -r gone replaced; mkdir replaced; touch replaced/f; echo new > file; ln -s file link";
    let (code, text) = sh(sandbox.as_ref(), changed).await?;
    expect("what a change says", (code, text.as_str()), (0, ""))?;
    let expected = "./file\n./kept\n./kept/b\n./link\n./replaced\n./replaced/f\nnew\n";
    let seen = "find . -mindepth 1 | sort; cat link";
    let copy = fork(sandbox.as_ref()).await?;
    let (_, forked) = sh(copy.as_ref(), seen).await?;
    expect("files of the fork", forked.as_str(), expected)?;
    stop(copy).await?;
    sandbox
        .save(&second)
        .await
        .map_err(|e| format!("save again: {e}"))?;
    stop(sandbox).await?;
    remove(ground, &name).await?;
    let again = from_saved(ground, &second).await?;
    let (_, text) = sh(again.as_ref(), seen).await?;
    stop(again).await?;
    remove(ground, &second).await?;
    expect("files of the second state", text.as_str(), expected)
}

async fn saved_stays(ground: Fixture<'_>) -> Verdict {
    let name = name("stays");
    save_one(ground, &name).await?;
    let first = from_saved(ground, &name).await?;
    sh(first.as_ref(), "echo changed > file; echo x > new").await?;
    let second = from_saved(ground, &name).await?;
    let (_, text) = sh(second.as_ref(), "cat file; ls").await?;
    stop(first).await?;
    stop(second).await?;
    remove(ground, &name).await?;
    expect("files", text.as_str(), "workspace\nfile\nsub\n")
}

async fn times(ground: Fixture<'_>) -> Verdict {
    let name = name("times");
    save_one(ground, &name).await?;
    let sandbox = from_saved(ground, &name).await?;
    let (_, text) = sh(sandbox.as_ref(), "stat -c %Y file sub").await?;
    let copy = fork(sandbox.as_ref()).await?;
    let (_, forked) = sh(copy.as_ref(), "stat -c %Y file sub").await?;
    stop(copy).await?;
    stop(sandbox).await?;
    remove(ground, &name).await?;
    let expected = format!("{TIME}\n{TIME}\n");
    expect("times in the saved state", &text, &expected)?;
    expect("times in a fork", &forked, &expected)
}

async fn no_state(ground: Fixture<'_>) -> Verdict {
    let mut spec = ground.spec();
    spec.start = SandboxSource::Saved("conformance-there-is-none".to_owned());
    match ground.backend.start(&spec).await {
        Ok(sandbox) => {
            stop(sandbox).await?;
            Err("it started".to_owned())
        }
        Err(e) => expect("kind of error", e.kind, ErrorKind::NotFound),
    }
}

async fn archived(ground: Fixture<'_>) -> Verdict {
    let name = name("archived");
    save_one(ground, &name).await?;
    let sandbox = from_saved(ground, &name).await?;
    let setup = "mkdir -m 500 closed; ln -s file link; ln -s /etc/passwd out; ln file second";
    sh(sandbox.as_ref(), setup).await?;
    let result = sandbox.save(&name).await;
    stop(sandbox).await?;
    result.map_err(|e| format!("save again: {e}"))?;
    let archive = tempfile::NamedTempFile::new().unwrap();
    let exported = ground.backend.export_saved(&name, archive.path()).await;
    exported.map_err(|e| format!("export: {e}"))?;
    remove(ground, &name).await?;
    let imported = ground.backend.import_saved(&name, archive.path()).await;
    imported.map_err(|e| format!("import: {e}"))?;
    let sandbox = from_saved(ground, &name).await?;
    let paths = sandbox.info().paths.clone();
    let script = format!(
        "cat link second '{}/file' '{}/file'; readlink out; stat -c '%a %Y' file; stat -c %a closed; \
         echo more >> file && tail -n 1 file",
        paths.environment.display(),
        paths.store.display()
    );
    let (_, text) = sh(sandbox.as_ref(), &script).await?;
    stop(sandbox).await?;
    remove(ground, &name).await?;
    let expected =
        format!("workspace\nworkspace\nenvironment\nstore\n/etc/passwd\n640 {TIME}\n500\nmore\n");
    expect("what came back", text.as_str(), expected.as_str())
}

async fn removed(ground: Fixture<'_>) -> Verdict {
    let name = name("removed");
    save_one(ground, &name).await?;
    remove(ground, &name).await?;
    let is_saved = ground
        .backend
        .has_saved(&name)
        .await
        .map_err(|e| e.to_string())?;
    remove(ground, &name).await?;
    ensure(!is_saved, "it still exists")
}

async fn saved_bytes(ground: Fixture<'_>) -> Verdict {
    const MIB: u64 = 1 << 20;
    let (below, above) = (name("below"), name("above"));
    let bytes = async |name: &str| {
        let sizes = ground.backend.saved_bytes(name).await;
        sizes.map_err(|e| (e.kind, format!("bytes of {name}: {e}")))
    };
    match bytes(&below).await {
        Err((kind, _)) => expect("kind of error", kind, ErrorKind::NotFound)?,
        Ok(_) => return Err("a missing state has a size".to_owned()),
    }
    let mut spec = ground.spec();
    spec.root = true;
    let sandbox = ground.sandbox(&spec).await?;
    let paths = sandbox.info().paths.clone();
    for (folder, length) in [(&paths.environment, 6), (&paths.workspace, 2)] {
        let content = noise(length << 20);
        upload(sandbox.as_ref(), &folder.join("noise"), &content).await?;
    }
    let result = sandbox.save(&below).await;
    stop(sandbox).await?;
    result.map_err(|e| format!("save: {e}"))?;

    spec.start = SandboxSource::Saved(below.clone());
    let sandbox = ground.sandbox(&spec).await?;
    let more = sandbox.info().paths.environment.join("more");
    upload(sandbox.as_ref(), &more, &noise(1 << 20)).await?;
    let result = sandbox.save(&above).await;
    stop(sandbox).await?;
    result.map_err(|e| format!("save: {e}"))?;
    let sizes = (bytes(&below).await, bytes(&above).await);
    let sandbox = from_saved(ground, &above).await?;
    let path = sandbox.info().paths.environment.join("noise");
    let content = download(sandbox.as_ref(), &path).await?;
    stop(sandbox).await?;
    remove(ground, &above).await?;
    remove(ground, &below).await?;
    ensure(content == noise(6 << 20), "the shared content differs")?;
    let (a, b) = (sizes.0.map_err(|e| e.1)?, sizes.1.map_err(|e| e.1)?);
    ensure(
        (8 * MIB..16 * MIB).contains(&a) && (MIB..a).contains(&b),
        format!("{a} bytes, and {b} on top of them"),
    )
}

/// Returns the number of processes on this machine whose command line contains the mark.
pub(super) fn marked(mark: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|b| *b == 0).any(|word| word == mark.as_bytes()))
        .count()
}

/// Returns a script that starts a detached process, which ignores signals, and waits for it.
pub(super) fn daemon(mark: &str) -> String {
    format!(
        "(trap '' HUP TERM INT; setsid sh -c 'trap \"\" HUP TERM INT; exec sleep {mark}' >/dev/null 2>&1 </dev/null &) ; sleep 0.2; echo started"
    )
}

/// Returns a number of seconds that no other process sleeps for.
pub(super) fn mark() -> String {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos();
    format!("7{:07}{:09}", std::process::id() % 10_000_000, now)
}

async fn stop_ends_all(ground: Fixture<'_>) -> Verdict {
    let mark = mark();
    let sandbox = ground.sandbox(&ground.spec()).await?;
    sh(sandbox.as_ref(), &daemon(&mark)).await?;
    let running = sandbox.spawn(&Command::new(["sleep", &mark])).await;
    let running = running.map_err(|e| e.to_string())?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    if marked(&mark) < 2 {
        stop(sandbox).await?;
        eprintln!("skipped: the processes of this engine cannot be seen from here");
        return Ok(());
    }
    stop(sandbox).await?;
    let ended = tokio::time::timeout(Duration::from_secs(5), running.exit).await;
    ensure(ended.is_ok(), "the end of a process is not reported")?;
    expect("processes left", marked(&mark), 0)
}

async fn stopped_is_dead(ground: Fixture<'_>) -> Verdict {
    let sandbox = ground.sandbox(&ground.spec()).await?;
    sandbox.health().await.map_err(|e| format!("health: {e}"))?;
    for _ in 0..2 {
        sandbox.stop().await.map_err(|e| format!("stop: {e}"))?;
    }
    match sandbox.health().await {
        Ok(()) => return Err("it is reported as healthy".to_owned()),
        Err(e) => expect("kind of error", e.kind, ErrorKind::Dead)?,
    }
    match sandbox.spawn(&Command::new(["true"])).await {
        Ok(_) => Err("a process started".to_owned()),
        Err(e) => expect("kind of error", e.kind, ErrorKind::Dead),
    }
}

async fn clean_spares(ground: Fixture<'_>) -> Verdict {
    let sandbox = ground.sandbox(&ground.spec()).await?;
    let copy = fork(sandbox.as_ref()).await?;
    upload(
        sandbox.as_ref(),
        &sandbox.info().paths.workspace.join("file"),
        b"x",
    )
    .await?;
    ground
        .backend
        .clean()
        .await
        .map_err(|e| format!("clean: {e}"))?;
    for one in [&sandbox, &copy] {
        one.health().await.map_err(|e| format!("afterwards: {e}"))?;
    }
    let path = sandbox.info().paths.workspace.join("file");
    let content = download(sandbox.as_ref(), &path).await?;
    stop(copy).await?;
    stop(sandbox).await?;
    expect("content afterwards", content, b"x".to_vec())
}
