//! Kinds of sandboxes, and the connection to each from the settings. The backends themselves are in
//! `sandboxes/`. Besides its file, a kind needs one line in the list here.

mod guarantee;
mod limits;
mod network;

use async_trait::async_trait;
use testwright_sandboxes::{Backend, private};

use testwright_config::error::{Error, Result};
use testwright_config::settings::Settings;

pub use guarantee::{Examination, Guarantee, GuaranteeStatus};
pub use network::{ca_bundle, proxies};

/// Hidden command that is the entry point of a jail; `main` checks for it before anything else.
pub const JAIL: &str = "__jail";

/// Connects to the backend of one kind.
#[async_trait]
pub trait Connector: Send + Sync {
    /// Returns the name, as in `--sandbox NAME` and in records.
    fn name(&self) -> &'static str;

    /// Returns a description of one line.
    fn description(&self) -> &'static str;

    /// Returns what a machine needs for it, in one word, e.g. `engine`.
    fn requirement(&self) -> &'static str;

    /// Connects to the backend.
    ///
    /// # Errors
    ///
    /// Fails if the backend is not available with these settings.
    async fn connect(&self, settings: &Settings) -> Result<Box<dyn Backend>>;

    /// Returns the backend with its report for `testwright doctor`.
    ///
    /// # Errors
    ///
    /// Fails if the backend is not available with these settings.
    async fn examine(&self, settings: &Settings) -> Result<Examination>;
}

/// Declares the modules, and a list of the connectors in them in the same order.
macro_rules! backends {
    ($($module:ident::$connector:ident,)*) => {
        $(mod $module;)*

        /// Every kind of sandbox; the first is the default.
        pub static ALL: &[&dyn Connector] = &[$(&$module::$connector),*];
    };
}

backends! {
    local::LOCAL,
    docker::DockerConnector,
    landlock::LANDLOCK,
}

/// Returns the connector that the settings name.
///
/// # Errors
///
/// Fails if the settings name an unknown kind of sandbox.
pub fn find(settings: &Settings) -> Result<&'static dyn Connector> {
    let name = &settings.run.sandbox;
    let connector = ALL.iter().find(|connector| connector.name() == name);
    connector.copied().ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|connector| connector.name()).collect();
        settings.unknown_name("run.sandbox", name, &names)
    })
}

/// Connects to the backend that the settings name. First makes the cache private again, in case code in an
/// earlier sandbox opened it to other users.
///
/// # Errors
///
/// Fails if the kind is unknown, the cache cannot be made private, or the backend is not available.
pub async fn connect(settings: &Settings) -> Result<Box<dyn Backend>> {
    let connector = find(settings)?;
    private::close_folders(&settings.cache)
        .map_err(|error| Error::io("close the cache to others", &error))?;
    connector.connect(settings).await
}

/// Removes the remains of killed runs. Returns notes about them, and about weak isolation.
pub async fn clean(backend: &dyn Backend) -> Vec<String> {
    let mut notes = Vec::from_iter(backend.isolation_warning().map(str::to_owned));
    match backend.clean().await {
        Ok(removed) => {
            let line = |what| format!("cleaned up after a killed run: {what}");
            notes.extend(removed.into_iter().map(line));
        }
        // Old remains are harmless, so work can continue.
        Err(error) => notes.push(format!("failed to clean up after killed runs: {error}")),
    }
    notes
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use testwright_config::settings::Sources;

    #[test]
    fn first_kind_is_the_default() {
        assert_eq!(Settings::default().run.sandbox, ALL[0].name());
    }

    #[tokio::test]
    async fn connecting_makes_cache_private() {
        use std::os::unix::fs::PermissionsExt;
        let cache = tempfile::tempdir().unwrap();
        let sources = cache.path().join("sources");
        std::fs::create_dir(&sources).unwrap();
        std::fs::set_permissions(&sources, PermissionsExt::from_mode(0o777)).unwrap();
        let mut settings = Settings::default();
        settings.cache = cache.path().to_owned();
        // The test program is not a launcher, so isolation is not available.
        let _ = connect(&settings).await;
        let mode = std::fs::metadata(&sources).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn unknown_kind_lists_known_kinds() {
        let refused = |sources: Sources| {
            let error = find(&Settings::load(&sources).unwrap()).err().unwrap();
            assert_eq!(error.exit_code(), 2);
            error.render()
        };
        let mut sources = Sources::default();
        let name = "TESTWRIGHT_SANDBOX".to_owned();
        sources.variables.insert(name, "podman".to_owned());
        insta::assert_snapshot!(refused(sources), @r"
        error: failed to read the settings
          cause: TESTWRIGHT_SANDBOX: `sandbox` in [run] cannot be `podman`; it is one of local, docker, landlock
        ");
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("testwright.toml");
        std::fs::write(&file, "[run]\nmodel = \"m\"\nsandbox = \"dock\"\n").unwrap();
        let message = refused(Sources::default().config(Some(file)));
        insta::assert_snapshot!(message.replace(folder.path().to_str().unwrap(), "DIR"), @r"
        error: failed to read the settings
          cause: DIR/testwright.toml:3: `sandbox` in [run] cannot be `dock`; it is one of local, docker, landlock
          hint: did you mean `docker`?
        ");
        let mut sources = Sources::default();
        sources.flags.set("run.sandbox", Some("dokcer"));
        insta::assert_snapshot!(refused(sources), @r"
        error: invalid --sandbox: `dokcer` is not one of local, docker, landlock
          hint: did you mean `docker`?
        ");
    }
}
