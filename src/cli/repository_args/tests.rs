#![allow(clippy::unwrap_used)]
use clap::Parser;

use super::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    place: RepositoryArgs,
    #[arg(long, global = true)]
    config: Option<PathBuf>,
}

#[test]
fn flags_override_recorded_settings() {
    let sandbox = |flags: &[&str]| {
        let line = Line::parse_from(["testwright"].iter().chain(flags));
        assert_eq!(line.config, None);
        let recorded = |flags: &mut Flags| flags.set("run.sandbox", Some("local"));
        let flags = line.place.sandbox.sources(recorded).flags;
        let sources = Sources {
            flags,
            ..Sources::default()
        };
        Settings::load(&sources).unwrap().run.sandbox
    };
    assert_eq!(sandbox(&[]), "local");
    assert_eq!(sandbox(&["--sandbox", "docker"]), "docker");
}

#[test]
fn flags_drop_incompatible_recorded_settings() {
    let settings = |recorded: [(&str, &str); 2], flags: &[&str]| {
        let line = Line::parse_from(["testwright"].iter().chain(flags));
        let recorded = |flags: &mut Flags| {
            for (key, value) in recorded {
                flags.set(key, Some(value));
            }
        };
        let sources = Sources {
            flags: line.place.sources(recorded).flags,
            ..Sources::default()
        };
        let run = Settings::load(&sources).unwrap().run;
        [Some(run.sandbox), run.image, run.dockerfile].map(Option::unwrap_or_default)
    };
    let image = [("run.sandbox", "docker"), ("run.image", "old")];
    let dockerfile = [("run.sandbox", "docker"), ("run.dockerfile", "old")];
    let no_image = [("run.sandbox", "local"), ("run.python", "3.11")];
    assert_eq!(settings(image, &[]), ["docker", "old", ""]);
    let docker = ["--sandbox", "docker"];
    assert_eq!(settings(dockerfile, &docker), ["docker", "", "old"]);
    let local = ["--sandbox", "local"];
    assert_eq!(settings(image, &local), ["local", "", ""]);
    assert_eq!(settings(dockerfile, &local), ["local", "", ""]);
    let new_image = ["--image", "new"];
    assert_eq!(settings(dockerfile, &new_image), ["docker", "new", ""]);
    let new_dockerfile = ["--dockerfile", "new"];
    assert_eq!(settings(image, &new_dockerfile), ["docker", "", "new"]);
    assert_eq!(settings(no_image, &new_dockerfile), ["docker", "", "new"]);
}

#[test]
fn flags_override_recorded_place() {
    let place = |flags: &[&str]| {
        let line = Line::parse_from(["testwright"].iter().chain(flags));
        let place = line.place.or_recorded(Some("/recorded"), Some("abc"));
        let RepositoryLocation { location, revision } = place.repository_location(None);
        (location, revision.unwrap())
    };
    let is = |location: &str, revision: &str| (location.to_owned(), revision.to_owned());
    assert_eq!(place(&[]), is("/recorded", "abc"));
    assert_eq!(place(&["--repo", "/moved"]), is("/moved", "abc"));
    assert_eq!(place(&["--commit", "v1"]), is("/recorded", "v1"));
}

#[test]
fn unsupported_pythons_are_refused() {
    let refused = |version| {
        check_python_version(version, "--python")
            .unwrap_err()
            .render()
    };
    assert!(check_python_version("3.14", "--python").is_ok());
    assert_eq!(
        refused("2.7"),
        "error: Python 2.7 is not supported (3.6 or later)"
    );
    insta::assert_snapshot!(refused("3.11.4"), @r"
    error: invalid --python: `3.11.4` is not a Python version
      hint: write it as X.Y, e.g. 3.11
    ");
}
