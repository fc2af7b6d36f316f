#![allow(clippy::unwrap_used, clippy::expect_used)]

mod security;

use std::path::{Path, PathBuf};

use super::*;

/// Four sources of settings, in a folder of their own.
struct TestDir {
    folder: tempfile::TempDir,
    sources: Sources,
}

impl TestDir {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["here", "repository", "home"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let sources = Sources {
            user_file: Some(folder.path().join("home/testwright.toml")),
            config: None,
            folder: Some(folder.path().join("here")),
            repository: Some(folder.path().join("repository")),
            variables: [("HOME".to_owned(), "/nowhere".to_owned())].into(),
            flags: Flags::default(),
        };
        TestDir { folder, sources }
    }

    fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name).join(FILE), text).unwrap();
        self
    }

    /// Adds a file that is named with `--config`.
    fn config(mut self, text: &str) -> Self {
        let path = self.folder.path().join("named.toml");
        std::fs::write(&path, text).unwrap();
        self.sources.config = Some(path);
        self
    }

    fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources
            .variables
            .insert(name.to_owned(), value.to_owned());
        self
    }

    fn flag<T: Serialize>(mut self, key: &str, value: T) -> Self {
        self.sources.flags.set(key, Some(value));
        self
    }

    fn load(&self) -> Settings {
        Settings::load(&self.sources).unwrap()
    }

    /// Returns the rendered error, without the folder's name.
    fn refused(&self) -> String {
        let error = Settings::load(&self.sources).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        self.without_folder(&error.render())
    }

    fn without_folder(&self, text: &str) -> String {
        text.replace(self.folder.path().to_str().unwrap(), "DIR")
    }
}

#[test]
fn empty_sources_give_defaults() {
    let settings = TestDir::new().load();
    assert_eq!(settings.run, Run::default());
    assert_eq!(
        (
            settings.run.max_steps,
            settings.run.max_minutes,
            settings.run.max_dollars
        ),
        (60, 30.0, None)
    );
    assert_eq!(settings.run.sandbox, "local");
    assert_eq!(settings.cache, Path::new("/nowhere/.cache/testwright"));
    assert_eq!(
        settings.limits.sandbox(),
        testwright_sandboxes::Limits::default()
    );
    assert!(settings.origins.is_empty() && settings.notes.is_empty());
}

#[test]
fn nearer_layers_win() {
    let mut place = TestDir::new();
    let steps = |place: &TestDir| {
        let settings = place.load();
        (
            settings.run.max_steps,
            place.without_folder(&settings.origin("run.max-steps").to_string()),
        )
    };
    assert_eq!(steps(&place), (60, "default".to_owned()));
    place = place.file("home", "[run]\nmax-steps = 50\nmax-dollars = 2\n");
    assert_eq!(steps(&place), (50, "DIR/home/testwright.toml:2".to_owned()));
    place = place.file("here", "run.max-steps = 40\n");
    assert_eq!(steps(&place), (40, "testwright.toml:1".to_owned()));
    place = place.file("repository", "# ours\n\n[run]\nmax-steps = 30\n");
    assert_eq!(
        steps(&place),
        (30, "DIR/repository/testwright.toml:4".to_owned())
    );
    place = place.config("run.max-steps = 70\n");
    assert_eq!(steps(&place), (70, "DIR/named.toml:1".to_owned()));
    place = place.variable("TESTWRIGHT_MAX_STEPS", "80");
    assert_eq!(steps(&place), (80, "TESTWRIGHT_MAX_STEPS".to_owned()));
    place = place.flag("run.max-steps", 90);
    assert_eq!(steps(&place), (90, "--max-steps".to_owned()));
    // Values that only a lower layer sets still count.
    assert_eq!(place.load().run.max_dollars, Some(2.0));
}

