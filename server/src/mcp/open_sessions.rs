//! Open sessions of clients. Their number is limited, and idle ones end.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::raw_tools::RawTools;
use crate::sandbox_limits::{LimitReached, SandboxLimits, SandboxPermit};
use crate::store::{JobId, now};
use testwright_config::error::{Error, Result};
use testwright_config::lock::lock;

/// Maximum number of clients over HTTP.
const MAX_CLIENTS: usize = 256;

/// Limits on sessions of clients.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Maximum concurrent sandboxes of clients.
    pub sandboxes: usize,
    /// Idle time after which a session ends.
    pub idle: Duration,
}

/// The open sessions of all clients.
pub struct OpenSessions {
    /// Idle time after which a session ends.
    idle: Duration,
    sandboxes: Arc<SandboxLimits>,
    open: Mutex<Vec<Arc<OpenSession>>>,
    clients: Arc<Semaphore>,
}

/// A client's sandbox and its tools.
pub struct OpenSession {
    pub id: String,
    pub tools: Arc<RawTools>,
    last_used: Mutex<Instant>,
    calls: AtomicU32,
    ended: AtomicBool,
    /// Notified when the session has ended.
    gone: Notify,
    /// Permit for the sandbox, returned when the sandbox has ended.
    room: Mutex<Option<SandboxPermit>>,
}

/// The open session of a client, if there is one.
#[derive(Default)]
pub(super) struct ClientSession(Mutex<Option<Arc<OpenSession>>>);

impl ClientSession {
    /// Returns the open session, unless it has ended because it was idle.
    pub(super) fn current(&self) -> Option<Arc<OpenSession>> {
        let session = lock(&self.0).clone();
        session.filter(|session| !session.has_ended())
    }

    /// Replaces the session and returns the previous one.
    pub(super) fn replace(&self, new: Option<Arc<OpenSession>>) -> Option<Arc<OpenSession>> {
        std::mem::replace(&mut *lock(&self.0), new)
    }

    /// Returns whether there was a session that ended because it was idle.
    pub(super) fn has_ended(&self) -> bool {
        let session = lock(&self.0);
        session.as_ref().is_some_and(|session| session.has_ended())
    }
}

/// A guard that marks a session as in use.
pub struct CallInUse<'s>(&'s OpenSession);

impl OpenSessions {
    /// Creates the state without any session.
    pub fn new(idle: Duration, sandboxes: Arc<SandboxLimits>) -> Self {
        OpenSessions {
            idle,
            sandboxes,
            open: Mutex::default(),
            clients: Arc::new(Semaphore::new(MAX_CLIENTS)),
        }
    }

    /// Counts a new client until the permit is dropped; `None` if there are too many.
    pub fn admit_client(&self) -> Option<OwnedSemaphorePermit> {
        self.clients.clone().try_acquire_owned().ok()
    }

    /// Returns whether the maximum number of clients is reached.
    pub fn has_all_clients(&self) -> bool {
        self.clients.available_permits() == 0
    }

    /// Reserves another sandbox if one is allowed now.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the owner or the server has reached its limit of sandboxes.
    pub fn try_acquire_sandbox(&self, owner: &str) -> Result<SandboxPermit> {
        self.sandboxes.try_acquire(owner).map_err(|no_room| {
            let cause = match no_room {
                LimitReached::Owner(max) => {
                    format!("your tokens have reached the limit of {max} sandboxes for one owner")
                }
                LimitReached::All(max) => {
                    format!("the limit of {max} sandboxes is reached")
                }
            };
            Error::usage("open a session")
                .cause(cause)
                .hint("close a session, or try again later")
        })
    }

    /// Adds a session. `ended` runs if the session ends because it was idle.
    pub fn add(
        self: &Arc<Self>,
        tools: RawTools,
        room: SandboxPermit,
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<OpenSession> {
        let session = Arc::new(OpenSession {
            id: JobId::new(now()).to_string(),
            tools: Arc::new(tools),
            last_used: Mutex::new(Instant::now()),
            calls: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            gone: Notify::new(),
            room: Mutex::new(Some(room)),
        });
        lock(&self.open).push(session.clone());
        let (all, watched) = (self.clone(), session.clone());
        tokio::spawn(async move {
            if all.end_when_idle(&watched).await {
                ended.await;
            }
        });
        session
    }

    /// Waits for the end of the session; `true` if this call ended it because it was idle.
    async fn end_when_idle(&self, session: &Arc<OpenSession>) -> bool {
        loop {
            let rest = session.rest(self.idle);
            if rest.is_zero() {
                self.close(session).await;
                return true;
            }
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                () = session.gone.notified() => return false,
            }
        }
    }

    /// Ends a session and its sandbox.
    pub async fn close(&self, session: &Arc<OpenSession>) {
        session.ended.store(true, Ordering::Relaxed);
        lock(&self.open).retain(|other| !Arc::ptr_eq(other, session));
        if let Err(error) = session.tools.stop().await {
            tracing::warn!(%error, "could not end the sandbox of a session");
        }
        drop(lock(&session.room).take());
        session.gone.notify_one();
    }

    /// Ends all sessions.
    pub async fn close_all(&self) {
        self.sandboxes.close();
        let all: Vec<_> = lock(&self.open).drain(..).collect();
        for session in all {
            self.close(&session).await;
        }
    }
}

impl OpenSession {
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    pub fn begin_call(&self) -> CallInUse<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        CallInUse(self)
    }

    /// Returns the time until the session counts as idle.
    fn rest(&self, idle: Duration) -> Duration {
        if self.calls.load(Ordering::Relaxed) > 0 {
            return idle;
        }
        idle.saturating_sub(lock(&self.last_used).elapsed())
    }
}

impl Drop for CallInUse<'_> {
    fn drop(&mut self) {
        *lock(&self.0.last_used) = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
