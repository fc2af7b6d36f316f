//! Sandboxes of the saved state in which nothing has happened yet: a submission is judged in one of its own.
//!
//! One is started once code has run, while the model thinks: beside a run of tests it would take the processor from it,
//! and in the submission it would be waited for. One that is done with ends in the background.

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
    ending: Mutex<Vec<JoinHandle<Result<(), SandboxError>>>>,
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
            ending: Mutex::default(),
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

    /// Ends one that was taken, which nobody waits for before the session ends.
    pub async fn discard(&self, taken: Session) {
        let ending = tokio::spawn(async move { Box::pin(taken.stop()).await });
        self.ending.lock().await.push(ending);
    }

    /// Ends what was started and not taken, and waits for what is ending. The answer is the first failure.
    pub async fn stop(&self) -> Result<(), SandboxError> {
        let spare = std::mem::replace(&mut *self.spare.lock().await, Spare::Over);
        let mut stopped = match spare {
            // One that did not start has nothing to be stopped.
            Spare::Starting(starting) => match joined(starting).await {
                Ok(session) => Box::pin(session.stop()).await,
                Err(_) => Ok(()),
            },
            Spare::None | Spare::Over => Ok(()),
        };
        for ending in self.ending.lock().await.drain(..) {
            stopped = stopped.and(joined(ending).await);
        }
        stopped
    }
}

async fn joined<T>(task: JoinHandle<Result<T, SandboxError>>) -> Result<T, SandboxError> {
    task.await.map_err(|e| {
        SandboxError::new(
            ErrorKind::System,
            format!("start or end a sandbox for a submission: {e}"),
        )
    })?
}
