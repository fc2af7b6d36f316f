//! Tests of base images from Dockerfiles, with a real engine.

use testwright_sandboxes::environment::{BaseImage, BuildSettings, build_base_image};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::{Limits, SandboxError, SandboxSource, Spec};

use crate::docker::{engine, run, spec};
use crate::place::TestDir;
use crate::security::images::on_host;

async fn place() -> Option<TestDir> {
    let docker = engine().await?;
    TestDir::on(Box::new(docker), tempfile::tempdir().unwrap())
}

/// Builds a file of the repository. Also returns the number of steps that were reported.
async fn build(
    place: &TestDir,
    file: &str,
    settings: &BuildSettings,
) -> (Result<BaseImage, SandboxError>, usize) {
    let (source, steps) = (place.source(), std::sync::Mutex::new(0));
    let count = |_| *steps.lock().unwrap() += 1;
    let pythons = ["3.11".to_owned()];
    let backend = place.backend.as_ref();
    let built = build_base_image(backend, &source, file, &pythons, settings, &count).await;
    (built, steps.into_inner().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_dockerfile_is_built_once() {
    let Some(place) = place().await else { return };
    place.write(
        "docker/Dockerfile",
        "ARG VERSION=0\nFROM testwright/python:$VERSION AS base\nFROM base\nEXPOSE 80\n\
         COPY tracked.txt /copied\nENV MARK=yes\nRUN test \"$(ls /sys/class/net)\" = lo\n",
    );
    place.write(
        ".devcontainer/devcontainer.json",
        r#"{"build": {"dockerfile": "../docker/Dockerfile", "context": "..", "args": {"VERSION": "3.11"}}}"#,
    );
    let settings = place.settings();
    let file = ".devcontainer/devcontainer.json";
    let image = build(&place, file, &settings).await.0.unwrap();
    let start = SandboxSource::Image(image.name.clone());
    let sandbox = place
        .backend
        .start(&Spec { start, ..spec() })
        .await
        .unwrap();
    let output = run(&*sandbox, "cat /copied; echo $MARK").await;
    sandbox.stop().await.unwrap();
    assert_eq!(output.stdout, b"as committedyes\n");
    let (again, steps) = build(&place, file, &settings).await;
    assert_eq!((again.unwrap().name, steps), (image.name.clone(), 0));

    // Another repository could read the copied files.
    place.write("Dockerfile", &format!("FROM {}\n", image.name));
    let stolen = build(&place, "Dockerfile", &settings).await.0.unwrap_err();
    place.write("tracked.txt", "changed");
    let changed = build(&place, file, &settings).await.0.unwrap();
    on_host(&format!("docker rmi -f {} {}", image.name, changed.name));
    assert_eq!(stolen.kind, ErrorKind::Input, "{stolen}");
    assert_ne!(changed.name, image.name);
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_failing_steps_are_explained() {
    let Some(place) = place().await else { return };
    let limits = Limits {
        processes: 40,
        ..place.settings().limits
    };
    let settings = BuildSettings {
        limits,
        ..place.settings()
    };
    let base = "FROM testwright/python:3.11\n";
    for (rest, kind, words) in [
        ("RUN echo why; exit 3\n", ErrorKind::Build, "why"),
        ("RUNS x\n", ErrorKind::Build, "RUNS"),
        ("COPY missing /x\n", ErrorKind::Build, "missing"),
        ("ADD http://127.0.0.1/x /x\n", ErrorKind::Input, "download"),
        (
            "RUN sleep 1; for i in $(seq 99); do sleep 9 & done\n",
            ErrorKind::Build,
            "fork",
        ),
    ] {
        place.write("Dockerfile", &format!("{base}{rest}"));
        let error = build(&place, "Dockerfile", &settings).await.0.unwrap_err();
        assert_eq!(error.kind, kind, "{error}");
        assert!(error.message.contains(words), "{rest}: {error}");
        assert_eq!(error.log.is_some(), kind == ErrorKind::Build, "{error}");
    }
    let missing = build(&place, "other", &settings).await.0.unwrap_err();
    assert_eq!(missing.kind, ErrorKind::Input, "{missing}");
}
