//! The sections of `testwright.toml`: every key with its type, default and meaning.
//!
//! The environment variable of a key is `TESTWRIGHT_`, the section unless it is `run`, and the key:
//! `TESTWRIGHT_MAX_STEPS`, `TESTWRIGHT_MODEL_BASE_URL`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::docker::Pull;

use super::{RedactedUrl, Size};

/// Defaults of `testwright run`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Run {
    /// Name of the approach.
    pub approach: String,
    /// Effort of the approach: `low`, `medium` or `high`; each sets some of its options.
    pub effort: Option<Effort>,
    /// Minimum confidence (0 to 1); tests below it are withheld. Confidence is the estimated probability that a test is right.
    pub min_confidence: Option<f64>,
    /// Name of the model. `snippet` is rule-based and needs no API key. Default: `gpt-5-mini` if `OPENAI_API_KEY` is
    /// set.
    pub model: Option<String>,
    /// Kind of sandbox: `local`, `docker` or `landlock`.
    pub sandbox: String,
    /// Python version of the environment, `X.Y`.
    pub python: Option<String>,
    /// Docker image to use instead of building an environment.
    pub image: Option<String>,
    /// Dockerfile or `devcontainer.json` in the repository whose image is used instead of building an environment. It
    /// selects the `docker` sandbox.
    pub dockerfile: Option<String>,
    /// Folder of the one project to use, if the repository has several.
    pub project: Option<String>,
    /// Maximum number of steps in a run: model calls without reviews.
    pub max_steps: u64,
    /// Maximum cost of a run in US dollars.
    pub max_dollars: Option<f64>,
    /// Maximum number of tokens in a run, prompts and completions together.
    pub max_tokens: Option<u64>,
    /// Maximum minutes of a run, not counting the environment build.
    pub max_minutes: f64,
    /// Folder for the results.
    pub out: Option<PathBuf>,
    /// Folder with custom prompts: `NAME.md` replaces the prompt of that name (`testwright approaches` lists the names).
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
            dockerfile: None,
            project: None,
            max_steps: 60,
            max_dollars: None,
            max_tokens: None,
            max_minutes: 30.0,
            out: None,
            prompts: None,
        }
    }
}

/// Amount of work that an approach may do for one test: model calls and checks.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// Fewer checks and model calls than the default.
    Low,
    /// The defaults of the approach.
    Medium,
    /// More model calls, such as several drafts of a test.
    High,
}

/// Model requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Model {
    /// OpenAI-compatible endpoint, including `/v1`. Default: `OPENAI_BASE_URL`, or OpenAI's.
    pub base_url: Option<RedactedUrl>,
    /// Name of the environment variable with the API key (not the key itself).
    pub api_key_env: String,
    /// Sampling temperature. Default: the endpoint's own for agents, 0 for pipelines. The samples of `libro` and
    /// `pass-at-k` always use 0.7.
    pub temperature: Option<f64>,
    /// Seed of the sampling, for endpoints that support one.
    pub seed: Option<u64>,
    /// Maximum number of tokens in a completion.
    pub max_tokens: Option<u64>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// Whether a reply may contain several tool calls.
    pub parallel_calls: bool,
    /// Whether to describe tools in the system message and read calls from the text from the first call on. Otherwise
    /// this happens once the endpoint refuses the field `tools`.
    pub text_calls: bool,
    /// Seconds without data after which a call fails. Without `stream`, maximum seconds for the whole reply.
    pub timeout_seconds: u64,
    /// Context window of the model in tokens. Pipelines use at most half of it for code.
    pub context_window: Option<u64>,
    /// Azure: name of the deployment.
    pub azure_deployment: Option<String>,
    /// Azure: version of the API, such as `2024-10-21`.
    pub azure_api_version: Option<String>,
    /// Additional fields of each request, such as `{ top_p = 0.9 }`. Fields that testwright sets itself take
    /// precedence. Results record this table, so it must not contain secrets.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra_body: serde_json::Map<String, serde_json::Value>,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            base_url: None,
            api_key_env: "OPENAI_API_KEY".to_owned(),
            temperature: None,
            seed: None,
            max_tokens: None,
            stream: false,
            parallel_calls: true,
            text_calls: false,
            timeout_seconds: 600,
            context_window: None,
            azure_deployment: None,
            azure_api_version: None,
            extra_body: serde_json::Map::new(),
        }
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Price {
    /// Prompt tokens.
    pub prompt: f64,
    /// Prompt tokens from the provider's cache. Default: the price of `prompt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached: Option<f64>,
    /// Completion tokens.
    pub completion: f64,
    /// Day on which the price was looked up, `YYYY-MM-DD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
}

/// Quota of a model, for all workers of a server together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct ModelLimits {
    /// Maximum requests per minute; further ones wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Maximum tokens per minute, prompts and completions together; further requests wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Maximum US dollars per day (UTC), for a model with a price. A call that might cost more is not made, and its run
    /// ends as `infrastructure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dollars_per_day: Option<f64>,
}

