//! Quotas for calls of a model: asked before each call, updated after it. Every try counts separately,
//! because a failed one may be billed too.

use std::sync::Arc;

use async_trait::async_trait;

use super::price::{cost, price_of};
use super::{Model, ModelError, ModelName, Reply, Request};
use testwright_config::error::{self, Error};
use testwright_config::settings::{Price, Settings};

/// Maximum completion tokens of a call if no setting limits them. Without a limit, the possible cost of a
/// call is unknown.
pub const DEFAULT_MAX_COMPLETION_TOKENS: u64 = 16_384;

/// Maximum overhead in tokens that a provider may add to a message or a tool.
const FRAME: u64 = 64;
/// Approximate bytes per token of English text and code.
const BYTES_PER_TOKEN: u64 = 4;

/// The cost of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CallCost {
    /// Cost in US dollars; 0 for a model without a price.
    pub dollars: f64,
    /// Number of tokens, prompt and completion together.
    pub tokens: u64,
}

/// A reservation for a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Reservation {
    /// Id of the call in the quota; 0 if the quota counts only sums.
    pub call: u64,
    /// Amount reserved for the call.
    pub most: CallCost,
    /// Quotas that the call counts against, if there are several.
    pub scopes: Vec<String>,
}

/// Checks that a limit in dollars allows one call. Before there is a prompt, only the maximum cost of the
/// answer is known. `completion_tokens` limits the answer; `None` for the default of metered calls.
///
/// # Errors
///
/// Fails with a usage error if the limit is too small.
pub fn check_budget(
    settings: &Settings,
    model: &ModelName,
    dollars: f64,
    completion_tokens: Option<u64>,
) -> error::Result<()> {
    let tokens = completion_tokens.unwrap_or(DEFAULT_MAX_COMPLETION_TOKENS);
    let price = price_of(settings, model).map_or(0.0, |price| price.completion);
    let cost = tokens as f64 * price / 1e6;
    if cost <= dollars {
        return Ok(());
    }
    Err(Error::usage("start within the limit in dollars")
        .cause(format!(
            "the budget of ${dollars} is too small for one call: an answer of `{model}` with {tokens} tokens costs ${cost:.4}"
        ))
        .hint("raise --max-dollars, or lower model.max-tokens"))
}

/// A limit on the cost and the tokens of calls.
#[async_trait]
pub trait Quota: Send + Sync {
    /// Reserves the maximum cost of a call and its tokens. Waits if the quota will allow the call later.
    async fn reserve(
        &self,
        model: &ModelName,
        max_cost: CallCost,
    ) -> Result<Reservation, ModelError>;

    /// Replaces the reservation by the actual cost. If this is never called, the reservation remains.
    async fn commit(&self, reserved: &Reservation, used: CallCost) -> Result<(), ModelError>;
}

/// A model whose calls count against a quota.
pub(super) struct MeteredModel {
    pub(super) inner: Box<dyn Model>,
    pub(super) model: ModelName,
    pub(super) price: Option<Price>,
    pub(super) quota: Arc<dyn Quota>,
    /// Maximum completion tokens if a request has no limit of its own.
    pub(super) completion_tokens: u64,
}

impl MeteredModel {
    /// Returns the maximum cost of a call (a token has at least one byte), and its approximate number of
    /// tokens.
    fn max_cost(&self, request: &Request) -> CallCost {
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
            tokens: bytes / BYTES_PER_TOKEN + completion,
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
        // Requests to a model without a price are not changed.
        if self.price.is_some() {
            limited.max_tokens = request.max_tokens.or(Some(self.completion_tokens));
        }
        let max_cost = self.max_cost(&limited);
        let reserved = self.quota.reserve(&self.model, max_cost).await?;
        let answered = self.inner.complete(&limited).await;
        let used = match &answered {
            Ok(reply) if !reply.usage.estimated => CallCost {
                dollars: (self.price.as_ref()).map_or(0.0, |price| cost(price, &reply.usage)),
                tokens: reply.usage.prompt_tokens + reply.usage.completion_tokens,
            },
            Err(error) if !error.may_be_billed() => CallCost::default(),
            // The call may have cost all that was reserved.
            _ => return answered,
        };
        // If this fails, the reservation remains, so that an answer that was paid for is not lost.
        if let Err(error) = self.quota.commit(&reserved, used).await {
            tracing::warn!(%error, "the cost of a call was not recorded");
        }
        answered
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn budget_below_one_answer_is_refused() {
        let (settings, model) = (Settings::default(), ModelName::parse("gpt-5-mini").unwrap());
        let check = |dollars, tokens| check_budget(&settings, &model, dollars, tokens);
        let error = check(0.01, None).unwrap_err().render();
        assert!(error.contains("with 16384 tokens costs $0.0328"), "{error}");
        assert!(check(0.01, Some(4_096)).is_ok());
        assert!(check(0.04, None).is_ok());
        let unknown = ModelName::parse("local").unwrap();
        assert!(check_budget(&settings, &unknown, 0.01, None).is_ok());
    }
}
