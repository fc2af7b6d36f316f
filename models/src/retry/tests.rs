#![allow(clippy::unwrap_used, clippy::expect_used)]
use std::sync::{Arc, Mutex};

use super::*;
use crate::Request;

/// A model that fails with the given errors, then answers.
struct Shaky(Mutex<std::vec::IntoIter<ModelError>>);

#[async_trait]
impl Model for Shaky {
    fn name(&self) -> &str {
        "shaky"
    }

    async fn complete(&self, _: &Request) -> Result<Reply, ModelError> {
        match self.0.lock().unwrap().next() {
            Some(error) => Err(error),
            None => Ok(Reply::default()),
        }
    }
}

fn transient(after: Option<f64>) -> ModelError {
    ModelError::Transient {
        message: "busy".to_owned(),
        after,
        unbilled: false,
    }
}

fn request() -> Request {
    Request {
        messages: vec![],
        tools: vec![],
        parallel_calls: false,
        temperature: None,
        max_tokens: None,
    }
}

/// Returns the result and the delays, without waiting. `seed` decides the random part of delays.
async fn run(errors: Vec<ModelError>, seed: u64) -> (Result<Reply, ModelError>, Vec<f64>) {
    fastrand::seed(seed);
    let slept = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&slept);
    let model = Shaky(Mutex::new(errors.into_iter()));
    let mut retry = Retry::new(Box::new(model), None);
    retry.sleep = Box::new(move |wait| {
        log.lock().unwrap().push(wait.as_secs_f64());
        Box::pin(async {})
    });
    let result = retry.complete(&request()).await;
    let slept = slept.lock().unwrap().clone();
    (result, slept)
}

#[tokio::test]
async fn delays_grow_up_to_limit() {
    let errors = || vec![transient(None); 7];
    let (result, waits) = run(errors(), 1).await;
    assert_eq!(result.map(|r| r.failed_tries), Ok(7));
    assert_eq!(waits.len(), 7);
    for (i, wait) in waits.iter().enumerate() {
        let full = f64::from(1u32 << i).min(60.0);
        assert!(*wait >= full / 2.0 && *wait <= full, "{waits:?}");
    }
    assert_eq!(run(errors(), 1).await.1, waits);
    assert_ne!(run(errors(), 2).await.1, waits);
}

#[tokio::test]
async fn server_delay_is_never_shortened() {
    let (_, waits) = run(vec![transient(Some(90.0))], 1).await;
    assert!(waits[0] >= 90.0 && waits[0] < 91.0, "{waits:?}");
}

#[tokio::test]
async fn hinted_delays_are_bounded_by_time_only() {
    let (result, waits) = run(vec![transient(Some(2.0)); 40], 1).await;
    assert_eq!(result.map(|reply| reply.failed_tries), Ok(40));
    assert_eq!(waits.len(), 40);
    let (result, waits) = run(vec![transient(Some(2.0)); 1_000], 1).await;
    assert!(waits.iter().sum::<f64>() <= 300.0, "{waits:?}");
    assert!(result.is_err());
}

#[tokio::test]
async fn tries_and_delays_are_bounded() {
    let (result, waits) = run(vec![transient(None); 50], 1).await;
    assert_eq!(waits.len(), 7);
    assert!(result.unwrap_err().to_string().contains("after 8 calls"));

    let (result, waits) = run(vec![transient(Some(3600.0))], 1).await;
    assert!(waits.is_empty());
    let message = result.unwrap_err().to_string();
    assert!(message.contains("3600 s would exceed"), "{message}");
}

#[tokio::test]
async fn address_without_server_gets_three_calls() {
    let refused = || ModelError::Unreachable {
        message: "refused".to_owned(),
        hint: "start it".to_owned(),
    };
    let (result, waits) = run(vec![refused(); 9], 1).await;
    assert_eq!(waits.len(), 2);
    assert!(matches!(result, Err(ModelError::Unreachable { .. })));
    // A server that answered before may be restarting.
    let restarted = [vec![transient(None)], vec![refused(); 5]].concat();
    let (result, waits) = run(restarted, 1).await;
    assert_eq!(
        (result.map(|reply| reply.failed_tries), waits.len()),
        (Ok(6), 6)
    );
}

#[tokio::test]
async fn only_transient_errors_are_retried() {
    for error in [
        ModelError::ContextFull("full".to_owned()),
        ModelError::Fatal {
            message: "no".to_owned(),
            hint: None,
        },
        ModelError::NotRecorded("no".to_owned()),
    ] {
        let (result, waits) = run(vec![error.clone()], 1).await;
        assert_eq!(result, Err(error));
        assert!(waits.is_empty());
    }
}
