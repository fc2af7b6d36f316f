#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;

fn findings() -> Vec<Finding> {
    vec![
        Finding::ok("programs", "git", "git version 2.39"),
        Finding::note("programs", "uv", "it was not found").hint("pip install uv"),
        Finding::missing("sandbox local", "isolation", "none").hint("allow user namespaces"),
        Finding::ok("sandbox docker", "engine", "Docker 28"),
    ]
}

#[test]
fn findings_are_grouped_and_come_with_hints() {
    let report = Report {
        testwright: "0.0.0",
        findings: findings(),
        environments: vec![CachedEnvironment {
            name: "env-1".to_owned(),
            python: Some("3.11".to_owned()),
            origin: "detected from pyproject.toml".to_owned(),
            packages: 5,
            bytes: 5 << 20,
        }],
        settings: vec![Setting {
            key: "run.max-steps".to_owned(),
            value: "60".to_owned(),
            origin: "default".to_owned(),
        }],
        removed: Vec::new(),
    };
    let args = Args {
        clean: true,
        settings: true,
        ..Args::default()
    };
    insta::assert_snapshot!(render(&report, &args), @r"
    testwright 0.0.0

    programs
      ok       git: git version 2.39
      note     uv: it was not found
               → pip install uv

    sandbox local
      missing  isolation: none
               → allow user namespaces

    sandbox docker
      ok       engine: Docker 28

    environments in the cache
              5 MiB  env-1 (detected from pyproject.toml, Python 3.11, 5 packages)

    settings in force
      run.max-steps = 60  (default)

    removed
      nothing: no killed run has left anything behind
    ");
}

#[test]
fn a_run_needs_git_and_one_kind_of_sandbox() {
    assert!(verdict(&findings()).is_ok());
    let without = |what: &str| {
        let left: Vec<Finding> = findings().into_iter().filter(|f| f.what != what).collect();
        verdict(&left).unwrap_err()
    };
    assert_eq!(without("git").exit_code(), 3);
    insta::assert_snapshot!(without("engine").render(), @r"
    error: failed to find all that a run needs
      cause: neither `--sandbox local` nor `--sandbox docker` nor `--sandbox landlock` can be had here
      hint: see the lines above
    ");
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let sources = Sources {
        variables: [
            ("OPENAI_API_KEY", "sk-pa55word"),
            ("GITHUB_TOKEN", "ghp_pa55word"),
            ("OPENAI_BASE_URL", "http://user:pa55word@127.0.0.1:9/v1"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into(),
        ..Sources::default()
    };
    let settings = Settings::load(&sources).unwrap();
    let mut shown = checks::configuration(&settings);
    shown.extend(checks::model(&settings, true).await);
    shown.push(checks::github(&settings));
    let shown: String = shown.iter().map(Finding::render).collect();
    assert!(shown.contains("OPENAI_API_KEY is set"), "{shown}");
    assert!(shown.contains("missing  online"), "{shown}");
    assert!(!shown.contains("pa55word"), "{shown}");
}
