//! The program: a command line over the library.

use std::process::ExitCode;

use testwright_tools::program as toolbox;

fn main() -> ExitCode {
    if toolbox::is_invoked() {
        return toolbox::main();
    }
    // This program, started again, makes a jail or reads a Parquet file before it has a second thread.
    match std::env::args_os().nth(1) {
        Some(first) if first == testwright_agent::backends::JAIL => {
            testwright_sandboxes::local::jail_main()
        }
        Some(first) if first == testwright_evals::PARQUET => {
            return testwright_evals::parquet_main();
        }
        _ => {}
    }
    return_large_blocks();
    match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_stack_size(testwright_tools::python::STACK)
        .enable_all()
        .build()
    {
        Ok(runtime) => {
            let code = runtime.block_on(async {
                tokio::spawn(return_free_pages());
                testwright::cli::main().await
            });
            // A read of a disk or of standard input that hangs does not keep the process.
            runtime.shutdown_timeout(std::time::Duration::from_secs(5));
            code
        }
        Err(error) => {
            testwright::cli::output::err(format!("error: failed to start: {error}"));
            ExitCode::from(3)
        }
    }
}

/// The whole conversation is written out for each model call. By default glibc keeps such blocks once they were freed,
/// ever larger ones as a run goes on; with a fixed threshold they go back to the system. And each thread has a heap of its
/// own by default, where holes that one leaves are of no use to the other.
fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets numbers of the allocator, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 * 1024);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// What was free in between is kept otherwise, and a run waits for a model or for tests most of the time.
async fn return_free_pages() {
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        #[cfg(target_env = "gnu")]
        // SAFETY: gives free pages of the heap back, which the allocator allows at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
