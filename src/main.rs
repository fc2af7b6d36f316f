//! The program: a command line over the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    // A jail is made by this program, started again, before it has a second thread.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == testwright::preparation::JAIL)
    {
        testwright_sandboxes::local::jail_main();
    }
    return_large_blocks();
    match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime.block_on(testwright::cli::main()),
        Err(error) => {
            eprintln!("error: failed to start: {error}");
            ExitCode::from(3)
        }
    }
}

/// The whole conversation is written out for each model call. By default glibc keeps such blocks once they were freed,
/// ever larger ones as a run goes on; with a fixed threshold they go back to the system.
fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets a number of the allocator, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 * 1024);
    }
}
