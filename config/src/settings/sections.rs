//! The sections of `testwright.toml`: every key with its type, default and meaning.
//!
//! The environment variable of a key is `TESTWRIGHT_`, the section unless it is `run`, and the key:
//! `TESTWRIGHT_MAX_STEPS`, `TESTWRIGHT_MODEL_BASE_URL`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{RedactedUrl, Size};

/// What `testwright run` does unless told otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Run {
    /// How the test is written: the name of an approach.
    pub approach: String,
    /// What the approach may spend on one test: `low`, `medium` or `high`; each stands for options of the approach.
    pub effort: Option<Effort>,
    /// Least confidence, from 0 to 1, with which a test is handed over. It comes from the candidate fixes that were tried and from
    /// the reviewer.
    pub min_confidence: Option<f64>,
    /// The model's name; `snippet` is the rule-based one that needs no key.
    pub model: Option<String>,
    /// The kind of sandbox: `local`, `docker` …
    pub sandbox: String,
    /// Python version of the environment, `X.Y`.
    pub python: Option<String>,
    /// A ready image instead of a built environment (Docker).
    pub image: Option<String>,
    /// Limit on the model calls of a run.
    pub max_steps: u64,
    /// Limit on the dollars of a run.
    pub max_dollars: Option<f64>,
    /// Limit on the tokens of a run, prompt and completion together.
    pub max_tokens: Option<u64>,
    /// Limit on the minutes of a run.
    pub max_minutes: f64,
    /// Folder for the results.
    pub out: Option<PathBuf>,
    /// Folder of prompts of your own: `NAME.md` stands in for the prompt of that name (`testwright approaches` says which there are).
    pub prompts: Option<PathBuf>,
}

impl Default for Run {
    fn default() -> Self {
        Run {
            approach: "testwright".to_owned(),
            effort: None,
            min_confidence: None,
            model: None,
            sandbox: "local".to_owned(),
            python: None,
            image: None,
            max_steps: 60,
            max_dollars: None,
            max_tokens: None,
            max_minutes: 30.0,
            out: None,
            prompts: None,
        }
    }
}

/// What an approach may spend on one test.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    Low,
    Medium,
    High,
}

/// How the model is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Model {
    /// An OpenAI-compatible endpoint, up to and with `/v1`. Default: OpenAI's, or `OPENAI_BASE_URL`.
    pub base_url: Option<RedactedUrl>,
    /// Name of the environment variable that holds the key (never the key).
    pub api_key_env: String,
    /// Sampling temperature. Default: the endpoint's own; pipelines decode greedily (0). The samples of `libro` and
    /// `pass-at-k` keep their 0.7.
    pub temperature: Option<f64>,
    /// Most tokens of one completion.
    pub max_tokens: Option<u64>,
    /// Take answers as a stream.
    pub stream: bool,
    /// Let the model make several tool calls in one answer.
    pub parallel_calls: bool,
    /// Tool calls as text instead of the endpoint's own tool calls, for endpoints that have none.
    pub text_calls: bool,
    /// Seconds of silence after which a call has failed; without `stream` that is the time of the whole answer.
    pub timeout_seconds: u64,
    /// Tokens that the model can read: pipelines fill at most half of it with code.
    pub context_window: Option<u64>,
    /// Azure: name of the deployment.
    pub azure_deployment: Option<String>,
    /// Azure: version of the API, e.g. `2024-10-21`.
    pub azure_api_version: Option<String>,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            base_url: None,
            api_key_env: "OPENAI_API_KEY".to_owned(),
            temperature: None,
            max_tokens: None,
            stream: false,
            parallel_calls: true,
            text_calls: false,
            timeout_seconds: 600,
            context_window: None,
            azure_deployment: None,
            azure_api_version: None,
        }
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Prompt tokens.
    pub prompt: f64,
    /// Prompt tokens that came from the provider's cache. Default: as `prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Completion tokens.
    pub completion: f64,
    /// The day the price was looked up, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
}

/// What all workers of a daemon together may ask of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ModelLimits {
    /// Most requests in a minute; others wait for the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Most tokens in a minute, prompt and completion together; others wait for the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Most US dollars in a day (UTC), where the model has a price; what would cost more is not asked, and its run ends as
    /// infrastructure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars_per_day: Option<f64>,
}

/// The `docker` sandbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Docker {
    /// The engine, as in `DOCKER_HOST`: `unix:///run/user/1000/podman/podman.sock`, `tcp://build:2375`.
    pub host: Option<String>,
    /// Base image with CPython, `{python}` in place of `X.Y`. Default: `testwright/python:{python}`, else
    /// `python:{python}-bookworm`.
    pub base: Option<String>,
    /// The user that tools run as, `UID` or `UID:GID`. Default: `1000:1000`.
    pub user: Option<String>,
    /// When images are fetched from a registry: `always`, `missing` (when it is not there) or `never`.
    pub pull: Pull,
}

/// When images are fetched from a registry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Pull {
    Always,
    /// When it is not there.
    #[default]
    Missing,
    Never,
}

/// The `local` sandbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Local {
    /// Run code of the repository even where this machine offers no isolation at all.
    pub no_isolation: bool,
}

