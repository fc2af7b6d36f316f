//! Standby sandboxes of the saved state in which no code has run; each submission is checked in one of its
//! own.
//!
//! One starts after code has run, while the model thinks. During a test run it would compete for the
//! processor, and at the submission it would cause a wait. Used sandboxes end in the background.

use std::sync::Arc;

use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::{Backend, SandboxError};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::{Session, SessionSettings};

type PendingSession = JoinHandle<Result<Session, SandboxError>>;

pub(super) struct StandbySandboxes {
    backend: Arc<dyn Backend>,
    environment: Environment,
    settings: SessionSettings,
    spare: Mutex<Standby>,
    ending: Mutex<Vec<JoinHandle<Result<(), SandboxError>>>>,
}

#[derive(Default)]
struct Standby {
    starting: Option<PendingSession>,
    /// Whether the session has ended, so that none are started any more.
    is_stopped: bool,
}

impl StandbySandboxes {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Self {
        StandbySandboxes {
            backend,
            environment: environment.clone(),
            settings: settings.clone(),
            spare: Mutex::default(),
            ending: Mutex::default(),
        }
    }

    /// Starts a standby sandbox, unless there is one.
    pub(super) async fn prepare(&self) {
        let mut spare = self.spare.lock().await;
        if spare.starting.is_none() && !spare.is_stopped {
            spare.starting = Some(self.start());
        }
    }

    fn start(&self) -> PendingSession {
        let (backend, environment) = (self.backend.clone(), self.environment.clone());
        let settings = self.settings.clone();
        tokio::spawn(async move { Session::only(backend.as_ref(), &environment, &settings).await })
    }

    /// Returns a sandbox to use once and then close.
    pub(super) async fn take(&self) -> Result<Session, SandboxError> {
        let starting = self.spare.lock().await.starting.take();
        if let Some(starting) = starting {
            let session = joined(starting).await?;
            if session.health().await.is_ok() {
                return Ok(session);
            }
            // It died while waiting, which says nothing about the next one.
            let _ = session.close().await;
        }
        joined(self.start()).await
    }

    /// Ends a used sandbox in the background, which only the end of the session waits for.
    pub(super) async fn discard(&self, session: Session) {
        let ending = tokio::spawn(async move { Box::pin(session.stop()).await });
        self.ending.lock().await.push(ending);
    }

    /// Stops all unused sandboxes and waits for those that are ending. Returns the first failure.
    pub(super) async fn stop(&self) -> Result<(), SandboxError> {
        let starting = {
            let mut spare = self.spare.lock().await;
            spare.is_stopped = true;
            spare.starting.take()
        };
        let mut stopped = Ok(());
        // A sandbox that did not start needs no stop.
        if let Some(starting) = starting
            && let Ok(session) = joined(starting).await
        {
            stopped = Box::pin(session.stop()).await;
        }
        for ending in self.ending.lock().await.drain(..) {
            stopped = stopped.and(joined(ending).await);
        }
        stopped
    }
}

async fn joined<T>(task: JoinHandle<Result<T, SandboxError>>) -> Result<T, SandboxError> {
    task.await.map_err(|e| {
        SandboxError::system(format!("start or end a sandbox for a submission: {e}"))
    })?
}
