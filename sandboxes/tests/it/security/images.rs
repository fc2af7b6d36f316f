//! Tests of images and system packages: what a recipe must not start from, and what must not run in the step that can
//! reach Debian's servers.

use testwright_sandboxes::environment::{BuildSettings, prepare};
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::{Backend, SandboxSource, Spec};

use super::network::recipe_here;
use crate::docker::{engine, run, spec};
use crate::place::TestDir;

/// Runs a script on the host.
pub(crate) fn on_host(script: &str) -> String {
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {stderr}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test]
async fn docker_saved_state_is_no_start_image() {
    let Some(docker) = engine().await else { return };
    let name = format!("thief-{}", std::process::id());
    let sandbox = docker.start(&spec()).await.unwrap();
    run(&*sandbox, "echo secret > file").await;
    sandbox.save(&name).await.unwrap();
    sandbox.stop().await.unwrap();
    let state = format!("testwright/state:{name}");
    let other = format!("testwright-tests/thief:{}", std::process::id());
    on_host(&format!("docker tag {state} {other}"));
    let id = on_host(&format!("docker inspect -f '{{{{.Id}}}}' {state}"));
    let mut refused = Vec::new();
    for image in [&state, &other, &id, &format!("docker.io/{state}")] {
        refused.push(docker.image_digest(image).await.err());
        let start = SandboxSource::Image(image.clone());
        let started = docker.start(&Spec { start, ..spec() }).await;
        if let Ok(sandbox) = &started {
            sandbox.stop().await.unwrap();
        }
        refused.push(started.err());
    }
    on_host(&format!("docker rmi {other}"));
    docker.remove_saved(&name).await.unwrap();
    for error in refused {
        let error = error.unwrap();
        assert_eq!(error.kind, ErrorKind::Input, "{error}");
        assert!(error.to_string().contains("saved state"), "{error}");
    }
}

/// A variable can name a configuration file for apt, which can run commands, and programs such as Perl are as easily
/// misled. So only the recipe's own steps get its variables.
#[tokio::test(flavor = "multi_thread")]
async fn docker_apt_sees_no_recipe_variables() {
    let Some(docker) = engine().await else { return };
    let folder = tempfile::tempdir().unwrap();
    let Some(place) = TestDir::on(Box::new(docker), folder) else {
        return;
    };
    let mut recipe = recipe_here();
    recipe.system_packages = vec!["hello".to_owned()];
    recipe
        .env
        .insert("APT_CONFIG".to_owned(), "/canary".to_owned());
    // No proxy listens there, because this tests apt and not Debian's servers.
    let closed = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"]
        .map(|name| (name.to_owned(), "http://127.0.0.1:9".to_owned()));
    let settings = BuildSettings {
        proxies: closed.into(),
        ..place.settings()
    };
    let source = place.source();
    let backend = place.backend.as_ref();
    let error = prepare(backend, &source, &recipe, "a test", &settings, &|_| ()).await;
    let error = error.err().unwrap().to_string();
    assert!(error.contains("install system packages"), "{error}");
    assert!(!error.contains("/canary"), "{error}");
    assert!(error.contains("debian"), "{error}");
}
