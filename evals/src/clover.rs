//! CLOVER's three tasks (Xu et al. 2025, arXiv 2502.08806) from any Python repository: fill the blank of an assertion (I), write
//! a test that calls a given class or function (II), write a test that covers given blocks (III).
//!
//! Problems are taken from the repository's own tests, so that each has a golden answer; it is verified before the problem is
//! let in. Everything is drawn by a seed: the same commits give the same problems, byte for byte. Nothing here knows a model:
//! answers are texts.

pub mod answer;
pub mod blanks;
pub mod blocks;
pub mod build;
pub mod context;
pub mod drops;
pub mod evaluation;
pub mod extract;
pub mod folder;
pub mod hidden_tests;
pub mod manifest;
pub mod problem;
pub mod refusals;
pub mod report;
pub mod repository;
pub mod selection;
pub mod targets;

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::error::ErrorKind;
use testwright_sandboxes::sandbox::Result;

pub use problem::{Budget, Problem, Question, Task};

/// Changes when the same repository would give other problems.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "/1");

/// Bytes of stack for reading code: those who walk a syntax tree recurse.
const STACK: usize = 64 << 20;

fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let done = thread.spawn_scoped(scope, work)?.join();
        done.map_err(|_| SandboxError::new(ErrorKind::System, "read the code of tests"))
    })
}
