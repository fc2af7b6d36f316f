//! Tests of the `docker` backend with a real engine.
//!
//! `DOCKER_HOST` selects another engine. For Podman, run `docker save testwright/python:3.11 | podman load`, then
//! `podman system service --time=0 unix:///tmp/podman.sock`, and set `DOCKER_HOST=unix:///tmp/podman.sock`. It needs
//! catatonit.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use testwright_sandboxes::docker::{Docker, DockerSettings, Pull};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::sandbox::{Output, output};
use testwright_sandboxes::{Backend, Command, Limits, Process, Sandbox, SandboxSource, Spec};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::conformance::subjects::Subject;
use crate::security::images::on_host;

/// Returns the engine, or `None` if the tests may be skipped.
pub(crate) async fn engine() -> Option<Docker> {
    if !tokio::task::spawn_blocking(crate::base_image::is_available)
        .await
        .unwrap()
    {
        return None;
    }
    let settings = DockerSettings {
        pull: Pull::Never,
        ..DockerSettings::default()
    };
    Some(Docker::connect(settings).await.unwrap())
}

/// The available engine.
pub(crate) struct EngineSubject;

#[async_trait]
impl Subject for EngineSubject {
    async fn backend(&self, _: &Path) -> Option<Arc<dyn Backend>> {
        Some(Arc::new(engine().await?))
    }

    fn start(&self) -> SandboxSource {
        SandboxSource::Python("3.11".to_owned())
    }
}

pub(crate) fn spec() -> Spec {
    Spec::new(SandboxSource::Python("3.11".to_owned()), "test")
}

pub(crate) async fn run(sandbox: &dyn Sandbox, script: &str) -> Output {
    output(sandbox, &Command::shell(script), Duration::from_secs(60))
        .await
        .unwrap()
}

async fn text(sandbox: &dyn Sandbox, script: &str) -> String {
    let output = run(sandbox, script).await;
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[tokio::test]
async fn docker_tools_are_unprivileged_and_offline() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    assert_eq!(
        text(&*sandbox, "id -u; pwd; echo $HOME").await,
        "1000\n/testbed\n/tmp"
    );
    assert_eq!(
        run(&*sandbox, "echo > /testbed/x && echo > /tmp/x")
            .await
            .code,
        0
    );
    assert_ne!(run(&*sandbox, "echo > /opt/testwright/x").await.code, 0);
    assert_ne!(run(&*sandbox, "echo > /usr/local/bin/python").await.code, 0);
    assert_eq!(
        text(
            &*sandbox,
            "grep -i '^cap' /proc/self/status | grep -v 0000000000000000"
        )
        .await,
        ""
    );
    assert_eq!(text(&*sandbox, "ls /sys/class/net").await, "lo");
    assert!(sandbox.info().isolation.contains("no network"));
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn docker_streams_stay_separate_and_complete() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    let both = run(&*sandbox, "echo out; echo err >&2; exit 7").await;
    assert_eq!(
        (both.code, &both.stdout[..], &both.stderr[..]),
        (7, &b"out\n"[..], &b"err\n"[..])
    );
    for _ in 0..5 {
        let much = run(
            &*sandbox,
            "head -c 3000000 /dev/zero; head -c 200000 /dev/zero >&2",
        )
        .await;
        assert_eq!((much.stdout.len(), much.stderr.len()), (3_000_000, 200_000));
    }
    let killed = run(&*sandbox, "kill -9 $$").await;
    assert_eq!(killed.code, 137);
    let missing = output(
        &*sandbox,
        &Command::new(["no-such-program"]),
        Duration::from_secs(30),
    )
    .await
    .unwrap();
    assert_eq!(missing.code, 127);
    assert!(missing.stdout.is_empty() && !missing.stderr.is_empty());
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn docker_end_of_input_reaches_process() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    let Process {
        mut stdin,
        mut stdout,
        exit,
        ..
    } = sandbox
        .spawn(&Command::shell("wc -c; sleep 0.3; echo after"))
        .await
        .unwrap();
    let data = vec![b'x'; 1 << 20];
    stdin.write_all(&data).await.unwrap();
    stdin.shutdown().await.unwrap();
    let mut seen = String::new();
    stdout.read_to_string(&mut seen).await.unwrap();
    assert_eq!(seen, "1048576\nafter\n");
    assert_eq!(exit.await.unwrap(), 0);
    // Dropping standard input has the same effect.
    let Process {
        stdin, mut stdout, ..
    } = sandbox.spawn(&Command::new(["cat"])).await.unwrap();
    drop(stdin);
    seen.clear();
    stdout.read_to_string(&mut seen).await.unwrap();
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn docker_files_are_transferred() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    let ours = Path::new("/opt/testwright/bin/tool");
    sandbox
        .upload(ours, b"#!/bin/sh\necho ran\n", 0o755)
        .await
        .unwrap();
    assert_eq!(text(&*sandbox, "/opt/testwright/bin/tool").await, "ran");
    assert_ne!(
        run(&*sandbox, "echo > /opt/testwright/bin/tool").await.code,
        0
    );
    sandbox
        .upload(Path::new("/testbed/a/b.txt"), b"b", 0o644)
        .await
        .unwrap();
    assert_eq!(
        text(
            &*sandbox,
            "echo more >> a/b.txt; touch a/new; ln -s a/b.txt link; cat link"
        )
        .await,
        "bmore"
    );
    assert_eq!(
        sandbox.download(Path::new("/testbed/link")).await.unwrap(),
        b"bmore\n"
    );
    let none = sandbox
        .download(Path::new("/testbed/none"))
        .await
        .unwrap_err();
    assert_eq!(none.kind, ErrorKind::NotFound);
    let folder = sandbox.download(Path::new("/testbed/a")).await.unwrap_err();
    assert_eq!(folder.kind, ErrorKind::Input);

    let home = tempfile::tempdir().unwrap();
    let archive = home.path().join("a.tar");
    let mut builder = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o754);
    header.set_mtime(1_000_000_000);
    header.set_size(2);
    builder
        .append_data(&mut header, "deep/file", &b"hi"[..])
        .unwrap();
    std::fs::write(&archive, builder.into_inner().unwrap()).unwrap();
    sandbox
        .unpack(Path::new("/testbed/un/packed"), &archive)
        .await
        .unwrap();
    let stat = text(&*sandbox, "stat -c '%u %a %Y' un/packed/deep/file").await;
    assert_eq!(stat, "1000 754 1000000000");
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn docker_fork_is_independent_copy() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    sandbox
        .upload(Path::new("/opt/testwright/mark"), b"mark", 0o644)
        .await
        .unwrap();
    run(
        &*sandbox,
        "mkdir d; echo one > d/file; echo x > /tmp/t; ln -s d/file link; chmod 700 d",
    )
    .await;
    let fork = sandbox.fork().await.unwrap();
    let state = "cat d/file link /tmp/t /opt/testwright/mark; stat -c %a d";
    assert_eq!(text(&*fork, state).await, "one\none\nx\nmark700");
    run(&*fork, "echo two > d/file; rm link").await;
    assert_eq!(text(&*sandbox, "cat d/file link").await, "one\none");
    let second = fork.fork().await.unwrap();
    assert_eq!(text(&*second, "cat d/file; ls").await, "two\nd");
    for sandbox in [second, fork, sandbox] {
        sandbox.stop().await.unwrap();
    }
}

