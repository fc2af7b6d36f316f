//! CPU time of the whole machine, to separate limits of the CPUs from those of the program.

use std::error::Error;

/// Returns the busy time of all CPUs since boot (proc(5): user, nice and system; a tick is 10 ms).
pub(crate) fn processor_seconds() -> Result<f64, Box<dyn Error + Send + Sync>> {
    let all = std::fs::read_to_string("/proc/stat")?;
    let first = all.lines().next().unwrap_or_default();
    let ticks = first.split_whitespace().skip(1).take(3);
    let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks as f64 / 100.0)
}
