//! Sandboxes of the saved state in which nothing has happened yet: a submission is judged in one of its own.
//!
//! One is started as soon as it is likely to be needed, beside what runs, so that a submission does not wait for it.

use std::sync::Arc;

use testwright_sandboxes::environment::Environment;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::{Backend, SandboxError};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use super::{Session, SessionSettings};

type Starting = JoinHandle<Result<Session, SandboxError>>;

pub(super) struct Fresh {
    backend: Arc<dyn Backend>,
    environment: Environment,
    settings: SessionSettings,
    spare: Mutex<Spare>,
}

enum Spare {
    None,
    Starting(Starting),
    /// The session has ended: none are started any more.
    Over,
}

impl Fresh {
    pub fn new(
        backend: Arc<dyn Backend>,
        environment: &Environment,
        settings: &SessionSettings,
    ) -> Self {
        Fresh {
            backend,
            environment: environment.clone(),
            settings: settings.clone(),
            spare: Mutex::new(Spare::None),
        }
    }

    /// Starts one, unless there is one.
    pub async fn prepare(&self) {
        let mut spare = self.spare.lock().await;
        if matches!(*spare, Spare::None) {
            *spare = Spare::Starting(self.start());
        }
    }

    fn start(&self) -> Starting {
        let (backend, environment) = (self.backend.clone(), self.environment.clone());
        let settings = self.settings.clone();
        tokio::spawn(async move { Session::only(backend.as_ref(), &environment, &settings).await })
    }

    /// One to be used once, and closed.
    pub async fn take(&self) -> Result<Session, SandboxError> {
        let spare = {
            let mut spare = self.spare.lock().await;
            match &*spare {
                Spare::Over => None,
                _ => match std::mem::replace(&mut *spare, Spare::None) {
                    Spare::Starting(starting) => Some(starting),
                    _ => None,
                },
            }
        };
        if let Some(starting) = spare {
            let session = joined(starting).await?;
            if session.health().await.is_ok() {
                return Ok(session);
            }
            // It did not outlive the wait, which says nothing of the next.
            let _ = session.close().await;
        }
        joined(self.start()).await
    }

    /// Ends what was started and not taken.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        let spare = std::mem::replace(&mut *self.spare.lock().await, Spare::Over);
        match spare {
            // One that did not start has nothing to be stopped.
            Spare::Starting(starting) => match joined(starting).await {
                Ok(session) => Box::pin(session.stop()).await,
                Err(_) => Ok(()),
            },
            Spare::None | Spare::Over => Ok(()),
        }
    }
}

async fn joined(starting: Starting) -> Result<Session, SandboxError> {
    starting.await.map_err(|e| {
        SandboxError::new(
            ErrorKind::System,
            format!("start a sandbox for a submission: {e}"),
        )
    })?
}
