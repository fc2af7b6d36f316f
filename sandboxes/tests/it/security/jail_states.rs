//! Tests of states and forks: leftover processes, outward links, and files and mode bits that must not be saved.

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use testwright_sandboxes::local::Isolation;
use testwright_sandboxes::sandbox::{Sandbox, output};
use testwright_sandboxes::{Backend, Command, SandboxSource};

use super::jail_users::{docker, local, python, run_python, run_script, spec};

/// Creates a folder that only its owner may enter, with a key that only its owner may read.
fn secret() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("keys");
    std::fs::create_dir(&inner).unwrap();
    let key = inner.join("key");
    std::fs::write(&key, "the host's key").unwrap();
    for (path, mode) in [(&key, 0o600), (&inner, 0o700)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    (folder, inner)
}

fn building(start: SandboxSource) -> testwright_sandboxes::Spec {
    let mut spec = spec(start);
    spec.root = true;
    spec
}

async fn environment_for_a_link(backend: &dyn Backend) {
    let (_kept, keys) = secret();
    let sandbox = backend.start(&building(python())).await.unwrap();
    let environment = sandbox.info().paths.environment.display().to_string();
    let script = format!(
        "rm -rf '{environment}'; ln -s '{}' '{environment}'",
        keys.display()
    );
    assert_eq!(run_script(&*sandbox, &script).await, "");
    let saved = sandbox.save("linked").await;
    sandbox.stop().await.unwrap();
    if saved.is_ok() {
        let start = SandboxSource::Saved("linked".to_owned());
        if let Ok(sandbox) = backend.start(&spec(start)).await {
            let environment = sandbox.info().paths.environment.join("key");
            let read = run_script(&*sandbox, &format!("cat '{}'", environment.display())).await;
            sandbox.stop().await.unwrap();
            assert!(!read.contains("the host's key"), "{read}");
        }
    }
    let refused = saved.unwrap_err().to_string();
    assert!(
        refused.contains("environment") && refused.contains("link"),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn linked_environment_is_not_saved() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        if let Some(backend) = local(cache.path(), force) {
            environment_for_a_link(&*backend).await;
        }
    }
}

/// The link is in a state that an older version saved without this check.
#[tokio::test(flavor = "multi_thread")]
async fn link_in_saved_state_is_ignored() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let (_kept, keys) = secret();
        let sandbox = backend.start(&building(python())).await.unwrap();
        let environment = sandbox.info().paths.environment.clone();
        run_script(&*sandbox, &format!("mkdir -p '{}'", environment.display())).await;
        sandbox.save("old").await.unwrap();
        sandbox.stop().await.unwrap();
        let saved_environment = cache.path().join("states/old/store/env");
        std::fs::remove_dir(&saved_environment).unwrap();
        symlink(&keys, &saved_environment).unwrap();
        let started = backend
            .start(&spec(SandboxSource::Saved("old".to_owned())))
            .await;
        if let Ok(sandbox) = started {
            let key = sandbox.info().paths.environment.join("key");
            let read = run_script(&*sandbox, &format!("cat '{}'", key.display())).await;
            sandbox.stop().await.unwrap();
            assert!(!read.contains("the host's key"), "{force:?}: {read}");
        }
    }
}

const TICKS: &str = "import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        n = 0
        while True:
            n += 1
            for folder in ('.', os.environ['TMPDIR']):
                with open(folder + '/ticks.new', 'w') as f: f.write(str(n))
                os.rename(folder + '/ticks.new', folder + '/ticks')
    os._exit(0)
os.wait()";

async fn ticking(sandbox: &dyn Sandbox) {
    let start = Command::new(["python3", "-c", TICKS]);
    let process = sandbox.spawn(&start).await.unwrap();
    assert_eq!(process.exit.await.unwrap(), 0);
    for _ in 0..100 {
        // The second file is written after the first.
        let ticks = run_script(sandbox, "cat \"$TMPDIR/ticks\"").await;
        if ticks.parse::<u64>().is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the script does not tick");
}

/// Waits up to `timeout`, because a busy disk can make a single tick last seconds.
async fn keeps_ticking(sandbox: &dyn Sandbox, timeout: Duration) -> bool {
    let before = run_script(sandbox, "cat ticks").await;
    let end = tokio::time::Instant::now() + timeout;
    while tokio::time::Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(300)).await;
        if run_script(sandbox, "cat ticks").await != before {
            return true;
        }
    }
    false
}

async fn saving_ends_processes(backend: &dyn Backend, name: &str) {
    let sandbox = backend.start(&building(python())).await.unwrap();
    ticking(&*sandbox).await;
    sandbox.save(name).await.unwrap();
    let goes_on = keeps_ticking(&*sandbox, Duration::from_secs(1)).await;
    sandbox.stop().await.unwrap();
    backend.remove_saved(name).await.unwrap();
    assert!(!goes_on, "a process survived the saving");
}

