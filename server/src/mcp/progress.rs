//! Progress notifications for a running call.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use testwright_tools::visible;
use tokio::sync::{mpsc, oneshot};

use testwright_agent::agent::{Progress, StepView};

/// Maximum characters of a message.
const MAX_MESSAGE_LEN: usize = 300;

/// Sends progress to the client, if the client asked for it.
#[derive(Debug, Clone)]
pub(super) struct CallProgress(Option<mpsc::UnboundedSender<Message>>);

#[derive(Debug)]
enum Message {
    Text(String),
    /// A message, the number of completed parts, and the total.
    Part(String, u32, u32),
    /// Answered once all earlier messages were sent.
    Flush(oneshot::Sender<()>),
}

impl CallProgress {
    pub(super) fn from_context(context: &RequestContext<RoleServer>) -> Self {
        let sender = context.meta.get_progress_token().map(|token| {
            let (sender, receiver) = mpsc::unbounded_channel();
            tokio::spawn(forward(context.peer.clone(), token, receiver));
            sender
        });
        CallProgress(sender)
    }

    pub(super) fn report(&self, text: &str) {
        self.send(Message::Text(text.to_owned()));
    }

    pub(super) fn report_part(&self, text: &str, part: u32, all: u32) {
        self.send(Message::Part(text.to_owned(), part, all));
    }

    fn send(&self, message: Message) {
        if let Some(sender) = &self.0 {
            // send() fails only if the forwarding task has ended.
            let _ = sender.send(message);
        }
    }

    /// Waits until all messages are sent: none may follow the result of the call.
    pub(super) async fn flush(&self) {
        let (sent, wait) = oneshot::channel();
        self.send(Message::Flush(sent));
        let _ = wait.await;
    }
}

async fn forward(
    peer: Peer<RoleServer>,
    token: ProgressToken,
    mut messages: mpsc::UnboundedReceiver<Message>,
) {
    let mut last: u32 = 0;
    while let Some(message) = messages.recv().await {
        let (text, progress, all) = match message {
            Message::Text(text) => (text, last.saturating_add(1), None),
            Message::Part(text, part, all) => (text, part, Some(all)),
            Message::Flush(sent) => {
                let _ = sent.send(());
                continue;
            }
        };
        // The protocol requires progress to increase.
        if progress <= last {
            continue;
        }
        last = progress;
        let mut notification = ProgressNotificationParam::new(token.clone(), f64::from(progress))
            .with_message(line(&text));
        if let Some(all) = all {
            notification = notification.with_total(f64::from(all));
        }
        if let Err(error) = peer.notify_progress(notification).await {
            tracing::debug!(%error, "could not report progress");
        }
    }
}

fn line(text: &str) -> String {
    let first: String = text
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(MAX_MESSAGE_LEN)
        .collect();
    visible(&first).into_owned()
}

/// Reports progress while a sandbox is prepared, and while a model checks a test.
impl Progress for CallProgress {
    fn phase(&self, name: &str, detail: &str) {
        self.report(&format!("{name}: {detail}"));
    }

    fn begins(&self, view: &StepView<'_>) {
        let text = format!("step {}: {} {}", view.step, view.action, view.detail);
        self.report(text.trim_end());
    }

    fn stage(&self, stage: &str, result: &str) {
        self.report(&format!("{stage}: {result}"));
    }

    fn note(&self, text: &str) {
        self.report(text);
    }
}
