#![allow(clippy::unwrap_used)]
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::quota::MeteredModel;
use crate::{Message, Model, Reply, Request, Usage};
use testwright_config::settings::Price;

/// A model that bills each call in tokens. Every third call fails on the way, billed or not.
struct Provider {
    billed: Arc<AtomicU64>,
    calls: AtomicU64,
}

#[async_trait]
impl Model for Provider {
    fn name(&self) -> &str {
        "m"
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        let usage = Usage {
            prompt_tokens: 40,
            completion_tokens: request.max_tokens.unwrap_or(u64::MAX),
            ..Usage::default()
        };
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let unbilled = call % 3 == 2;
        if !unbilled {
            let tokens = usage.prompt_tokens + usage.completion_tokens;
            self.billed.fetch_add(tokens, Ordering::SeqCst);
        }
        if call.is_multiple_of(3) {
            return Ok(Reply {
                usage,
                ..Reply::default()
            });
        }
        Err(ModelError::Transient {
            message: "busy".to_owned(),
            after: None,
            unbilled,
        })
    }
}

/// Returns a price of one dollar per token.
fn price() -> Price {
    Price {
        prompt: 1e6,
        cached: None,
        completion: 1e6,
        date: None,
    }
}

fn request() -> Request {
    Request {
        messages: vec![Message::User {
            content: "What is wrong?".to_owned(),
        }],
        tools: Vec::new(),
        parallel_calls: false,
        temperature: None,
        max_tokens: None,
    }
}

#[tokio::test]
async fn limit_holds_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spending.jsonl");
    let billed = Arc::new(AtomicU64::new(0));
    let mut call_count = 0;
    for _ in 0..4 {
        let ceiling = Arc::new(SpendingLimit::open(&path, Some(2_000.0)).unwrap());
        assert!(SpendingLimit::open(&path, None).is_err(), "it is locked");
        let provider = Provider {
            billed: billed.clone(),
            calls: AtomicU64::new(call_count),
        };
        let name = ModelName::parse("m").unwrap();
        let quota = ceiling.clone();
        let model = MeteredModel {
            inner: Box::new(provider),
            model: name,
            price: Some(price()),
            quota,
            completion_tokens: 50,
        };
        // Leave as many reservations as a killed process might have.
        for _ in 0..4 {
            match model.complete(&request()).await {
                Err(ModelError::CeilingReached(_)) => {}
                _ => call_count += 1,
            }
            let billed = billed.load(Ordering::SeqCst) as f64;
            assert!(billed <= ceiling.spent() && ceiling.spent() <= 2_000.0);
        }
    }
    assert!((6..16).contains(&call_count), "{call_count}");
    let ceiling = SpendingLimit::open(&path, Some(2_000.0)).unwrap();
    let refusal = |dollars| ceiling.reserve_dollars(dollars).unwrap_err().to_string();
    assert!(refusal(2_000.0).contains("is spent or reserved"));
    assert!(refusal(2_001.0).contains("too small for one call"));
}

#[test]
fn killed_call_counts_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spending.jsonl");
    let ceiling = SpendingLimit::open(&path, None).unwrap();
    let first = ceiling.reserve_dollars(3.0).unwrap();
    ceiling.reserve_dollars(4.0).unwrap();
    ceiling.count(first, 3.0, 1.0).unwrap();
    drop(ceiling);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}{{\"entry\":\"spe")).unwrap();
    assert_eq!(SpendingLimit::open(&path, None).unwrap().spent(), 5.0);
    std::fs::write(&path, "{}\n").unwrap();
    assert!(SpendingLimit::open(&path, None).is_err());
}

#[test]
fn worker_spending_is_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("spending.jsonl");
    assert_eq!(spent(&path).unwrap(), None);
    let ceiling = SpendingLimit::open(&path, None).unwrap();
    ceiling.set_worker_spending(2.0).unwrap();
    ceiling.reserve_dollars(1.0).unwrap();
    ceiling.set_worker_spending(3.0).unwrap();
    assert_eq!(ceiling.spent(), 4.0);
    drop(ceiling);
    assert_eq!(spent(&path).unwrap(), Some(4.0));
    let ceiling = SpendingLimit::open(&path, None).unwrap();
    ceiling.set_worker_spending(3.5).unwrap();
    assert_eq!(ceiling.spent(), 4.5);
}

/// A file of almost the maximum size takes only a part of a line, like a disk that becomes full.
#[cfg(target_os = "linux")]
#[test]
fn failed_write_leaves_no_partial_line() {
    use rustix::fs::{MemfdFlags, OFlags, fcntl_setfl, memfd_create};

    let file = File::from(memfd_create("ledger", MemfdFlags::empty()).unwrap());
    fcntl_setfl(&file, OFlags::APPEND).unwrap();
    let before = i64::MAX as u64 - 3;
    file.set_len(before).unwrap();
    let mut ledger = Ledger {
        file,
        path: PathBuf::from("spending.jsonl"),
        next: 0,
        spent: 0.0,
        workers: 0.0,
        is_reached: false,
    };
    let error = ledger.add(&Entry::Workers { dollars: 1.0 }).unwrap_err();
    assert!(matches!(error, ModelError::Fatal { .. }), "{error}");
    assert_eq!(ledger.file.metadata().unwrap().len(), before);
}
