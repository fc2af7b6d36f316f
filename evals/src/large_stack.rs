//! Runs work that walks syntax trees recursively on a large stack.

use testwright_sandboxes::SandboxError;
use testwright_sandboxes::sandbox::Result;

/// Stack size in bytes. Code may be deeply nested.
const STACK: usize = 64 << 20;

/// Runs `work` in a thread of its own.
///
/// # Errors
///
/// Fails if the thread cannot be started, or the work panics.
pub(crate) fn on_large_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK);
        let done = thread.spawn_scoped(scope, work)?.join();
        done.map_err(|_| SandboxError::system("reading the code panicked"))
    })
}
