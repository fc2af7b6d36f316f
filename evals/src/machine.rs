//! The program and the machine that produce results, for records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Commit of the program, if its build set `TESTWRIGHT_COMMIT`.
pub const COMMIT: Option<&str> = option_env!("TESTWRIGHT_COMMIT");

/// A machine that produced results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// Number of processors that the program may use.
    pub processors: u64,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Release of the Linux kernel.
    pub kernel: String,
    /// Processor architecture, such as `x86_64`.
    pub architecture: String,
}

impl Machine {
    /// Describes this machine.
    pub fn current() -> Machine {
        let (name, memory) = (rustix::system::uname(), rustix::system::sysinfo());
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Machine {
            processors: processors as u64,
            memory_bytes: memory.totalram.saturating_mul(memory.mem_unit.into()),
            kernel: name.release().to_string_lossy().into_owned(),
            architecture: name.machine().to_string_lossy().into_owned(),
        }
    }
}