#[test]
fn every_section_is_read() {
    let text = r#"
cache = "kept"
[run]
approach = "swe-agent-plus"
sandbox = "docker"
[model]
base-url = "http://127.0.0.1:8000/v1"
[prices."gpt-4.1"]
prompt = 2
cached = 0.5
completion = 8
date = "2026-11-01"
[docker]
pull = "never"
[limits]
memory = "2 GiB"
test-seconds = 60
[build]
extra-index-urls = ["https://a.example.org/simple"]
ca-bundle = "/etc/ca.pem"
cache-size = "20 GiB"
[github]
base-url = "https://github.example.org"
[environment]
python = "3.9"
requirements = ["pytest<7"]
"#;
    let place = TestDir::new().config(text);
    let settings = place.load();
    let file = place.folder.path().join("named.toml");
    assert_eq!(settings.cache, place.folder.path().join("kept"));
    assert_eq!(settings.prices["gpt-4.1"].cached, Some(0.5));
    assert_eq!(settings.limits.sandbox().memory, 2 << 30);
    assert_eq!(settings.build.ca_bundle, Some(PathBuf::from("/etc/ca.pem")));
    assert_eq!(settings.build.cache_size, Size::new(20 << 30));
    assert_eq!(
        settings.environment.as_ref().unwrap().python.as_deref(),
        Some("3.9")
    );
    assert_eq!(
        settings.origin("prices.gpt-4.1"),
        Origin::File(file.clone(), 8)
    );
    let rows = settings.describe();
    assert!(rows.contains(&Setting {
        key: "run.sandbox".to_owned(),
        value: "\"docker\"".to_owned(),
        origin: Origin::File(file.clone(), 5),
    }));
    assert!(
        rows.iter()
            .any(|row| row.key == "run.max-steps" && row.origin == Origin::Default)
    );
    let record = settings.record();
    assert_eq!(
        (&record["run"]["sandbox"], &record["origins"]["run.sandbox"]),
        (&"docker".into(), &format!("{}:5", file.display()).into())
    );
    // Serialized settings can be read again.
    let again: Settings = serde_json::from_str(&serde_json::to_string(&settings).unwrap()).unwrap();
    assert_eq!(
        (again.run, again.limits, again.prices),
        (settings.run, settings.limits, settings.prices)
    );
}

