//! The log of a build.
//!
//! The output of a build is untrusted, so the length of a line is limited. So is the log, which keeps its beginning and
//! its end. It names the seconds of each step and between steps, so that they add up to the total.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::locked;
use crate::sandbox::Result;

/// Maximum bytes kept of one line.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Bytes kept of the beginning, and minimum bytes kept of the end. The file also holds up to twice the end.
const KEPT_HEAD_BYTES: u64 = 16 << 20;
const KEPT_TAIL_BYTES: u64 = 16 << 20;

/// Minimum time between steps that has a line. Shorter times are added up.
const MIN_GAP: Duration = Duration::from_millis(50);

/// The log of one build.
pub(super) struct Log {
    pub path: PathBuf,
    file: Mutex<BoundedFile>,
    times: Mutex<Times>,
    /// Passwords to mask in the log.
    secrets: Vec<String>,
}

impl Log {
    pub(super) fn create(path: PathBuf, secrets: Vec<String>) -> Result<Log> {
        if let Some(folder) = path.parent() {
            crate::private::create_closed(folder)?;
        }
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)?;
        let file = Mutex::new(BoundedFile::new(file, KEPT_HEAD_BYTES, KEPT_TAIL_BYTES));
        Ok(Log {
            path,
            file,
            times: Mutex::new(Times::since(Instant::now())),
            secrets,
        })
    }

    /// Counts the time from an earlier moment than the creation of the log.
    pub(super) fn count_from(&self, begun: Instant) {
        *self.times() = Times::since(begun);
    }

    /// Marks the beginning of a step. If time has passed since the last step, a line names it.
    pub(super) fn begin_step(&self) -> Instant {
        let now = Instant::now();
        let gap = self.times().take_gap(now);
        if let Some(gap) = gap {
            self.line(&format!("-- between steps: {:.1} s", gap.as_secs_f64()));
        }
        now
    }

    /// Marks the end of a step, and returns its seconds.
    pub(super) fn end_step(&self, begun: Instant) -> f64 {
        let now = Instant::now();
        self.times().last_end = now;
        now.duration_since(begun).as_secs_f64()
    }

    /// Runs work as a step of its own, and logs its duration.
    pub(super) async fn timed<T>(
        &self,
        what: &str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let begun = self.begin_step();
        let done = work.await;
        let ended = if done.is_ok() { "" } else { " (failed)" };
        let seconds = self.end_step(begun);
        self.line(&format!("-- {what}{ended}: {seconds:.1} s"));
        done
    }

    /// Logs the total time, after the last step.
    pub(super) fn finish(&self) {
        let now = self.begin_step();
        let total = now.duration_since(self.times().begun).as_secs_f64();
        self.line(&format!("== the build took {total:.1} s"));
    }

    fn times(&self) -> MutexGuard<'_, Times> {
        locked(&self.times)
    }

    pub(super) fn line(&self, text: &str) {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, "***");
        }
        text.push('\n');
        // A log that cannot be written must not fail the build.
        let _ = locked(&self.file).write(text.as_bytes());
    }
}

/// Times of the steps, which run one after another.
struct Times {
    begun: Instant,
    last_end: Instant,
    /// Time between steps that no line names yet.
    gap: Duration,
}

impl Times {
    fn since(begun: Instant) -> Times {
        Times {
            begun,
            last_end: begun,
            gap: Duration::ZERO,
        }
    }

    /// Returns the time between steps up to now, if it is long enough for a line.
    fn take_gap(&mut self, now: Instant) -> Option<Duration> {
        self.gap += now.saturating_duration_since(self.last_end);
        self.last_end = now;
        (self.gap >= MIN_GAP).then(|| std::mem::take(&mut self.gap))
    }
}

/// A file whose middle is dropped when it becomes too long.
struct BoundedFile {
    file: File,
    beginning: u64,
    end: u64,
    length: u64,
    left_out: u64,
}

impl BoundedFile {
    fn new(file: File, beginning: u64, end: u64) -> BoundedFile {
        BoundedFile {
            file,
            beginning,
            end,
            length: 0,
            left_out: 0,
        }
    }

    /// Appends bytes. Between two calls the file holds the beginning, a line about the omitted part, and the end.
    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = self.beginning + 2 * self.end - self.length;
            let (now, later) =
                bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
            self.file.write_all(now)?;
            self.length += now.len() as u64;
            if self.length >= self.beginning + 2 * self.end {
                self.shorten()?;
            }
            bytes = later;
        }
        Ok(())
    }

    fn shorten(&mut self) -> io::Result<()> {
        let mut end = Vec::new();
        self.file.seek(SeekFrom::End(-self.end.cast_signed()))?;
        self.file.read_to_end(&mut end)?;
        self.left_out += self.length - self.beginning - end.len() as u64;
        self.file.set_len(self.beginning)?;
        self.file.seek(SeekFrom::End(0))?;
        let left_out = format!("\n== {} bytes omitted ==\n", self.left_out);
        self.file.write_all(left_out.as_bytes())?;
        self.file.write_all(&end)?;
        // The line itself is not counted, because each call rewrites it.
        self.length = self.beginning + end.len() as u64;
        Ok(())
    }
}

/// Assembles whole lines from chunks. A line that is too long is cut and marked.
#[derive(Default)]
pub(super) struct LogLines {
    line: Vec<u8>,
    left_out: u64,
}

impl LogLines {
    /// Returns the lines that end in `bytes`, each with its line end.
    pub(super) fn push(&mut self, bytes: &[u8]) -> String {
        let mut whole = Vec::new();
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = MAX_LINE_BYTES
                .saturating_sub(self.line.len())
                .min(text.len());
            self.line.extend_from_slice(&text[..room]);
            self.left_out += (text.len() - room) as u64;
            if ends {
                self.end(&mut whole);
            }
        }
        String::from_utf8_lossy(&whole).into_owned()
    }

    /// Returns the last line if it has no line end.
    pub(super) fn rest(&mut self) -> String {
        let mut whole = Vec::new();
        if !self.line.is_empty() {
            self.end(&mut whole);
        }
        String::from_utf8_lossy(&whole).into_owned()
    }

    fn end(&mut self, whole: &mut Vec<u8>) {
        whole.append(&mut self.line);
        if self.left_out > 0 {
            let mark = format!(" … ({} bytes of this line omitted)", self.left_out);
            whole.extend_from_slice(mark.as_bytes());
        }
        whole.push(b'\n');
        self.left_out = 0;
    }
}

#[cfg(test)]
mod tests;
