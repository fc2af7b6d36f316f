#![allow(clippy::unwrap_used, clippy::expect_used)]

use super::*;
use testwright_config::settings::Origin;

fn findings() -> Vec<Finding> {
    vec![
        Finding::ok("programs", "git", "git version 2.39"),
        Finding::note("programs", "uv", "it was not found").hint("pip install uv"),
        Finding::missing("sandbox local", "isolation", "none").hint("allow user namespaces"),
        Finding::ok("sandbox docker", "engine", "Docker 28"),
    ]
}

#[test]
fn findings_are_grouped_with_hints() {
    let report = DoctorReport {
        testwright: "0.0.0",
        findings: findings(),
        environments: vec![CachedEnvironment {
            name: "env-1".to_owned(),
            repository: "o/n".to_owned(),
            commit: Some("0123456789abcdef".to_owned()),
            last_used: Some("2026-04-01T12:00:00Z".to_owned()),
            python: Some("3.11".to_owned()),
            origin: "detected from pyproject.toml".to_owned(),
            packages: 1,
            bytes: 5 << 20,
        }],
        settings: vec![Setting {
            key: "run.max-steps".to_owned(),
            value: "60".to_owned(),
            origin: Origin::Default,
        }],
        removed: Vec::new(),
        verdict: "Ready: runs work.".to_owned(),
    };
    let args = Args {
        clean: true,
        settings: true,
        ..Args::default()
    };
    insta::assert_snapshot!(render(&report, &args).plain(), @r"
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
              5 MiB  o/n 0123456789ab, last used 2026-04-01 (env-1: detected from pyproject.toml, Python 3.11, 1 package)

    active settings
      run.max-steps = 60  (default)

    removed
      nothing: no killed run left anything behind

    Ready: runs work.
    ");
}

#[test]
fn other_sandboxes_are_optional() {
    let mut settings = Settings::default();
    let mut all = findings();
    assert_eq!(
        verdict(&settings, &all),
        "Not ready: --sandbox local is not available; use --sandbox docker."
    );
    soften_optional(&settings, &mut all);
    assert_eq!(all[2].state, FindingStatus::Missing);
    settings.run.sandbox = "docker".to_owned();
    let ready = verdict(&settings, &all);
    assert!(
        ready.starts_with("Ready: runs work with --sandbox docker; "),
        "{ready}"
    );
    soften_optional(&settings, &mut all);
    assert_eq!(all[2].state, FindingStatus::Note);
}

#[test]
fn run_needs_git_and_a_sandbox() {
    assert!(check_requirements(&findings()).is_ok());
    let without = |what: &str| {
        let remaining_findings: Vec<Finding> =
            findings().into_iter().filter(|f| f.name != what).collect();
        check_requirements(&remaining_findings).unwrap_err()
    };
    assert_eq!(without("git").exit_code(), 3);
    insta::assert_snapshot!(without("engine").render(), @r"
    error: failed to find everything a run needs
      cause: no sandbox is available (`--sandbox local`, `--sandbox docker`, `--sandbox landlock`)
      hint: follow the hints above
    ");
}

#[tokio::test]
async fn secrets_are_hidden() {
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
    let mut findings = checks::configuration(&settings);
    findings.extend(checks::model(&settings, true).await);
    findings.push(checks::github(&settings));
    let mut text = Text::default();
    findings
        .iter()
        .for_each(|finding| finding.render(&mut text));
    let text = text.plain();
    assert!(text.contains("OPENAI_API_KEY is set"), "{text}");
    assert!(text.contains("missing  online"), "{text}");
    assert!(!text.contains("pa55word"), "{text}");
}

#[tokio::test]
async fn azure_is_not_asked_for_models() {
    let mut sources = Sources::default();
    sources.flags.set("run.model", Some("azure/mine"));
    let settings = Settings::load(&sources).unwrap();
    let findings = checks::model(&settings, true).await;
    let named = |name: &str| {
        findings
            .iter()
            .find(|finding| finding.name == name)
            .unwrap()
    };
    assert_eq!(named("online").state, FindingStatus::Note);
    assert!(named("key").text.starts_with("AZURE_OPENAI_API_KEY is "));
    assert_ne!(named("endpoint").text, "OpenAI");
}