#[test]
fn file_errors_name_line_and_key() {
    let refused = |text: &str| TestDir::new().file("here", text).refused();
    insta::assert_snapshot!(refused("\n[run]\nmax-step = 5\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:3: unknown key `max-step` in [run]
      hint: did you mean `max-steps`?
    ");
    insta::assert_snapshot!(refused("max-steps = 5\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:1: unknown key `max-steps` at the top level
      hint: `max-steps` belongs under [run]
    ");
    insta::assert_snapshot!(refused("[modle]\nstream = true\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:1: unknown key `modle` at the top level
      hint: did you mean `model`?
    ");
    insta::assert_snapshot!(refused("[run]\nmax_steps = 5\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2: unknown key `max_steps` in [run]
      hint: did you mean `max-steps`?
    ");
    insta::assert_snapshot!(refused("[run]\nzebra = 5\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2: unknown key `zebra` in [run]
      hint: known here: approach, effort, min-confidence, model, sandbox, python, image, dockerfile, project, max-steps, max-dollars, max-tokens, max-minutes, out, prompts
    ");
    insta::assert_snapshot!(refused("[run]\nmax-steps = \"many\"\n"), @r#"
    error: failed to read the settings
      cause: testwright.toml:2: `max-steps` in [run]: invalid type: string "many", expected a whole number, not negative
    "#);
    insta::assert_snapshot!(refused("[run]\nmax-steps = -1\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2: `max-steps` in [run]: invalid value: integer `-1`, expected a whole number, not negative
    ");
    insta::assert_snapshot!(refused("[run]\nmax-steps = 0\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2: `run.max-steps` must be greater than 0, not 0
    ");
    insta::assert_snapshot!(refused("[docker]\npull = \"misisng\"\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2: `pull` in [docker] cannot be `misisng`; it is one of always, missing, never
      hint: did you mean `missing`?
    ");
    insta::assert_snapshot!(refused("[limits]\nmemory = \"4 bananas\"\n"), @r#"
    error: failed to read the settings
      cause: testwright.toml:2: `memory` in [limits]: invalid value: string "4 bananas", expected a size such as "4 GiB", or bytes
    "#);
    insta::assert_snapshot!(refused("[run]\nmax-steps = 5\nmax-steps = 6\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:3:1: duplicate key
    ");
    insta::assert_snapshot!(refused("[run]\n  max-steps = = 5\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2:15: extra `=`, expected nothing
    ");
    insta::assert_snapshot!(refused("[environment]\npyhton = \"3.9\"\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2: unknown key `pyhton` in [environment]
      hint: did you mean `python`?
    ");
    insta::assert_snapshot!(refused("[environment.runner]\nkidn = \"pytest\"\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:2: unknown key `kidn` in [environment.runner]
      hint: did you mean `kind`?
    ");
    insta::assert_snapshot!(refused("[prices.gpt]\nprompt = 1\n"), @r"
    error: failed to read the settings
      cause: testwright.toml:1: `gpt` in [prices]: missing field `completion`
    ");
    let refused = TestDir::new()
        .file("home", "[model]\nbase-url = \"localhost:8000\"\n")
        .refused();
    insta::assert_snapshot!(refused, @r"
    error: failed to read the settings
      cause: DIR/home/testwright.toml:2: `model.base-url` must begin with http:// or https://, not `localhost:8000`
      hint: did you mean `http://localhost:8000`?
    ");
}

#[test]
fn user_file_applies_to_all_repositories() {
    let place = TestDir::new().file("home", "[environment]\npython = \"3.9\"\n");
    insta::assert_snapshot!(place.refused(), @r"
    error: failed to read the settings
      cause: DIR/home/testwright.toml:1: [environment] is not allowed in your own settings, because it describes one repository
      hint: move it to that repository's testwright.toml
    ");
}

#[test]
fn dockerfile_selects_docker_or_is_refused() {
    let place = || TestDir::new().flag("run.dockerfile", "Dockerfile");
    let settings = place().file("home", "run.sandbox = \"local\"\n").load();
    assert_eq!(settings.run.sandbox, "docker");
    assert_eq!(settings.origin("run.sandbox").to_string(), "--dockerfile");
    assert_eq!(
        place().flag("run.sandbox", "local").refused(),
        "error: invalid --dockerfile: needs --sandbox docker, but --sandbox is `local`"
    );
    assert_eq!(
        place().flag("run.image", "x").refused(),
        "error: invalid --dockerfile: cannot be combined with an image"
    );
    let found = TestDir::new().file("repository", "run.dockerfile = \"Dockerfile\"\n");
    assert_eq!(found.load().run.dockerfile, None);
}

#[test]
fn unreadable_file_is_an_error() {
    let place = TestDir::new();
    std::fs::create_dir(place.folder.path().join("home").join(FILE)).unwrap();
    insta::assert_snapshot!(place.refused(), @r"
    error: failed to read the settings
      cause: DIR/home/testwright.toml: is not a file
      hint: correct or remove the file
    ");
    let place = TestDir::new();
    std::fs::write(place.folder.path().join("here").join(FILE), b"run = \xff").unwrap();
    insta::assert_snapshot!(place.refused(), @r"
    error: failed to read the settings
      cause: testwright.toml: is not UTF-8 text
      hint: correct or remove the file
    ");
}

#[test]
fn variables_are_parsed_by_type() {
    let settings = TestDir::new()
        .variable("TESTWRIGHT_MODEL", "5")
        .variable("TESTWRIGHT_MAX_DOLLARS", "1")
        .variable("TESTWRIGHT_MODEL_STREAM", "yes")
        .variable("TESTWRIGHT_MODEL_MAX_TOKENS", "")
        .variable("TESTWRIGHT_LIMITS_MEMORY", "1G")
        .variable("TESTWRIGHT_BUILD_EXTRA_INDEX_URLS", "https://a https://b")
        .variable("TESTWRIGHT_CACHE", "/big/disk")
        .variable("TESTWRIGHT_BUILD_CACHE_SIZE", "1.5T")
        .load();
    assert_eq!(settings.run.model.as_deref(), Some("5"));
    assert_eq!(settings.run.max_dollars, Some(1.0));
    assert!(settings.model.stream);
    assert_eq!(settings.model.max_tokens, None);
    assert_eq!(settings.limits.memory, Size::new(1 << 30));
    assert_eq!(settings.build.extra_index_urls.len(), 2);
    assert_eq!(settings.cache, Path::new("/big/disk"));
    assert_eq!(settings.build.cache_size, Size::new(3 << 39));
    let default = TestDir::new().load().build.cache_size;
    assert_eq!(default, Size::new(50 << 30));

    let place = TestDir::new().variable("TESTWRIGHT_MAX_STEPS", "a few");
    insta::assert_snapshot!(place.refused(), @r#"
    error: failed to read the settings
      cause: TESTWRIGHT_MAX_STEPS: `max-steps` in [run]: invalid type: string "a few", expected a whole number, not negative
    "#);
    let place = TestDir::new().flag("run.max-steps", 0);
    insta::assert_snapshot!(place.refused(), @"error: invalid --max-steps: must be greater than 0, not 0");
    let place = TestDir::new().flag("run.max-steps", u64::MAX);
    insta::assert_snapshot!(place.refused(), @"error: invalid --max-steps: u64 value was too large");
    // A later flag replaces it, as when a user overrides the limit of a recorded run.
    let place = place.flag("run.max-steps", 7);
    assert_eq!(place.load().run.max_steps, 7);
    let place = TestDir::new().variable("TESTWRIGHT_LIMITS_MEMORY", "4");
    insta::assert_snapshot!(place.refused(), @r"
    error: failed to read the settings
      cause: TESTWRIGHT_LIMITS_MEMORY: `limits.memory` must be at least 1 MiB, not 4 B
      hint: write a unit, such as `4 GiB`
    ");
    let notes = TestDir::new()
        .variable("TESTWRIGHT_MAX_STEP", "5")
        .load()
        .notes;
    insta::assert_snapshot!(notes.join("\n"), @"unknown environment variable TESTWRIGHT_MAX_STEP; did you mean TESTWRIGHT_MAX_STEPS?");
}

#[test]
fn testwright_variables_override_shared_ones() {
    let place = TestDir::new()
        .file(
            "home",
            "[run]\nmodel = \"from-file\"\n[build]\nno-proxy = \"from-file\"\n",
        )
        .variable("OPENAI_MODEL", "shared")
        .variable("NO_PROXY", "shared")
        .variable("PIP_INDEX_URL", "https://pip.example.org/simple")
        .variable("UV_INDEX_URL", "https://uv.example.org/simple");
    let settings = place.load();
    assert_eq!(settings.run.model.as_deref(), Some("shared"));
    assert_eq!(settings.build.no_proxy.as_deref(), Some("shared"));
    assert_eq!(
        settings.origin("build.index-url"),
        Origin::Variable("UV_INDEX_URL".to_owned())
    );
    let settings = place.variable("TESTWRIGHT_MODEL", "ours").load();
    assert_eq!(settings.run.model.as_deref(), Some("ours"));
}

#[test]
fn secrets_are_not_shown() {
    let place = TestDir::new()
        .file(
            "home",
            "[build]\nindex-url = \"https://user:pa55word@index.example.org/simple\"\n",
        )
        .variable("OPENAI_API_KEY", "sk-pa55word")
        .variable("GITHUB_TOKEN", "ghp_pa55word")
        .variable("HTTPS_PROXY", "http://user:pa55word@proxy:3128");
    let settings = place.load();
    assert_eq!(settings.model_key().unwrap().reveal(), "sk-pa55word");
    assert_eq!(settings.github_token().unwrap().reveal(), "ghp_pa55word");
    let output = format!(
        "{settings:?} {} {:?}",
        serde_json::to_string(&settings).unwrap(),
        settings.describe()
    );
    assert!(output.contains("index.example.org") && output.contains("proxy:3128"));
    assert!(!output.contains("pa55word"), "{output}");

    // A key in place of the variable's name, or under an unknown name.
    for line in [
        "api-key-env = \"sk-pa55-word\"",
        "api-key-env = \"ghp_pa55word\"",
        "api-key = \"sk-pa55word\"",
    ] {
        let refused = TestDir::new()
            .file("home", &format!("[model]\n{line}\n"))
            .refused();
        assert!(!refused.contains("pa55"), "{refused}");
        assert!(refused.contains("api-key-env"), "{refused}");
    }
}

#[test]
fn extra_body_is_one_value() {
    let file =
        "[model]\nseed = 7\n[model.extra-body]\ntop_p = 0.9\nreasoning = { effort = \"low\" }\n";
    let place = TestDir::new().config(file);
    let settings = place.load();
    assert_eq!(settings.model.seed, Some(7));
    let expected = serde_json::json!({ "top_p": 0.9, "reasoning": { "effort": "low" } });
    assert_eq!(
        Some(&settings.model.extra_body),
        expected.as_object(),
        "from a file"
    );
    assert_eq!(settings.record()["model"]["extra-body"], expected);
    let of_variable = place.variable("TESTWRIGHT_MODEL_EXTRA_BODY", "{\"top_k\": 5}");
    let body = of_variable.load().model.extra_body;
    assert_eq!(
        Some(&body),
        serde_json::json!({ "top_k": 5 }).as_object(),
        "the variable replaces the table"
    );
    let refused = TestDir::new()
        .config("[model]\nextra-body = { n = 5 }\n")
        .refused();
    assert!(
        refused.contains("`model.extra-body` must not contain `n`"),
        "{refused}"
    );
}

#[test]
fn forge_tokens_are_bound_to_hosts() {
    let tokens = TestDir::new()
        .variable("GITLAB_TOKEN", "glpat-1")
        .variable("GITLAB_HOST", "https://Git.example.org/")
        .variable("CODEBERG_TOKEN", "cb-1")
        .load()
        .forge_tokens();
    let tokens: Vec<(&str, &str)> = tokens
        .iter()
        .map(|(host, token)| (host.as_str(), token.reveal()))
        .collect();
    let expected = [("git.example.org", "glpat-1"), ("codeberg.org", "cb-1")];
    assert_eq!(tokens, expected);
}

#[test]
fn every_key_has_own_variable() {
    let mut names: Vec<String> = keys::keys().iter().map(keys::Key::variable).collect();
    assert!(names.len() > 35, "{names:?}");
    assert!(names.contains(&"TESTWRIGHT_GITHUB_BASE_URL".to_owned()));
    names.sort();
    let all = names.len();
    names.dedup();
    assert_eq!(names.len(), all);
}