#[tokio::test(flavor = "multi_thread")]
async fn saving_state_ends_processes() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        if let Some(backend) = local(cache.path(), force) {
            saving_ends_processes(&*backend, "left-behind").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_saving_state_ends_processes() {
    let Some(docker) = docker().await else { return };
    saving_ends_processes(&docker, &format!("left-behind-{}", std::process::id())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_pause_during_fork() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let sandbox = backend.start(&spec(python())).await.unwrap();
        // Many files between the two that are written make the copy slow.
        run_script(&*sandbox, "mkdir many && cd many && seq 3000 | xargs touch").await;
        ticking(&*sandbox).await;
        let copy = sandbox.fork().await.unwrap();
        let counts = run_script(&*copy, "cat ticks; echo; cat \"$TMPDIR/ticks\"").await;
        let counts: Vec<u64> = counts.lines().map(|line| line.parse().unwrap()).collect();
        let lives = keeps_ticking(&*sandbox, Duration::from_secs(30)).await;
        copy.stop().await.unwrap();
        sandbox.stop().await.unwrap();
        assert!(counts[0].abs_diff(counts[1]) <= 1, "{force:?}: {counts:?}");
        assert!(lives, "{force:?}: the original does not resume");
    }
}

/// A sandbox without a root of its own needs the host to read what an environment says about editable installs.
#[tokio::test(flavor = "multi_thread")]
async fn editable_install_links_are_not_followed() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Landlock) else {
        return;
    };
    let (secret_folder, keys) = secret();
    let sandbox = backend.start(&building(python())).await.unwrap();
    let paths = sandbox.info().paths.clone();
    let file = keys.join("of-the-host.pth");
    std::fs::write(
        &file,
        format!("{}/read-on-the-host\n", paths.workspace.display()),
    )
    .unwrap();
    let site = paths.environment.join("lib/python3/site-packages");
    let script = format!(
        "mkdir -p '{0}' && ln -s '{1}' '{0}/x.pth' && ln -s '{2}' '{0}/../../python4'",
        site.display(),
        file.display(),
        secret_folder.path().display()
    );
    assert_eq!(run_script(&*sandbox, &script).await, "");
    std::fs::create_dir(secret_folder.path().join("site-packages")).unwrap();
    let other = secret_folder.path().join("site-packages/y.pth");
    std::fs::write(
        other,
        format!("{}/by-a-folder\n", paths.workspace.display()),
    )
    .unwrap();
    sandbox.save("editable").await.unwrap();
    sandbox.stop().await.unwrap();
    let sandbox = backend
        .start(&spec(SandboxSource::Saved("editable".to_owned())))
        .await
        .unwrap();
    let output = run_script(&*sandbox, "echo \"$PYTHONPATH\"").await;
    sandbox.stop().await.unwrap();
    assert!(
        !output.contains("read-on-the-host") && !output.contains("by-a-folder"),
        "{output}"
    );
}

