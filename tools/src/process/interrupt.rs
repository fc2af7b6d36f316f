//! Interrupts a tool call: its programs are ended as at their deadline, and no more are started until the call
//! is over. Since one call runs at a time, the process has a single interrupt.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Result, ToolError};

struct Interrupt {
    is_raised: AtomicBool,
    /// Readable while the interrupt is raised, so that it wakes every wait for a program.
    reader: PipeReader,
    writer: PipeWriter,
}

static INTERRUPT: OnceLock<Interrupt> = OnceLock::new();

/// Makes calls interruptible, in a process that serves them.
///
/// # Errors
///
/// Fails if the pipe cannot be created.
pub fn enable() -> std::io::Result<()> {
    let (reader, writer) = std::io::pipe()?;
    INTERRUPT.get_or_init(|| Interrupt {
        is_raised: AtomicBool::new(false),
        reader,
        writer,
    });
    Ok(())
}

/// Interrupts the running call. The caller must ensure that [`clear`] does not run at the same time.
pub fn raise() {
    if let Some(interrupt) = INTERRUPT.get()
        && !interrupt.is_raised.swap(true, Ordering::SeqCst)
    {
        // One byte always fits: `clear` has read the previous one.
        let _ = (&interrupt.writer).write(&[0]);
    }
}

/// Allows programs again, for the next call.
pub fn clear() {
    if let Some(interrupt) = INTERRUPT.get()
        && interrupt.is_raised.swap(false, Ordering::SeqCst)
    {
        let _ = (&interrupt.reader).read(&mut [0]);
    }
}

/// Returns whether the running call has been interrupted.
pub fn is_raised() -> bool {
    let interrupt = INTERRUPT.get();
    interrupt.is_some_and(|interrupt| interrupt.is_raised.load(Ordering::SeqCst))
}

/// Checks for an interruption.
///
/// # Errors
///
/// Returns [`ToolError::Cancelled`] if the call has been interrupted.
pub fn check() -> Result<()> {
    match is_raised() {
        true => Err(ToolError::Cancelled),
        false => Ok(()),
    }
}

/// Returns a descriptor that becomes readable when the call is interrupted.
pub fn descriptor() -> Option<BorrowedFd<'static>> {
    INTERRUPT.get().map(|interrupt| interrupt.reader.as_fd())
}
