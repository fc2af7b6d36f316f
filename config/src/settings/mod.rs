//! Settings: flags override environment variables, which override `--config FILE`, the user's
//! `testwright.toml` and the defaults, in this order. A `testwright.toml` found in a folder says how that
//! folder's code is built, and may lower limits ([`found_file`]).
//!
//! [`sections`] is the only definition of keys, types, defaults and meanings; the names of environment
//! variables are derived from it. Every value remembers its origin ([`Origin`]). API keys and tokens are
//! never settings: a setting holds the *name* of the variable that contains them, see [`secret`].

mod found_file;
pub mod keys;
mod layer;
pub mod origin;
pub mod redactor;
pub mod secret;
pub mod sections;
mod size;
mod sources;
pub mod variables;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::recipe::Recipe;
use toml::Table;

use crate::error::{Error, Result};
use layer::Layer;

pub use layer::nearest;
pub use origin::Origin;
pub use redactor::Redactor;
pub use secret::{RedactedUrl, Secret};
pub use sections::{Build, Docker, Effort, GitHub, Limits, Local, Model, ModelLimits, Price, Run};
pub use size::Size;
pub use sources::{Flags, Sources};

/// A setting in force.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// Name, such as `run.max-steps`.
    pub key: String,
    /// Value, as in a settings file.
    pub value: String,
    /// The place that sets it.
    pub origin: Origin,
}

/// All settings in force for a command. The serialized form is safe to record: addresses lose their user
/// names and passwords.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Settings {
    /// Folder for environments, clones and downloads. Default: `$XDG_CACHE_HOME/testwright`.
    pub cache: PathBuf,
    /// Store for the files of runs and for environments shared by several machines: `s3://BUCKET/PREFIX` or
    /// `file:///FOLDER`. S3 takes its account, region and address from the usual variables
    /// (`AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION`, `AWS_ENDPOINT_URL`). Default: `serve`
    /// keeps files in its data folder, and environments are not shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<RedactedUrl>,
    /// Defaults of `testwright run`.
    pub run: Run,
    /// Requests to the model.
    pub model: Model,
    /// Prices of models in US dollars, by name.
    pub prices: BTreeMap<String, Price>,
    /// Quotas of models for all workers of a server together, by name.
    pub model_limits: BTreeMap<String, ModelLimits>,
    /// The `docker` sandbox.
    pub docker: Docker,
    /// The `local` sandbox.
    pub local: Local,
    /// Limits of a sandbox while tools run.
    pub limits: Limits,
    /// Builds of environments.
    pub build: Build,
    /// Access to GitHub.
    pub github: GitHub,
    /// Recipe for the repository's environment: from the repository's own file, or a file named with
    /// `--config`.
    #[schemars(with = "Option<serde_json::Value>")]
    pub environment: Option<Recipe>,
    /// Origin of each value that is not a default, by key (`run.max-steps`).
    #[serde(skip)]
    pub origins: BTreeMap<String, Origin>,
    /// Notes for the user, one line each.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Additions to the recipe from the command line.
    #[serde(skip)]
    pub additions: RecipeAdditions,
    /// Folder of the file that has `environment`; `None` if the user named the file.
    #[serde(skip)]
    environment_folder: Option<PathBuf>,
    /// Environment variables at load time.
    #[serde(skip)]
    variables: BTreeMap<String, Secret>,
}

/// Additions of the command line to the recipe of a repository, wherever the recipe comes from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecipeAdditions {
    /// Requirements, as pip accepts them.
    pub requirements: Vec<String>,
    /// Extras of the package.
    pub extras: Vec<String>,
    /// Environment variables, `NAME=VALUE`.
    pub env: Vec<String>,
}

impl RecipeAdditions {
    /// Returns whether nothing is added.
    pub fn is_empty(&self) -> bool {
        *self == RecipeAdditions::default()
    }
}

