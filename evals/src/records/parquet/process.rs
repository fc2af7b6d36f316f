//! The process that converts a Parquet file, and how it is started.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::process::{Resource, Rlimit, setrlimit};

use super::{MAGIC, TOO_LARGE, convert};

/// The first argument with which the program is started again to convert a Parquet file: `main` then only calls
/// [`parquet_main`].
pub const PARQUET: &str = "__parquet";

/// Bytes of memory for a conversion: a base, more for each byte of the file, and the maximum.
const MEMORY: Bound = Bound(512 << 20, 64, 4 << 30);
/// Seconds of processor time that a conversion may take.
const MAX_CPU_SECONDS: u64 = 60;
/// Bytes of JSON lines, likewise.
const OUTPUT: Bound = Bound(64 << 20, 64, 1 << 30);
/// Bytes of an error message.
const MAX_MESSAGE: u64 = 4 << 10;

struct Bound(u64, u64, u64);

impl Bound {
    fn of(&self, file: u64) -> u64 {
        let Bound(base, factor, max) = self;
        base.saturating_add(factor.saturating_mul(file)).min(*max)
    }
}

/// The exit code with which the message of an error is on standard error; a panic has another.
const FAILED: u8 = 1;

#[derive(Debug, thiserror::Error)]
pub enum ParquetFileError {
    #[error("its end is missing: it was not fetched or written to the end")]
    CutShort,
    #[error("it could not be converted: {0}")]
    Process(#[from] io::Error),
    #[error("{TOO_LARGE}")]
    TooLarge,
    #[error("{0}")]
    Content(String),
    #[error("it cannot be read: it is damaged")]
    Damaged,
}

/// The rows of a Parquet file as JSON lines, converted in a process of its own.
///
/// # Errors
/// Messages complete the sentence "it begins as a Parquet file does, and …".
pub fn to_json_lines(bytes: &[u8]) -> Result<String, ParquetFileError> {
    if !bytes.ends_with(MAGIC) || bytes.len() < 12 {
        return Err(ParquetFileError::CutShort);
    }
    let max_output = OUTPUT.of(bytes.len() as u64);
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
    // It may still be writing more than is read.
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
        // A limit was reached, by an allocation, the stack or the clock.
        None => Err(ParquetFileError::TooLarge),
    }
}

/// The lines, with a byte more than there is room for if there are too many, and the error message.
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

/// Converts the Parquet file on standard input to JSON lines on standard output, within its limits.
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
        (Resource::As, MEMORY.of(file)),
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
