//! What calls of a model may use: asked before each, told after it. Every try of a call counts by itself, for a failed one may
//! be billed too.

use std::sync::Arc;

use async_trait::async_trait;

use super::price::cost;
use super::{Model, ModelError, ModelName, Reply, Request};
use testwright_config::settings::Price;

/// Completion tokens of a call where no setting limits them: without a limit, nothing is known of what a call can cost.
pub const COMPLETION_TOKENS: u64 = 16_384;

/// Tokens that a provider may put around a message or a tool, at most.
const FRAME: u64 = 64;
/// Of English and of code, about.
const BYTES_A_TOKEN: u64 = 4;

/// What a call uses.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallCost {
    /// 0 for a model without a price.
    pub dollars: f64,
    pub tokens: u64,
}

/// A call that may be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    pub call: u64,
    /// What was set aside for it.
    pub most: CallCost,
    /// What it counts against, where that is several things.
    pub scopes: Vec<String>,
}

#[async_trait]
pub trait Quota: Send + Sync {
    /// Sets aside the most dollars that a call can cost, and the tokens that it may take; waits where that is a matter of
    /// time.
    async fn reserve(&self, model: &ModelName, most: CallCost) -> Result<Reservation, ModelError>;

    /// Puts what a call did use in the place of what was set aside. Without it, the reservation stands.
    async fn settle(&self, reserved: &Reservation, used: CallCost) -> Result<(), ModelError>;
}

/// A model whose calls count against a quota.
pub struct MeteredModel {
    inner: Box<dyn Model>,
    model: ModelName,
    price: Option<Price>,
    quota: Arc<dyn Quota>,
    /// Where a request has no limit of its own.
    completion_tokens: u64,
}

impl MeteredModel {
    pub fn new(
        inner: Box<dyn Model>,
        model: ModelName,
        price: Option<Price>,
        quota: Arc<dyn Quota>,
        completion_tokens: Option<u64>,
    ) -> Self {
        MeteredModel {
            inner,
            model,
            price,
            quota,
            completion_tokens: completion_tokens.unwrap_or(COMPLETION_TOKENS),
        }
    }

    /// The most dollars that a call can cost (a token is at least a byte long), and about the tokens that it takes.
    fn most(&self, request: &Request) -> CallCost {
        let bytes = serde_json::to_vec(request).map_or(0, |text| text.len()) as u64;
        let pieces = (request.messages.len() + request.tools.len() + 1) as u64;
        let completion = request.max_tokens.unwrap_or(self.completion_tokens);
        let dollars = self.price.as_ref().map_or(0.0, |price| {
            let prompt = (bytes + FRAME * pieces) as f64;
            let dearest = price.prompt.max(price.cached.unwrap_or_default());
            (prompt * dearest + completion as f64 * price.completion) / 1e6
        });
        CallCost {
            dollars,
            tokens: bytes / BYTES_A_TOKEN + completion,
        }
    }

    /// Where that fails, the reservation stands: an answer that is paid for is not thrown away.
    async fn settle(&self, reserved: &Reservation, used: CallCost) {
        if let Err(error) = self.quota.settle(reserved, used).await {
            tracing::warn!(%error, "what a call cost was not counted");
        }
    }

    fn used(&self, reply: &Reply) -> CallCost {
        let usage = &reply.usage;
        CallCost {
            dollars: self.price.as_ref().map_or(0.0, |price| cost(price, usage)),
            tokens: usage.prompt_tokens + usage.completion_tokens,
        }
    }
}

#[async_trait]
impl Model for MeteredModel {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        let mut limited = request.clone();
        // A model without a price is asked as it would be without a quota.
        if self.price.is_some() {
            limited.max_tokens = request.max_tokens.or(Some(self.completion_tokens));
        }
        let most = self.most(&limited);
        let reserved = self.quota.reserve(&self.model, most).await?;
        let answered = self.inner.complete(&limited).await;
        match &answered {
            // What a provider did not count may have cost all that was reserved.
            Ok(reply) if reply.usage.estimated => {}
            Ok(reply) => self.settle(&reserved, self.used(reply)).await,
            Err(error) if error.may_be_billed() => {}
            Err(_) => self.settle(&reserved, CallCost::default()).await,
        }
        answered
    }
}