/// Limits of a sandbox while tools run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Limits {
    /// Memory, e.g. `4 GiB`.
    pub memory: Size,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Processor cores.
    pub cpus: f64,
    /// Size that one file may reach.
    pub file_size: Size,
    /// Size of all that is written, e.g. `8 GiB`; four times as much while an environment is built.
    pub disk: Size,
    /// Files and folders that may be made, likewise.
    pub files: u64,
    /// Seconds that one run of tests may take.
    pub test_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        let limits = testwright_sandboxes::Limits::default();
        Limits {
            memory: Size::new(limits.memory),
            processes: limits.processes,
            cpus: limits.cpus,
            file_size: Size::new(limits.file_size),
            disk: Size::new(limits.disk),
            files: limits.files,
            test_seconds: 300,
        }
    }
}

impl Limits {
    pub fn sandbox(&self) -> testwright_sandboxes::Limits {
        testwright_sandboxes::Limits {
            memory: self.memory.bytes(),
            processes: self.processes,
            cpus: self.cpus,
            file_size: self.file_size.bytes(),
            disk: self.disk.bytes(),
            files: self.files,
        }
    }
}

/// How environments are built: packages and the network to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Build {
    /// Package index instead of PyPI.
    pub index_url: Option<RedactedUrl>,
    /// Further package indexes.
    pub extra_index_urls: Vec<RedactedUrl>,
    /// Proxy for `http` addresses.
    pub http_proxy: Option<RedactedUrl>,
    /// Proxy for `https` addresses.
    pub https_proxy: Option<RedactedUrl>,
    /// Hosts that are reached without a proxy, by commas.
    pub no_proxy: Option<String>,
    /// File with further certificate authorities (PEM).
    pub ca_bundle: Option<PathBuf>,
    /// Build from the caches alone, without network.
    pub offline: bool,
    /// Hosts that a build may reach beside the package indexes, such as `github.com`, `*.example.org` or
    /// `git.example.org:8443`. Code of the repository and of its packages can send there what it likes.
    pub allowed_hosts: Vec<String>,
    /// What environments may take on disk, those of `local` and those of `docker` each, e.g. `50 GiB`. Those that were
    /// used longest ago are removed for a new one; none that is in use. Clones, the code that was taken from them, and downloads
    /// may take a tenth of it each.
    pub cache_size: Size,
}

impl Default for Build {
    fn default() -> Self {
        Build {
            index_url: None,
            extra_index_urls: Vec::new(),
            http_proxy: None,
            https_proxy: None,
            no_proxy: None,
            ca_bundle: None,
            offline: false,
            allowed_hosts: Vec::new(),
            cache_size: Size::new(testwright_sandboxes::environment::CACHE_SIZE),
        }
    }
}

/// Where GitHub issues are read, and how the daemon answers them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct GitHub {
    /// A GitHub Enterprise server (`https://github.example.org`) or its API (`…/api/v3`).
    pub base_url: Option<RedactedUrl>,
    /// Name of the environment variable that holds the token (never the token).
    pub token_env: String,
    /// Name of the environment variable that holds the secret of the webhook (never the secret); several by spaces, while
    /// one replaces another. Without a secret the daemon takes no webhooks.
    pub webhook_secret_env: String,
    /// File that holds the secret of the webhook, in place of the variable; several on lines of their own.
    pub webhook_secret_file: Option<PathBuf>,
    /// Number of the GitHub App as which the daemon answers, in place of the token.
    pub app_id: Option<u64>,
    /// Name of the environment variable that holds the App's private key (never the key), as PEM.
    pub app_key_env: String,
    /// File that holds the App's private key, in place of the variable.
    pub app_key_file: Option<PathBuf>,
    /// An issue that gets this label gets a test.
    pub label: String,
    /// A comment on an issue that begins with this word asks for a test; with `pr` after it, for a draft pull request too.
    pub command: String,
    /// Who may ask by a comment: associations with the repository, as GitHub names them.
    pub command_associations: Vec<String>,
    /// On whose pull requests the stored tests run: associations with the repository, as GitHub names them.
    pub confirm_associations: Vec<String>,
    /// Say in the log what would be posted, and post nothing.
    pub dry_run: bool,
    /// Where the daemon clones from: a URL or a folder, `{owner}` and `{name}` are put in. Default: the server of `base-url`.
    pub clone_url: Option<String>,
}

impl Default for GitHub {
    fn default() -> Self {
        let named = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        GitHub {
            base_url: None,
            token_env: "GITHUB_TOKEN".to_owned(),
            webhook_secret_env: "GITHUB_WEBHOOK_SECRET".to_owned(),
            webhook_secret_file: None,
            app_id: None,
            app_key_env: "GITHUB_APP_PRIVATE_KEY".to_owned(),
            app_key_file: None,
            label: "testwright".to_owned(),
            command: "/testwright".to_owned(),
            command_associations: named(&["OWNER", "MEMBER", "COLLABORATOR"]),
            confirm_associations: named(&["OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR"]),
            dry_run: false,
            clone_url: None,
        }
    }
}