#[tokio::test]
async fn docker_saved_state_drops_variables() {
    let Some(docker) = engine().await else { return };
    let name = format!("test-{}", std::process::id());
    assert!(!docker.has_saved(&name).await.unwrap());
    let builder = Spec {
        root: true,
        env: BTreeMap::from([("SECRET".to_owned(), "token".to_owned())]),
        ..spec()
    };
    let sandbox = docker.start(&builder).await.unwrap();
    assert_eq!(text(&*sandbox, "id -u; echo $SECRET").await, "0\ntoken");
    run(
        &*sandbox,
        "echo root > built; mkdir -p /opt/testwright/env; echo e > /opt/testwright/env/e",
    )
    .await;
    let replace =
        "cd /usr/local/lib/python3.11 && rm -r idlelib && mkdir idlelib && touch idlelib/new";
    assert_eq!(run(&*sandbox, replace).await.code, 0);
    let much = "head -c 3000000 /dev/urandom > /opt/testwright/env/much";
    assert_eq!(run(&*sandbox, much).await.code, 0);
    sandbox.save(&name).await.unwrap();
    sandbox.stop().await.unwrap();
    // The size does not include the base image.
    let bytes = docker.saved_bytes(&name).await.unwrap();
    assert!((3_000_000..30_000_000).contains(&bytes), "{bytes}");
    assert!(docker.has_saved(&name).await.unwrap());

    let start = SandboxSource::Saved(name.clone());
    let sandbox = docker
        .start(&Spec {
            start: start.clone(),
            ..spec()
        })
        .await
        .unwrap();
    assert_eq!(
        text(
            &*sandbox,
            "cat built; echo $SECRET; echo mine > built; cat built"
        )
        .await,
        "root\n\nmine"
    );
    assert_eq!(
        text(&*sandbox, "ls /usr/local/lib/python3.11/idlelib").await,
        "new"
    );
    assert_ne!(run(&*sandbox, "echo > /opt/testwright/env/e").await.code, 0);
    sandbox.stop().await.unwrap();
    docker.remove_saved(&name).await.unwrap();
    docker.remove_saved(&name).await.unwrap();
    assert!(!docker.has_saved(&name).await.unwrap());
    let error = docker.start(&Spec { start, ..spec() }).await.err().unwrap();
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn docker_dead_sandbox_is_noticed() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    sandbox.health().await.unwrap();
    let Process { exit, .. } = sandbox
        .spawn(&Command::new(["sleep", "100"]))
        .await
        .unwrap();
    sandbox.stop().await.unwrap();
    sandbox.stop().await.unwrap();
    assert_eq!(sandbox.health().await.unwrap_err().kind, ErrorKind::Dead);
    assert_eq!(
        sandbox
            .spawn(&Command::new(["true"]))
            .await
            .err()
            .unwrap()
            .kind,
        ErrorKind::Dead
    );
    let ended = tokio::time::timeout(Duration::from_secs(20), exit)
        .await
        .unwrap();
    assert!(ended.is_err() || ended.is_ok_and(|code| code != 0));
}