/// Collects all paths below a folder without following links.
fn walk(folder: &Path, entries: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        entries.push(entry.path());
        if entry.file_type().unwrap().is_dir() {
            walk(&entry.path(), entries);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn setuid_bits_and_devices_are_dropped() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let sandbox = backend.start(&building(python())).await.unwrap();
        let environment = sandbox.info().paths.environment.display().to_string();
        let script = format!(
            "mkdir -p '{environment}' sub; for f in './lent' '{environment}/lent' \"$TMPDIR/lent\"; do
             cp /bin/true \"$f\"; chmod 6755 \"$f\"; done; chmod 2777 sub;
             (mknod node c 1 3; mknod sub/node b 8 0; mkfifo pipe) 2>/dev/null; echo done"
        );
        assert!(run_script(&*sandbox, &script).await.ends_with("done"));
        sandbox.save("lent").await.unwrap();
        let copy = sandbox.fork().await.unwrap();
        let fork = cache.path().join("sandboxes").join(&copy.info().id);
        for folder in [cache.path().join("states/lent"), fork] {
            let mut entries = Vec::new();
            walk(&folder, &mut entries);
            assert!(entries.iter().any(|path| path.ends_with("lent")));
            for path in entries {
                let at = std::fs::symlink_metadata(&path).unwrap();
                assert_eq!(at.mode() & 0o6000, 0, "{}: {:o}", path.display(), at.mode());
                assert_eq!(at.rdev(), 0, "{}", path.display());
            }
        }
        copy.stop().await.unwrap();
        sandbox.stop().await.unwrap();
        // A state with an overlay is packed in a different way.
        let sandbox = backend
            .start(&spec(SandboxSource::Saved("lent".to_owned())))
            .await
            .unwrap();
        run_script(&*sandbox, "cp /bin/true again; chmod 6755 again").await;
        sandbox.save("second").await.unwrap();
        sandbox.stop().await.unwrap();
        let mut entries = Vec::new();
        walk(&cache.path().join("states/second"), &mut entries);
        assert!(entries.iter().any(|path| path.ends_with("again")));
        for path in entries {
            let at = std::fs::symlink_metadata(&path).unwrap();
            assert_eq!(at.mode() & 0o6000, 0, "{}: {:o}", path.display(), at.mode());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn writable_files_grant_no_rights() {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = local(cache.path(), Isolation::Namespaces) else {
        return;
    };
    let host = tempfile::tempdir().unwrap();
    let mut spec = building(python());
    spec.mounts.push(testwright_sandboxes::sandbox::Mount {
        host: host.path().to_owned(),
        inside: "/caches".into(),
    });
    let sandbox = backend.start(&spec).await.unwrap();
    let mounts = run_script(&*sandbox, "cat /proc/self/mountinfo").await;
    sandbox.stop().await.unwrap();
    let mut seen = 0;
    for line in mounts.lines() {
        let fields: Vec<_> = line.split(' ').collect();
        let (place, options) = (fields[4], fields[5]);
        if [
            "/testbed",
            "/tmp",
            "/home/testwright",
            "/opt/testwright",
            "/caches",
        ]
        .contains(&place)
        {
            seen += 1;
            assert!(
                options.contains("nosuid") && options.contains("nodev"),
                "{line}"
            );
        }
    }
    assert_eq!(seen, 5, "{mounts}");
}

#[test]
fn cache_is_closed_to_other_users() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["", "sandboxes", "states"] {
        let path = folder.path().join("cache").join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let Some(_backend) = local(&folder.path().join("cache"), Isolation::None) else {
        return;
    };
    for name in ["sandboxes", "states"] {
        let path = folder.path().join("cache").join(name);
        assert_eq!(
            std::fs::metadata(&path).unwrap().mode() & 0o777,
            0o700,
            "{name}"
        );
    }
}

// The mode of a folder deeper than the longest path cannot be changed everywhere, so the closed folder is moved there.
const DEEP: &str = "import os
top = os.open('.', os.O_RDONLY)
os.makedirs('moved/closed'); open('moved/closed/file', 'w').close(); os.chmod('moved/closed', 0)
for _ in range(5000):
    os.mkdir('d'); os.chdir('d')
os.rename('moved', 'moved', src_dir_fd=top)
open('file', 'w').close()
print('made')";

/// The folders are deeper than the longest path, and too deep for a recursive function.
#[tokio::test(flavor = "multi_thread")]
async fn deepest_folders_are_removed() {
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let sandbox = backend.start(&spec(python())).await.unwrap();
        let command = Command::new(["python3", "-c", DEEP]);
        let result = output(&*sandbox, &command, Duration::from_secs(60))
            .await
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&result.stdout).trim(),
            "made",
            "{result:?}"
        );
        // The state is not saved, the error is short, and the sandbox still works.
        let refused = sandbox.save("deep").await.unwrap_err().to_string();
        assert!(refused.len() < 2000, "{refused}");
        let folder = cache.path().join("sandboxes").join(&sandbox.info().id);
        sandbox.health().await.unwrap();
        sandbox.stop().await.unwrap();
        assert!(!folder.exists());
    }
}

/// A crash must not pass the sandbox's memory to a program of the host that collects core dumps.
#[tokio::test(flavor = "multi_thread")]
async fn crashes_reach_no_host_collector() {
    let script = "import resource; print(resource.getrlimit(resource.RLIMIT_CORE))";
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let sandbox = backend.start(&spec(python())).await.unwrap();
        // The limit is 1 and not 0, because the kernel also starts a collector behind a pipe for 0.
        assert_eq!(
            run_script(&*sandbox, &format!("python3 -c '{script}'")).await,
            "(1, 1)"
        );
        sandbox.stop().await.unwrap();
    }
}

/// A copy takes no more space than its original.
#[tokio::test(flavor = "multi_thread")]
async fn hard_links_are_stored_once() {
    const MANY_NAMES: &str = "import os, tempfile
for folder in ('.', tempfile.gettempdir(), os.environ['HOME']):
    with open(folder + '/file', 'wb') as f: f.write(os.urandom(4 << 20))
    for n in range(50): os.link(folder + '/file', folder + '/%d' % n)
print('made')";
    for force in [Isolation::Namespaces, Isolation::Landlock] {
        let cache = tempfile::tempdir().unwrap();
        let Some(backend) = local(cache.path(), force) else {
            continue;
        };
        let held = || {
            let du = std::process::Command::new("du")
                .args(["-sm"])
                .arg(cache.path())
                .output()
                .unwrap();
            let text = String::from_utf8(du.stdout).unwrap();
            text.split_whitespace()
                .next()
                .unwrap()
                .parse::<u64>()
                .unwrap()
        };
        let before = held();
        let mut sandbox = backend.start(&spec(python())).await.unwrap();
        for step in ["saved", "again"] {
            if step == "saved" {
                assert_eq!(run_python(&*sandbox, MANY_NAMES).await, "made");
            }
            let fork = sandbox.fork().await.unwrap();
            sandbox.save(step).await.unwrap();
            sandbox.stop().await.unwrap();
            fork.stop().await.unwrap();
            let start = SandboxSource::Saved(step.to_owned());
            sandbox = backend.start(&spec(start)).await.unwrap();
            let names = run_script(&*sandbox, "stat -c %h file").await;
            assert_eq!(names, "51", "{force:?}");
        }
        sandbox.stop().await.unwrap();
        let growth = held() - before;
        assert!(growth < 100, "{force:?}: {growth} MiB");
    }
}
