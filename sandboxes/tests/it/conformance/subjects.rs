//! The backends that the checks run on. A backend's own test file implements [`Subject`]; here it needs one line.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use async_trait::async_trait;
#[cfg(target_os = "linux")]
use testwright_sandboxes::local::Isolation;
use testwright_sandboxes::{Backend, SandboxSource};

use super::{Fixture, host_to_be_killed, processes_end_with_a_killed_host, run_all};
use crate::docker::EngineSubject;
#[cfg(target_os = "linux")]
use crate::local::LocalSubject;

/// A backend under test.
#[async_trait]
pub(crate) trait Subject: Sync {
    /// Returns the backend, which stores its data in this folder. Prints a message and returns `None` if this machine
    /// does not support it.
    async fn backend(&self, cache: &Path) -> Option<Arc<dyn Backend>>;

    /// Returns the source of a bare start.
    fn start(&self) -> SandboxSource;

    /// Returns the names of checks that it cannot pass by design.
    fn without(&self) -> &'static [&'static str] {
        &[]
    }
}

/// Creates the tests of each subject, in a module with its name. They run concurrently, and the name identifies those
/// of Docker.
macro_rules! subjects {
    ($($(#[$attribute:meta])* $name:ident: $subject:expr,)*) => {
        $($(#[$attribute])* mod $name {
            use super::*;

            #[tokio::test(flavor = "multi_thread")]
            async fn keeps_guarantees() {
                super::keeps_guarantees(&$subject, stringify!($name)).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn processes_end_with_a_killed_host() {
                super::processes_end(&$subject, stringify!($name)).await;
            }

            #[tokio::test(flavor = "multi_thread")]
            async fn host_that_is_killed() {
                super::be_killed(&$subject).await;
            }
        })*
    };
}

subjects! {
    #[cfg(target_os = "linux")]
    namespaces: LocalSubject(Isolation::Namespaces),
    #[cfg(target_os = "linux")]
    landlock: LocalSubject(Isolation::Landlock),
    docker_engine: EngineSubject,
}

async fn keeps_guarantees(subject: &dyn Subject, name: &str) {
    let cache = tempfile::tempdir().unwrap();
    let Some(backend) = subject.backend(cache.path()).await else {
        return;
    };
    let ground = Fixture {
        backend: backend.as_ref(),
        start: &subject.start(),
        without: subject.without(),
        killed_host: Some(&|| killed_host(name, cache.path())),
    };
    run_all(ground).await;
}

async fn processes_end(subject: &dyn Subject, name: &str) {
    let cache = tempfile::tempdir_in("/var/tmp").unwrap();
    if subject.backend(cache.path()).await.is_some() {
        processes_end_with_a_killed_host(killed_host(name, cache.path())).await;
    }
}

const CACHE: &str = "TESTWRIGHT_CHECK_CACHE";

/// Returns a command that runs this program again, as a host that starts sandboxes of this subject and is killed.
pub(crate) fn killed_host(name: &str, cache: &Path) -> Command {
    let (_, module) = module_path!().split_once("::").unwrap();
    let test = format!("{module}::{name}::host_that_is_killed");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", &test, "--nocapture"])
        .env(CACHE, cache);
    command
}

/// Runs the host to be killed, but only if a check started this program for that.
async fn be_killed(subject: &dyn Subject) {
    let Some(cache) = std::env::var_os(CACHE) else {
        return;
    };
    let backend = subject.backend(cache.as_ref()).await.unwrap();
    let ground = Fixture {
        backend: backend.as_ref(),
        start: &subject.start(),
        without: &[],
        killed_host: None,
    };
    host_to_be_killed(ground).await;
}
