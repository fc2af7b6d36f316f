//! Metrics of this process from the kernel, under the names that Prometheus' own libraries use.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Collects metrics by reading /proc on each request.
#[derive(Debug)]
pub(super) struct ProcessCollector;

struct ProcessState {
    cpu_seconds: f64,
    resident_bytes: i64,
    open_files: i64,
}

/// Reads the state of this process; `None` if there is no /proc.
fn read() -> Option<ProcessState> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name is in parentheses and may contain spaces.
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let number = |at: usize| fields.get(at)?.parse::<u32>().ok();
    let ticks = f64::from(number(11)?) + f64::from(number(12)?);
    let pages: i64 = fields.get(21)?.parse().ok()?;
    let page = i64::try_from(rustix::param::page_size()).ok()?;
    let open = std::fs::read_dir("/proc/self/fd").ok()?.count();
    Some(ProcessState {
        cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
        resident_bytes: pages * page,
        open_files: i64::try_from(open).ok()?,
    })
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        let Some(state) = read() else { return Ok(()) };
        let cpu = ConstCounter::new(state.cpu_seconds);
        let of_cpu = encoder.encode_descriptor(
            "process_cpu_seconds",
            "CPU time of this process",
            None,
            cpu.metric_type(),
        )?;
        cpu.encode(of_cpu)?;
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Resident memory of this process",
                state.resident_bytes,
            ),
            (
                "process_open_fds",
                "Open files of this process",
                state.open_files,
            ),
        ] {
            let gauge = ConstGauge::new(value);
            let of_gauge = encoder.encode_descriptor(name, help, None, gauge.metric_type())?;
            gauge.encode(of_gauge)?;
        }
        Ok(())
    }
}
