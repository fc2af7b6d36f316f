#![allow(clippy::unwrap_used)]
use super::*;
use crate::error::ErrorKind;

#[test]
fn dockerfile_paths_are_relative_to_file() {
    let text = r#"// For developers
            {
              "name": "A \"quoted\" // name, }",
              "build": {
                "dockerfile": "../docker/Dockerfile.dev", /* not the default */
                "context": "..",
                "target": "dev",
                "args": { "VARIANT": "3.11", "USER": "${localEnv:USER}", "N": 1, },
              },
            }"#;
    let expected = ImageSource {
        dockerfile: String::new(),
        path: Some("docker/Dockerfile.dev".to_owned()),
        context: String::new(),
        args: [("VARIANT".to_owned(), "3.11".to_owned())].into(),
        target: Some("dev".to_owned()),
    };
    assert_eq!(parse(text, ".devcontainer").unwrap(), expected);
    let old = r#"{"dockerFile": "Dockerfile"}"#;
    let source = parse(old, ".devcontainer").unwrap();
    assert_eq!(source.path.as_deref(), Some(".devcontainer/Dockerfile"));
    assert_eq!(source.context, ".devcontainer");
}

#[test]
fn image_becomes_a_dockerfile() {
    let source = parse(r#"{"image": "python:3.11",}"#, "").unwrap();
    assert_eq!(source.dockerfile, "FROM python:3.11\n");
    let source = parse(r#"{"image": "x\nRUN y"}"#, "").unwrap();
    assert_eq!(source.dockerfile, "FROM x RUN y\n");
}

#[test]
fn other_devcontainers_are_refused() {
    for (text, why) in [
        (r#"{"dockerComposeFile": "compose.yml"}"#, "Compose"),
        ("{}", "neither"),
        ("{", "EOF"),
        (r#"{"build": {"dockerfile": "../../x"}}"#, "outside"),
    ] {
        let error = parse(text, ".devcontainer").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(error.message.contains(why), "{error}");
    }
}
