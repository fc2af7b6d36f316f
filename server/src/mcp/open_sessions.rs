//! The sessions that clients have open. Their number is limited, and each ends when it is not used.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::owner_shares::{NoRoom, SandboxRoom, SandboxRooms};
use super::raw_tools::RawTools;
use crate::store::{RunId, now};
use testwright_config::error::{Error, Result};

/// Connections over HTTP.
const MAX_CLIENTS: u32 = 256;

#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Sandboxes that clients have at one time.
    pub sandboxes: usize,
    /// A session that is not used for so long ends.
    pub idle: Duration,
}

pub struct OpenSessions {
    limits: SessionLimits,
    sandboxes: SandboxRooms,
    open: Mutex<Vec<Arc<OpenSession>>>,
    clients: AtomicU32,
}

/// A sandbox, and the tools in it, of one client.
pub struct OpenSession {
    pub id: String,
    pub tools: Arc<RawTools>,
    last_used: Mutex<Instant>,
    calls: AtomicU32,
    ended: AtomicBool,
    /// Told when it has ended.
    gone: Notify,
    /// Given back when the sandbox is gone.
    room: Mutex<Option<SandboxRoom>>,
}

/// The session that a client has open, if it has one.
#[derive(Default)]
pub struct ClientSession(Mutex<Option<Arc<OpenSession>>>);

impl ClientSession {
    /// One that was idle for too long is none.
    pub fn current(&self) -> Option<Arc<OpenSession>> {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        session.clone().filter(|session| !session.has_ended())
    }

    /// The earlier one.
    pub fn replace(&self, new: Option<Arc<OpenSession>>) -> Option<Arc<OpenSession>> {
        let mut session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *session, new)
    }

    /// There was one, which ended by itself.
    pub fn has_ended(&self) -> bool {
        let session = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        session.as_ref().is_some_and(|session| session.has_ended())
    }
}

/// While it is there, a session is in use.
pub struct CallInUse<'s>(&'s OpenSession);

impl OpenSessions {
    pub fn new(limits: SessionLimits) -> Self {
        OpenSessions {
            limits,
            sandboxes: SandboxRooms::new(limits.sandboxes),
            open: Mutex::default(),
            clients: AtomicU32::new(0),
        }
    }

    /// `false` where there are too many.
    pub fn admit_client(&self) -> bool {
        let admitted = self
            .clients
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < MAX_CLIENTS).then_some(n + 1)
            });
        admitted.is_ok()
    }

    pub fn dismiss_client(&self) {
        self.clients.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns `true` if there are as many clients as there may be.
    pub fn has_all_clients(&self) -> bool {
        self.clients.load(Ordering::Relaxed) >= MAX_CLIENTS
    }

    /// Waits for room for one more sandbox.
    pub async fn room(&self, owner: &str) -> Result<SandboxRoom> {
        let room = self.sandboxes.acquire(owner).await;
        room.map_err(|error| Error::infrastructure("start a sandbox").cause(error))
    }

    /// Takes room for one more sandbox if there is some now.
    pub fn room_now(&self, owner: &str) -> Result<SandboxRoom> {
        self.sandboxes.try_acquire(owner).map_err(|no_room| {
            let cause = match no_room {
                NoRoom::Owner(max) => {
                    format!("your tokens have {max} sandboxes already, the maximum for one owner")
                }
                NoRoom::All(max) => {
                    format!("there are {max} sandboxes already, and no more at one time")
                }
            };
            Error::usage("open a session")
                .cause(cause)
                .hint("close a session, or try again later")
        })
    }

    /// `ended` is told when the session ends because nobody used it.
    pub fn add(
        self: &Arc<Self>,
        tools: RawTools,
        room: SandboxRoom,
        ended: impl Future<Output = ()> + Send + 'static,
    ) -> Arc<OpenSession> {
        let session = Arc::new(OpenSession {
            id: RunId::new(now()).to_string(),
            tools: Arc::new(tools),
            last_used: Mutex::new(Instant::now()),
            calls: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            gone: Notify::new(),
            room: Mutex::new(Some(room)),
        });
        self.list().push(session.clone());
        let (all, watched) = (self.clone(), session.clone());
        tokio::spawn(async move {
            if all.end_when_idle(&watched).await {
                ended.await;
            }
        });
        session
    }

    /// `true` once it was ended here, `false` where it ended otherwise.
    async fn end_when_idle(&self, session: &Arc<OpenSession>) -> bool {
        loop {
            let rest = session.rest(self.limits.idle);
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

    /// Ends its sandbox.
    pub async fn close(&self, session: &Arc<OpenSession>) {
        session.ended.store(true, Ordering::Relaxed);
        self.list().retain(|other| !Arc::ptr_eq(other, session));
        if let Err(error) = session.tools.stop().await {
            tracing::warn!(%error, "the sandbox of a session did not end");
        }
        let mut room = session.room.lock().unwrap_or_else(PoisonError::into_inner);
        drop(room.take());
        session.gone.notify_one();
    }

    /// Ends all sandboxes.
    pub async fn close_all(&self) {
        self.sandboxes.close();
        let all: Vec<_> = self.list().drain(..).collect();
        for session in all {
            self.close(&session).await;
        }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, Vec<Arc<OpenSession>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Until it has been idle for so long.
    fn rest(&self, idle: Duration) -> Duration {
        if self.calls.load(Ordering::Relaxed) > 0 {
            return idle;
        }
        let used = self
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        idle.saturating_sub(used.elapsed())
    }
}

impl Drop for CallInUse<'_> {
    fn drop(&mut self) {
        let mut used = self
            .0
            .last_used
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *used = Instant::now();
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
