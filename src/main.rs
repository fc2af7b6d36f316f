//! The `testwright` program.

use std::process::ExitCode;

use testwright_tools::program as toolbox;

fn main() -> ExitCode {
    if toolbox::is_invoked() {
        return toolbox::main();
    }
    // testwright runs itself again to create a jail or to read a Parquet file. Both must happen before a second thread
    // starts.
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
            // A hanging read from a disk or from standard input must not keep the process alive.
            runtime.shutdown_timeout(std::time::Duration::from_secs(5));
            code
        }
        Err(error) => {
            testwright::cli::output::print_stderr(format!("error: failed to start: {error}"));
            ExitCode::from(3)
        }
    }
}

/// Makes glibc return large freed blocks to the system, and use one heap for all threads.
///
/// Each model call serializes the whole conversation. By default glibc raises its threshold and keeps ever larger
/// blocks. Separate heaps per thread would also fragment memory, because one thread cannot reuse another's free space.
fn return_large_blocks() {
    #[cfg(target_env = "gnu")]
    // SAFETY: sets allocator parameters before a second thread exists.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 128 * 1024);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns free heap pages to the system every second, since glibc keeps them and a run is idle most of the time.
async fn return_free_pages() {
    loop {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        #[cfg(target_env = "gnu")]
        // SAFETY: returns free heap pages to the system, which the allocator allows at any time.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