/// The `docker` sandbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Docker {
    /// Address of the engine, as in `DOCKER_HOST`: `unix:///run/user/1000/podman/podman.sock`, `tcp://build:2375`.
    pub host: Option<String>,
    /// Base image with CPython; `{python}` stands for its version `X.Y`. Default: `testwright/python:{python}` if the
    /// engine has it, otherwise `python:{python}-bookworm`.
    pub base: Option<String>,
    /// User that runs the tools, `UID` or `UID:GID`. Default: `1000:1000`.
    pub user: Option<String>,
    /// When images are pulled from a registry: `always`, `missing` or `never`.
    pub pull: Pull,
}

/// The `local` sandbox.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Local {
    /// Run code of the repository even if this machine offers no isolation.
    pub no_isolation: bool,
}

/// Limits of a sandbox while tools run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Limits {
    /// Maximum memory of a sandbox, such as `4 GiB`.
    pub memory: Size,
    /// Maximum concurrent processes and threads in a sandbox.
    pub processes: u64,
    /// Processor cores that a sandbox can use.
    pub cpus: f64,
    /// Maximum size of one file.
    pub file_size: Size,
    /// Maximum size of all written files together, such as `8 GiB`; an environment build may use four times as much.
    pub disk: Size,
    /// Maximum number of created files and folders; an environment build may create four times as many.
    pub files: u64,
    /// Maximum seconds for one test run.
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
    /// Returns the limits in the form that sandboxes take, with sizes in bytes.
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

/// Environment builds: packages and network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Build {
    /// Package index instead of PyPI.
    pub index_url: Option<RedactedUrl>,
    /// Additional package indexes.
    pub extra_index_urls: Vec<RedactedUrl>,
    /// Proxy for `http` addresses.
    pub http_proxy: Option<RedactedUrl>,
    /// Proxy for `https` addresses.
    pub https_proxy: Option<RedactedUrl>,
    /// Hosts reached without a proxy, separated by commas.
    pub no_proxy: Option<String>,
    /// File with additional certificate authorities (PEM).
    pub ca_bundle: Option<PathBuf>,
    /// Build from the caches only, without network.
    pub offline: bool,
    /// Hosts that a build may reach besides the package indexes, such as `github.com`, `*.example.org` or
    /// `git.example.org:8443`. Code of the repository and of its packages can send anything to them.
    pub allowed_hosts: Vec<String>,
    /// Maximum size of the cached environments, such as `50 GiB`; it applies to `local` and to `docker` separately. The
    /// least recently used environments are evicted first; those in use are never evicted. Clones, the code extracted
    /// from them, and downloads may each use a tenth of this size.
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

/// Access to GitHub issues, and the answers of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct GitHub {
    /// A GitHub Enterprise server (`https://github.example.org`) or its API (`…/api/v3`).
    pub base_url: Option<RedactedUrl>,
    /// Name of the environment variable with the token (not the token itself).
    pub token_env: String,
    /// Name of the environment variable with the webhook secret (not the secret itself). While you replace the secret,
    /// the variable can contain both, separated by a space. Without a secret, the server accepts no webhook calls.
    pub webhook_secret_env: String,
    /// File with the webhook secret, instead of the variable; several secrets on separate lines.
    pub webhook_secret_file: Option<PathBuf>,
    /// App ID of the GitHub App that the server uses instead of the token.
    pub app_id: Option<u64>,
    /// Name of the environment variable with the App's private key in PEM format (not the key itself).
    pub app_key_env: String,
    /// File with the App's private key, instead of the variable.
    pub app_key_file: Option<PathBuf>,
    /// Label that starts a run for an issue.
    pub label: String,
    /// First word of a comment that starts a run for an issue. If `pr` follows it, the server also opens a draft pull
    /// request.
    pub command: String,
    /// Associations with the repository, as named by GitHub, of users whose comments can start a run.
    pub command_associations: Vec<String>,
    /// Associations with the repository, as named by GitHub, of users whose pull requests are tested, to confirm that a
    /// test goes from fail to pass.
    pub confirm_associations: Vec<String>,
    /// Log what would be posted, and post nothing.
    pub dry_run: bool,
    /// Source that testwright's server clones from: a URL or a folder, in which `{owner}` and `{name}` are substituted.
    /// Default: the GitHub server of `base-url`.
    pub clone_url: Option<String>,
}

impl Default for GitHub {
    fn default() -> Self {
        let to_strings = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
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
            command_associations: to_strings(&["OWNER", "MEMBER", "COLLABORATOR"]),
            confirm_associations: to_strings(&["OWNER", "MEMBER", "COLLABORATOR", "CONTRIBUTOR"]),
            dry_run: false,
            clone_url: None,
        }
    }
}