#[tokio::test]
async fn docker_dropped_sandbox_is_removed() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    let process = sandbox
        .spawn(&Command::new(["sleep", "100"]))
        .await
        .unwrap();
    drop(sandbox);
    let ended = tokio::time::timeout(Duration::from_secs(30), process.exit)
        .await
        .unwrap();
    assert!(ended.is_err() || ended.is_ok_and(|code| code != 0));
}

#[tokio::test]
async fn docker_interrupt_waits_for_removal() {
    let Some(docker) = engine().await else { return };
    let sandbox = docker.start(&spec()).await.unwrap();
    let id = sandbox.info().id.clone();
    // Dropping it starts a removal in the background, and `abandon` must wait for that.
    drop(sandbox);
    tokio::task::yield_now().await;
    docker.abandon().await.unwrap();
    let left = on_host(&format!("docker ps --all --quiet --filter id={id}"));
    assert_eq!(left, "");
}

#[tokio::test]
async fn docker_limits_hold() {
    let Some(docker) = engine().await else { return };
    let limits = Limits {
        memory: 128 << 20,
        processes: 40,
        cpus: 1.0,
        file_size: 1 << 20,
        ..Limits::default()
    };
    let sandbox = docker.start(&Spec { limits, ..spec() }).await.unwrap();
    let file = run(&*sandbox, "head -c 2000000 /dev/zero > /tmp/big").await;
    assert_ne!(file.code, 0);
    assert_eq!(text(&*sandbox, "stat -c %s /tmp/big").await, "1048576");
    let many = run(
        &*sandbox,
        "for i in $(seq 100); do sleep 5 & done; echo all",
    )
    .await;
    assert!(!String::from_utf8_lossy(&many.stdout).contains("all") || !many.stderr.is_empty());
    sandbox.stop().await.unwrap();
}

#[tokio::test]
async fn docker_errors_have_hints() {
    let Some(docker) = engine().await else { return };
    let none = docker.check_python("9.99").await.unwrap_err();
    assert_eq!(none.kind, ErrorKind::NotFound);
    assert!(none.hint.unwrap().contains("make-base-image --python 9.99"));
    docker
        .check_python("3.11")
        .await
        .expect("testwright/python:3.11 exists (sandboxes/base-images)");
    let image = Spec {
        start: SandboxSource::Image("no/such:image".to_owned()),
        ..spec()
    };
    assert_eq!(
        docker.start(&image).await.err().unwrap().kind,
        ErrorKind::NotFound
    );
}

#[tokio::test]
async fn missing_engine_gives_hint() {
    for host in ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1"] {
        let settings = DockerSettings {
            host: Some(host.to_owned()),
            ..DockerSettings::default()
        };
        let begin = Instant::now();
        let error = Docker::connect(settings).await.err().unwrap();
        assert_eq!(error.kind, ErrorKind::Unavailable, "{error}");
        assert!(
            error.hint.unwrap().contains("start Docker"),
            "after {:?}",
            begin.elapsed()
        );
    }
    let odd = DockerSettings {
        host: Some("gopher://x".to_owned()),
        ..DockerSettings::default()
    };
    assert_eq!(
        Docker::connect(odd).await.err().unwrap().kind,
        ErrorKind::Input
    );
}

#[tokio::test]
async fn docker_image_digest_follows_content() {
    let Some(docker) = engine().await else { return };
    let image = format!("testwright-tests/digest:{}", std::process::id());
    let mut digests = Vec::new();
    for content in ["one", "two"] {
        let import = format!(
            "d=$(mktemp -d) && echo {content} > $d/file && tar -C $d -c . | docker import - {image} && rm -r $d"
        );
        on_host(&import);
        for _ in 0..2 {
            digests.push(docker.image_digest(&image).await.unwrap());
        }
        on_host(&format!("docker rmi -f {image}"));
    }
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[2], digests[3]);
    assert_ne!(digests[0], digests[2]);
    let error = docker.image_digest(&image).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
}