impl Settings {
    /// Reads every layer. The error is the first mistake in any of them (exit code 2).
    ///
    /// # Errors
    ///
    /// Fails if a source cannot be read, or has an unknown key or a value that is invalid or out of range.
    pub fn load(sources: &Sources) -> Result<Settings> {
        let mut notes = Vec::new();
        let mut table = Table::new();
        let mut origins = BTreeMap::new();
        let mut take = |layer: Layer, table: &mut Table| {
            layer.merge_into(table, &mut origins);
            notes.extend(layer.notes);
        };
        take(sources.defaults(), &mut table);
        let user_file = sources.user_file.as_deref();
        let config = sources.named_file()?;
        if let Some(path) = user_file {
            let layer = Layer::file(path, layer::Trust::User)?;
            take(layer.unwrap_or_default(), &mut table);
        }
        let mut environment_folder = None;
        for (folder, trust) in sources.searched() {
            let path = folder.join(FILE);
            let own = [user_file, config.as_deref()];
            if own.iter().any(|own| sources::same(&path, *own)) {
                continue;
            }
            let Some(layer) = Layer::file(&path, trust)? else {
                continue;
            };
            // Without a repository, the current folder may turn out to be the one under test.
            let recipe = trust == layer::Trust::Repository || sources.repository.is_none();
            let layer = found_file::restrict(layer, &table, recipe, &path, user_file)?;
            if layer.sets(found_file::RECIPE) {
                environment_folder = Some(folder.to_owned());
            }
            take(layer, &mut table);
        }
        if let Some(path) = &config {
            let layer = Layer::file(path, layer::Trust::Named)?.unwrap_or_default();
            if layer.sets(found_file::RECIPE) {
                environment_folder = None;
            }
            take(layer, &mut table);
        }
        take(variables::layer(&sources.variables)?, &mut table);
        take(sources.flags.layer()?, &mut table);

        let mut settings = from_table(table)?;
        settings.environment_folder = environment_folder;
        settings.origins = origins;
        settings.notes = notes;
        let secret = |(name, value): (&String, &String)| Some((name.clone(), Secret::new(value)?));
        settings.variables = sources.variables.iter().filter_map(secret).collect();
        settings.check()?;
        settings.select_docker()?;
        Ok(settings)
    }

