//! Processor time of the whole machine, to tell what the processors allow from what the program does.

use std::error::Error;

/// For which all processors together have been busy since the machine started (proc(5): user, nice and system; a tick is 10 ms).
pub fn processor_seconds() -> Result<f64, Box<dyn Error + Send + Sync>> {
    let all = std::fs::read_to_string("/proc/stat")?;
    let first = all.lines().next().unwrap_or_default();
    let ticks = first.split_whitespace().skip(1).take(3);
    let ticks: u64 = ticks.map(str::parse::<u64>).sum::<Result<u64, _>>()?;
    Ok(ticks as f64 / 100.0)
}
