//! When images are pulled, with a server in place of an engine.

use testwright_sandboxes::docker::{Docker, DockerSettings, Pull};
use testwright_sandboxes::{Backend, SandboxSource, Spec};

use crate::index_server::{Answer, Server};

/// Returns how often the engine pulls an image that it has already, for the start of one sandbox.
async fn pulls(pull: Pull, start: SandboxSource) -> usize {
    let server = Server::start(|request| {
        let json = |status, body: &str| Answer::new(status, "application/json", body);
        let path = request.path.as_str();
        let has_image = ["bookworm", "app", "dockerfile"]
            .iter()
            .any(|name| path.contains(name));
        if path.ends_with("/version") {
            let version =
                r#"{"Version": "27.0", "ApiVersion": "1.43", "Os": "linux", "Arch": "amd64"}"#;
            json("200 OK", version)
        } else if path.contains("/images/create?") {
            json("200 OK", "{\"status\": \"Image is up to date\"}\r\n")
        } else if has_image && path.ends_with("/json") {
            json("200 OK", r#"{"Id": "sha256:0"}"#)
        } else {
            json("404 Not Found", r#"{"message": "not found"}"#)
        }
    });
    let settings = DockerSettings {
        host: Some(format!("tcp://127.0.0.1:{}", server.port)),
        pull,
        ..DockerSettings::default()
    };
    let docker = Docker::connect(settings).await.unwrap();
    // The server creates no containers.
    assert!(docker.start(&Spec::new(start, "test")).await.is_err());
    let requests = server.requests().into_iter();
    let pulls = requests.filter(|request| request.path.contains("/images/create?"));
    pulls.count()
}

#[tokio::test]
async fn existing_images_are_pulled_only_if_always() {
    let python = || SandboxSource::Python("3.11".to_owned());
    let image = |name: &str| SandboxSource::Image(name.to_owned());
    for start in [python(), image("acme/app:1")] {
        assert_eq!(pulls(Pull::Always, start.clone()).await, 1, "{start:?}");
        assert_eq!(pulls(Pull::Missing, start.clone()).await, 0, "{start:?}");
        assert_eq!(pulls(Pull::Never, start.clone()).await, 0, "{start:?}");
    }
    // No registry has the images that testwright makes.
    assert_eq!(
        pulls(Pull::Always, image("testwright/dockerfile:0")).await,
        0
    );
}
