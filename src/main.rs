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
