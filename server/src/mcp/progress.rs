//! What goes on in a call, told to its client while it waits.

use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{Peer, RoleServer};
use testwright_tools::visible;
use tokio::sync::{mpsc, oneshot};

use testwright_agent::agent::{Progress, StepView};

/// Characters of a message.
const MAX_MESSAGE_LEN: usize = 300;

/// Tells nothing where the client did not ask for it.
#[derive(Debug, Clone)]
pub struct CallProgress(Option<mpsc::UnboundedSender<Message>>);

#[derive(Debug)]
enum Message {
    Text(String),
    /// So many of all.
    Part(String, u32, u32),
    /// Answered once all that came before was sent.
    Flush(oneshot::Sender<()>),
}

impl CallProgress {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        let sender = context.meta.get_progress_token().map(|token| {
            let (sender, receiver) = mpsc::unbounded_channel();
            tokio::spawn(forward(context.peer.clone(), token, receiver));
            sender
        });
        CallProgress(sender)
    }

    pub fn tell(&self, text: &str) {
        self.send(Message::Text(text.to_owned()));
    }

    pub fn tell_part(&self, text: &str, part: u32, all: u32) {
        self.send(Message::Part(text.to_owned(), part, all));
    }

    fn send(&self, message: Message) {
        if let Some(sender) = &self.0 {
            // The client may have gone.
            let _ = sender.send(message);
        }
    }

    /// Ends when all was sent: nothing may come after the answer of the call.
    pub async fn flush(&self) {
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
        // The protocol wants it to grow.
        if progress <= last {
            continue;
        }
        last = progress;
        let mut told = ProgressNotificationParam::new(token.clone(), f64::from(progress))
            .with_message(line(&text));
        if let Some(all) = all {
            told = told.with_total(f64::from(all));
        }
        let _ = peer.notify_progress(told).await;
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

/// While a sandbox is prepared.
impl Progress for CallProgress {
    fn phase(&self, name: &str, detail: &str) {
        self.tell(&format!("{name}: {detail}"));
    }

    fn begins(&self, _: &StepView<'_>) {}

    fn ended(&self, _: &StepView<'_>) {}

    fn stage(&self, stage: &str, result: &str) {
        self.tell(&format!("{stage}: {result}"));
    }

    fn note(&self, text: &str) {
        self.tell(text);
    }
}
