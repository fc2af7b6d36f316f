//! A spending limit in US dollars over many runs, which is never exceeded.
//!
//! Before a call, its maximum cost is reserved on disk; afterwards, the actual cost replaces the reservation.
//! A call that failed, or was cut short with its process, keeps the reservation if the provider may have done
//! the work.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::quota::{CallCost, Quota, Reservation};
use super::{ModelError, ModelName};

/// A line of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
enum Entry {
    /// Maximum cost of a call.
    Reserved { call: u64, dollars: f64 },
    /// Actual cost of a call.
    Spent { call: u64, dollars: f64 },
    /// Total cost so far of all calls by the workers of a database.
    Workers { dollars: f64 },
}

#[derive(Debug)]
struct Ledger {
    file: File,
    path: PathBuf,
    next: u64,
    /// Dollars spent or reserved, including reservations for calls in flight and for calls that were cut
    /// short.
    spent: f64,
    /// Part of `spent` that workers of a database spent.
    workers: f64,
    is_reached: bool,
}

/// Contents of a ledger.
#[derive(Default)]
struct Spending {
    /// Dollars by call.
    calls: BTreeMap<u64, f64>,
    /// Dollars spent by the workers of a database.
    workers: Option<f64>,
}

impl Spending {
    fn dollars(&self) -> f64 {
        self.calls.values().sum::<f64>() + self.workers.unwrap_or_default()
    }
}

/// Parses a ledger, and returns the length of its complete lines. An incomplete last line is a reservation
/// whose call was never made, or a cost whose reservation remains.
fn read(text: &str) -> std::io::Result<(Spending, usize)> {
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let mut spending = Spending::default();
    for (at, line) in text[..whole].lines().enumerate() {
        let entry: Entry = serde_json::from_str(line).map_err(|error| {
            let message = format!("line {}: {error}", at + 1);
            std::io::Error::new(std::io::ErrorKind::InvalidData, message)
        })?;
        match entry {
            Entry::Reserved { call, dollars } | Entry::Spent { call, dollars } => {
                spending.calls.insert(call, dollars);
            }
            Entry::Workers { dollars } => spending.workers = Some(dollars),
        }
    }
    Ok((spending, whole))
}

/// Returns the spending in a ledger, including reservations for calls that were cut short. Returns `None` if
/// it has no call.
///
/// # Errors
///
/// Fails if the ledger cannot be read or has an invalid line.
pub fn spent(path: &Path) -> std::io::Result<Option<f64>> {
    let text = match plain_file::read_text(path, Links::Refuse, MAX_DOCUMENT) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        text => text?,
    };
    let (spending, _) = read(&text)?;
    let is_empty = spending.calls.is_empty() && spending.workers.is_none();
    Ok((!is_empty).then(|| spending.dollars()))
}

/// A spending limit and the spending so far. Only one process at a time can open its file.
#[derive(Debug)]
pub struct SpendingLimit {
    most: Option<f64>,
    ledger: Mutex<Ledger>,
}

impl SpendingLimit {
    /// Opens a ledger with its earlier spending. If `most` is `None`, spending is counted but not limited.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be opened, has an invalid line, or is in use by another process.
    pub fn open(path: &Path, most: Option<f64>) -> std::io::Result<Self> {
        let file = plain_file::open_to_append(path)?;
        file.try_lock().map_err(|error| match error {
            std::fs::TryLockError::Error(source) => source,
            std::fs::TryLockError::WouldBlock => std::io::Error::new(
                std::io::ErrorKind::ResourceBusy,
                "another process is using it",
            ),
        })?;
        let text = plain_file::read_text(path, Links::Refuse, MAX_DOCUMENT)?;
        let (spending, whole) = read(&text)?;
        file.set_len(whole as u64)?;
        let next = spending
            .calls
            .last_key_value()
            .map_or(0, |(last, _)| last + 1);
        Ok(SpendingLimit {
            most,
            ledger: Mutex::new(Ledger {
                file,
                path: path.to_owned(),
                next,
                spent: spending.dollars(),
                workers: spending.workers.unwrap_or_default(),
                is_reached: false,
            }),
        })
    }

    /// Returns whether a call was refused because of the limit.
    pub fn is_reached(&self) -> bool {
        self.ledger().is_reached
    }

    /// Returns the dollars spent, including all reservations.
    pub fn spent(&self) -> f64 {
        self.ledger().spent
    }

    /// Sets the total that workers of a database have spent so far, replacing the earlier value.
    ///
    /// # Errors
    ///
    /// Fails if the ledger cannot be written.
    pub fn set_worker_spending(&self, dollars: f64) -> Result<(), ModelError> {
        let mut ledger = self.ledger();
        ledger.add(&Entry::Workers { dollars })?;
        ledger.spent += dollars - ledger.workers;
        ledger.workers = dollars;
        Ok(())
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reserve_dollars(&self, dollars: f64) -> Result<u64, ModelError> {
        let mut ledger = self.ledger();
        if let Some(max_dollars) = self.most
            && ledger.spent + dollars > max_dollars
        {
            ledger.is_reached = true;
            return Err(ModelError::CeilingReached(if dollars > max_dollars {
                format!(
                    "the budget of ${max_dollars} is too small for one call, which could cost ${dollars:.4}"
                )
            } else {
                format!(
                    "${:.4} of ${max_dollars} is spent or reserved, and the next call could cost ${dollars:.4}",
                    ledger.spent
                )
            }));
        }
        let call = ledger.next;
        ledger.add(&Entry::Reserved { call, dollars })?;
        ledger.next += 1;
        ledger.spent += dollars;
        Ok(call)
    }

    fn count(&self, call: u64, reserved: f64, dollars: f64) -> Result<(), ModelError> {
        let mut ledger = self.ledger();
        ledger.add(&Entry::Spent { call, dollars })?;
        ledger.spent += dollars - reserved;
        Ok(())
    }
}

impl Ledger {
    fn add(&mut self, entry: &Entry) -> Result<(), ModelError> {
        let written = serde_json::to_vec(entry)
            .map_err(std::io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                plain_file::append_line(&mut self.file, &line)
            });
        written.map_err(|error| {
            let message = format!("{} cannot be written: {error}", self.path.display());
            ModelError::fatal(message, "free disk space".to_owned())
        })
    }
}

#[async_trait]
impl Quota for SpendingLimit {
    async fn reserve(&self, _: &ModelName, most: CallCost) -> Result<Reservation, ModelError> {
        Ok(Reservation {
            call: self.reserve_dollars(most.dollars)?,
            most,
            scopes: Vec::new(),
        })
    }

    async fn commit(&self, reserved: &Reservation, used: CallCost) -> Result<(), ModelError> {
        self.count(reserved.call, reserved.most.dollars, used.dollars)
    }
}

#[cfg(test)]
mod tests;