    /// Returns the origin of the value of `key` (`run.max-steps`).
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }

    /// Sets the approach, as a flag would.
    pub fn set_approach(&mut self, approach: &str) {
        self.run.approach = approach.to_owned();
        let flag = Origin::Flag("request".to_owned());
        self.origins.insert("run.approach".to_owned(), flag);
    }

    /// Returns the value of the variable that `model.api-key-env` names.
    pub fn model_key(&self) -> Option<Secret> {
        self.variables.get(&self.model.api_key_env).cloned()
    }

    /// Returns the value of the variable that `github.token-env` names.
    pub fn github_token(&self) -> Option<Secret> {
        self.variables.get(&self.github.token_env).cloned()
    }

    /// Sets the token for GitHub, as the variable that `github.token-env` names would.
    pub fn set_github_token(&mut self, token: &str) {
        let name = self.github.token_env.clone();
        self.variables
            .extend(Secret::new(token).map(|token| (name, token)));
    }

    /// Returns the tokens of other forges, each with the host that it may be sent to. Variables can name another host
    /// than the public one.
    pub fn forge_tokens(&self) -> Vec<(String, Secret)> {
        let tokens = FORGE_TOKENS.iter().filter_map(|(name, host_name, public)| {
            let token = self.variables.get(*name)?.clone();
            let server = host_name.and_then(|name| self.variables.get(name));
            let server = server.map_or(*public, Secret::reveal);
            let host = server.split_once("://").map_or(server, |(_, rest)| rest);
            let host = host.split('/').next().unwrap_or(host);
            Some((host.to_ascii_lowercase(), token))
        });
        tokens.collect()
    }

    /// Returns the value of the variable that `github.webhook-secret-env` names.
    pub fn github_webhook_secret(&self) -> Option<Secret> {
        self.variables.get(&self.github.webhook_secret_env).cloned()
    }

    /// Returns the value of the variable that `github.app-key-env` names.
    pub fn github_app_key(&self) -> Option<Secret> {
        self.variables.get(&self.github.app_key_env).cloned()
    }

    /// Returns a redactor for every secret of these settings: keys, tokens, and passwords in addresses.
    pub fn redactor(&self) -> Redactor {
        let build = &self.build;
        let addresses = [
            &self.model.base_url,
            &self.github.base_url,
            &build.index_url,
            &build.http_proxy,
            &build.https_proxy,
        ];
        let addresses = addresses.into_iter().flatten();
        let addresses = addresses.chain(&build.extra_index_urls);
        let names = [
            &*self.model.api_key_env,
            &self.github.token_env,
            &self.github.webhook_secret_env,
            &self.github.app_key_env,
            AZURE_KEY,
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ];
        let forges = FORGE_TOKENS.iter().map(|(name, ..)| *name);
        let names = names.into_iter().chain(forges);
        let keys = names.filter_map(|name| self.variables.get(name).map(Secret::reveal));
        Redactor::new(keys.chain(addresses.flat_map(RedactedUrl::secrets)))
    }

    /// Returns `[environment]` for the repository at `location` (a folder or a URL). A recipe that was found
    /// in a folder applies only to the code in that folder.
    pub fn environment_of(&self, location: &str) -> Option<&Recipe> {
        let is_elsewhere = self
            .environment_folder
            .as_deref()
            .is_some_and(|folder| !sources::same(Path::new(location), Some(folder)));
        self.environment.as_ref().filter(|_| !is_elsewhere)
    }

    /// Returns the name of the file that has `[environment]`, for people.
    pub fn environment_file(&self) -> String {
        match self.origin(found_file::RECIPE) {
            Origin::File(path, _) => path.file_name().map_or_else(
                || FILE.to_owned(),
                |name| name.to_string_lossy().into_owned(),
            ),
            _ => FILE.to_owned(),
        }
    }

    /// Returns `[environment]` if it applies to any repository, i.e. was not found in a folder.
    pub fn named_environment(&self) -> Option<&Recipe> {
        let of_folder = self.environment_folder.is_some();
        self.environment.as_ref().filter(|_| !of_folder)
    }

    /// Returns the settings for the record of a run: without secrets, and with the origin of each value that
    /// is not a default.
    pub fn record(&self) -> serde_json::Value {
        let mut record = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = record.as_object_mut() {
            let origins = serde_json::to_value(&self.origins).unwrap_or_default();
            fields.insert("origins".to_owned(), origins);
        }
        record
    }

    /// Lists the settings in force, for people. Unset ones are omitted.
    pub fn describe(&self) -> Vec<Setting> {
        let mut all = Vec::new();
        if let Ok(table) = Table::try_from(self) {
            for (keys, value) in layer::leaves(&table) {
                let key = keys.join(".");
                all.push(Setting {
                    origin: self.origin(&key),
                    value: value.to_string(),
                    key,
                });
            }
        }
        all
    }

    /// Selects the sandbox that can build from `run.dockerfile`, unless a flag or a variable selects another one.
    fn select_docker(&mut self) -> Result<()> {
        let key = "run.dockerfile";
        if self.run.dockerfile.is_none() {
            return Ok(());
        }
        if self.run.image.is_some() {
            return Err(self.wrong(key, "cannot be combined with an image".to_owned()));
        }
        let sandbox = &self.run.sandbox;
        if sandbox != "docker" {
            let origin = self.origin("run.sandbox");
            if matches!(origin, Origin::Flag(_) | Origin::Variable(_)) {
                let what = format!("needs --sandbox docker, but {origin} is `{sandbox}`");
                return Err(self.wrong(key, what));
            }
            let origin = self.origin(key);
            self.origins.insert("run.sandbox".to_owned(), origin);
            "docker".clone_into(&mut self.run.sandbox);
        }
        Ok(())
    }

    /// Checks ranges that the types do not express.
    fn check(&self) -> Result<()> {
        let sizes = [
            ("limits.memory", self.limits.memory),
            ("limits.file-size", self.limits.file_size),
            ("limits.disk", self.limits.disk),
        ];
        if let Some((key, size)) = sizes.iter().find(|(_, size)| size.bytes() < MIN_SIZE) {
            let error = self.wrong(key, format!("must be at least 1 MiB, not {size}"));
            return Err(error.hint("write a unit, such as `4 GiB`"));
        }
        let limits = found_file::LIMITS.iter();
        let limits = limits.map(|(key, limit)| (*key, limit(self)));
        let of_model = [
            ("model.max-tokens", self.model.max_tokens),
            ("model.timeout-seconds", Some(self.model.timeout_seconds)),
            ("model.context-window", self.model.context_window),
        ];
        let of_model = of_model.map(|(key, limit)| (key, limit.map(|limit| limit as f64)));
        for (key, limit) in limits.chain(of_model) {
            if let Some(value) = limit.filter(|limit| !(limit.is_finite() && *limit > 0.0)) {
                return Err(self.wrong(key, format!("must be greater than 0, not {value}")));
            }
        }
        if let Some(confidence) = self.run.min_confidence
            && !(0.0..=1.0).contains(&confidence)
        {
            let key = "run.min-confidence";
            return Err(self.wrong(key, format!("must be from 0 to 1, not {confidence}")));
        }
        let addresses = [
            ("model.base-url", self.model.base_url.as_ref()),
            ("github.base-url", self.github.base_url.as_ref()),
            ("build.index-url", self.build.index_url.as_ref()),
        ];
        for (key, address) in addresses {
            let Some(address) = address else { continue };
            if !address.is_http() {
                let what = format!("must begin with http:// or https://, not `{address}`");
                let error = self.wrong(key, what);
                return Err(match address.reveal().contains("://") {
                    true => error,
                    false => error.hint(format!("did you mean `http://{address}`?")),
                });
            }
        }
        for (key, name) in [
            ("model.api-key-env", &self.model.api_key_env),
            ("github.token-env", &self.github.token_env),
            ("github.webhook-secret-env", &self.github.webhook_secret_env),
            ("github.app-key-env", &self.github.app_key_env),
        ] {
            if !secret::is_variable_name(name) {
                let what = "is the name of an environment variable, never the key itself";
                return Err(self.wrong(key, what.to_owned()));
            }
        }
        let mut extra = self.model.extra_body.keys();
        if let Some(field) = extra.find(|key| OWN_FIELDS.contains(&key.as_str())) {
            let what = format!("must not contain `{field}`, which testwright sets itself");
            return Err(self.wrong("model.extra-body", what));
        }
        for (name, price) in &self.prices {
            let parts = [Some(price.prompt), price.cached, Some(price.completion)];
            if parts
                .iter()
                .flatten()
                .any(|p| !(p.is_finite() && *p >= 0.0))
            {
                return Err(
                    self.wrong(&format!("prices.{name}"), "has a negative price".to_owned())
                );
            }
        }
        for (name, limits) in &self.model_limits {
            let counts = [limits.requests_per_minute, limits.tokens_per_minute];
            let is_dollars = |d: f64| d.is_finite() && d > 0.0;
            if counts.contains(&Some(0)) || !limits.dollars_per_day.is_none_or(is_dollars) {
                let what = "has a limit that is not above zero".to_owned();
                return Err(self.wrong(&format!("model-limits.{name}"), what));
            }
        }
        Ok(())
    }

    /// Creates the error for a value of `section.key` that is not one of the known names.
    pub fn unknown_name(&self, key: &str, value: &str, known_names: &[&str]) -> Error {
        let at = self.origin(key).to_string();
        let keys: Vec<String> = key.split('.').map(str::to_owned).collect();
        layer::unknown_name(&at, &keys, value, known_names)
    }

    fn wrong(&self, key: &str, what: String) -> Error {
        let origin = self.origin(key).to_string();
        layer::invalid(&origin, what.clone(), format!("`{key}` {what}"))
    }
}

fn from_table(table: Table) -> Result<Settings> {
    table
        .try_into()
        .map_err(|e: toml::de::Error| Error::usage(READING).cause(e.message()))
}

const FILE: &str = "testwright.toml";
/// Azure's name for the variable that holds the API key.
pub const AZURE_KEY: &str = "AZURE_OPENAI_API_KEY";
const READING: &str = "read the settings";
/// Minimum bytes of a limit. A smaller number probably lacks its unit.
const MIN_SIZE: u64 = 1 << 20;
/// Fields of a request that decide what a reply contains or costs.
const OWN_FIELDS: [&str; 8] = [
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "model",
    "n",
    "stream",
    "stream_options",
    "tools",
];

/// Variables with the tokens of other forges than GitHub: the token, the server's address, and the host without it. The
/// names are those of the forges' own programs.
const FORGE_TOKENS: [(&str, Option<&str>, &str); 4] = [
    ("GITLAB_TOKEN", Some("GITLAB_HOST"), "gitlab.com"),
    ("GITEA_TOKEN", Some("GITEA_SERVER_URL"), "gitea.com"),
    ("CODEBERG_TOKEN", None, "codeberg.org"),
    ("BITBUCKET_TOKEN", None, "bitbucket.org"),
];
