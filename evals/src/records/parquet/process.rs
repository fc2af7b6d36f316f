//! The process that converts a Parquet file.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{MAGIC, TOO_LARGE, convert};

/// First argument of the program when it starts itself to convert a Parquet file. In that case `main` must only call
/// [`parquet_main`].
pub const PARQUET: &str = "__parquet";

/// Maximum memory of a conversion in bytes: a base, an amount per byte of the file, and the upper limit.
const MEMORY: ScaledLimit = ScaledLimit(512 << 20, 64, 4 << 30);
/// Maximum processor time of a conversion, in seconds.
const MAX_CPU_SECONDS: u64 = 60;
/// Maximum bytes of JSON lines, with the same three parts.
const OUTPUT: ScaledLimit = ScaledLimit(64 << 20, 64, 1 << 30);
/// Maximum bytes of an error message.
const MAX_MESSAGE: u64 = 4 << 10;

struct ScaledLimit(u64, u64, u64);

impl ScaledLimit {
    fn scale_to(&self, file: u64) -> u64 {
        let ScaledLimit(base, factor, max) = self;
        base.saturating_add(factor.saturating_mul(file)).min(*max)
    }
}

/// Exit code if an error message was written to standard error; a panic has another code.
const FAILED: u8 = 1;

/// The reason why a Parquet file cannot be converted.
#[derive(Debug, thiserror::Error)]
pub enum ParquetFileError {
    /// The end of the file is missing.
    #[error("its end is missing: the download or write was incomplete")]
    CutShort,
    /// The process that converts the file could not be started or run.
    #[error("it could not be converted: {0}")]
    Process(#[from] io::Error),
    /// The conversion exceeded a limit on memory, time or output.
    #[error("{TOO_LARGE}")]
    TooLarge,
    /// The content is not supported or invalid, with this message of the process.
    #[error("{0}")]
    Content(String),
    /// The process panicked, or its output is not UTF-8.
    #[error("it cannot be read: it is damaged")]
    Damaged,
}

/// Converts a Parquet file to JSON lines in a separate process.
///
/// # Errors
///
/// Fails if the file is damaged or too large. Messages complete the sentence "it starts like a Parquet file, but …".
pub(crate) fn to_json_lines(bytes: &[u8]) -> Result<String, ParquetFileError> {
    if !bytes.ends_with(MAGIC) || bytes.len() < 12 {
        return Err(ParquetFileError::CutShort);
    }
    let max_output = OUTPUT.scale_to(bytes.len() as u64);
    let mut file = tempfile::tempfile()?;
    file.write_all(bytes)?;
    file.rewind()?;
    let mut child = Command::new(std::env::current_exe()?)
        .arg(PARQUET)
        .env_clear()
        .stdin(file)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let output = read_output(&mut child, max_output);
    // Kill the process, which may still be writing more than the limit.
    child.kill()?;
    let status = child.wait()?;
    let (lines, message) = output?;
    if lines.len() as u64 > max_output {
        return Err(ParquetFileError::TooLarge);
    }
    match status.code() {
        Some(0) => String::from_utf8(lines).map_err(|_| ParquetFileError::Damaged),
        Some(code) if code == i32::from(FAILED) => Err(ParquetFileError::Content(message)),
        Some(_) => Err(ParquetFileError::Damaged),
        // A signal means that a limit was reached: memory, stack or processor time.
        None => Err(ParquetFileError::TooLarge),
    }
}

/// Reads the lines, up to one byte more than the limit, and the error message.
fn read_output(child: &mut Child, max_output: u64) -> io::Result<(Vec<u8>, String)> {
    let (mut lines, mut message) = (Vec::new(), Vec::new());
    if let Some(output) = child.stdout.take() {
        output.take(max_output + 1).read_to_end(&mut lines)?;
    }
    if lines.len() as u64 <= max_output
        && let Some(errors) = child.stderr.take()
    {
        errors.take(MAX_MESSAGE).read_to_end(&mut message)?;
        child.wait()?;
    }
    Ok((lines, String::from_utf8_lossy(&message).into_owned()))
}

/// Converts the Parquet file on standard input to JSON lines on standard output, within the limits.
pub fn parquet_main() -> ExitCode {
    let converted = io::stdin().as_fd().try_clone_to_owned().and_then(|file| {
        let file = File::from(file);
        limit_resources(file.metadata()?.len())?;
        Ok(convert(file, io::stdout().lock()))
    });
    let message = match converted {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => error.to_string(),
        Err(error) => format!("it could not be converted: {error}"),
    };
    let _ = write!(io::stderr(), "{message}");
    ExitCode::from(FAILED)
}

fn limit_resources(file: u64) -> io::Result<()> {
    let limits = [
        (Resource::As, MEMORY.scale_to(file)),
        (Resource::Cpu, MAX_CPU_SECONDS),
        (Resource::Core, 0),
    ];
    for (resource, max) in limits {
        let limit = Rlimit {
            current: Some(max),
            maximum: Some(max),
        };
        setrlimit(resource, limit)?;
    }
    Ok(())
}
