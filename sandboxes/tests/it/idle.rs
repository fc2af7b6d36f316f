//! The processor time of an idle local sandbox, which is watched all the time.

use std::time::{Duration, Instant};

use nix::unistd::Pid;
use testwright_sandboxes::Command;
use testwright_sandboxes::local::Isolation;

use crate::local::{bare_start, cache, local, spec, supervisor_pid};

/// Maximum share of one processor.
const MAX_SHARE: f64 = 0.012;

/// Returns the processor time of a process.
fn processor_time(pid: Pid) -> Duration {
    let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_sandbox_takes_little_processor_time() {
    let cache = cache();
    let Some(backend) = local(&cache, Isolation::Namespaces) else {
        return;
    };
    let sandbox = backend.start(&spec(bare_start())).await.unwrap();
    let _running = sandbox
        .spawn(&Command::new(["sleep", "600"]))
        .await
        .unwrap();
    let keeper = supervisor_pid(cache.path(), sandbox.as_ref());
    // The first measurement of the disk takes longer.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (begun, before) = (Instant::now(), processor_time(keeper));
    tokio::time::sleep(Duration::from_secs(4)).await;
    let spent = processor_time(keeper) - before;
    let share = spent.as_secs_f64() / begun.elapsed().as_secs_f64();
    assert!(share < MAX_SHARE, "{share}");
    sandbox.stop().await.unwrap();
}
