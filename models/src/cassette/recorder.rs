//! Writes every exchange to disk before returning the reply.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use async_trait::async_trait;

use super::{Exchange, Setting, digest};
use crate::{Message, Model, ModelError, Reply, Request};

/// A model that records every exchange in a file.
pub struct Recorder {
    inner: Box<dyn Model>,
    path: PathBuf,
    tape: Arc<Mutex<CassetteFile>>,
}

struct CassetteFile {
    file: File,
    /// Request on the last line written.
    last: Option<(Vec<Message>, Setting)>,
}

impl Recorder {
    /// Creates a recorder that appends to `path`, and creates the file if necessary. An incomplete last line
    /// is cut off.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, read or truncated.
    pub fn new(inner: Box<dyn Model>, path: &Path) -> std::io::Result<Self> {
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        if file.metadata()?.is_file() {
            let whole = whole_lines(&mut file)?;
            file.set_len(whole)?;
            file.seek(SeekFrom::End(0))?;
        }
        Ok(Recorder {
            inner,
            path: path.to_owned(),
            tape: Arc::new(Mutex::new(CassetteFile { file, last: None })),
        })
    }
}

/// Returns the length of a file up to the end of its last complete line.
fn whole_lines(file: &mut File) -> std::io::Result<u64> {
    let mut end = file.seek(SeekFrom::End(0))?;
    let mut block = vec![0; 64 << 10];
    while end > 0 {
        let start = end.saturating_sub(block.len() as u64);
        let part = &mut block[..(end - start) as usize];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(part)?;
        if let Some(at) = part.iter().rposition(|b| *b == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[async_trait]
impl Model for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    async fn complete(&self, request: &Request) -> Result<Reply, ModelError> {
        let started = Instant::now();
        let result = self.inner.complete(request).await;
        let seconds = started.elapsed().as_secs_f64();
        let model = self.inner.name().to_owned();
        let (request, outcome) = (request.clone(), result.clone());
        let tape = Arc::clone(&self.tape);
        let written = tokio::task::spawn_blocking(move || {
            let mut tape = tape.lock().unwrap_or_else(PoisonError::into_inner);
            tape.append(model, request, outcome, seconds)
        })
        .await;
        let problem = match written {
            Ok(Ok(())) => return result,
            Ok(Err(e)) => e.to_string(),
            Err(e) => e.to_string(),
        };
        let path = self.path.display();
        let message = format!("the exchange could not be recorded in {path}: {problem}");
        let hint = "free disk space, or record to another disk".to_owned();
        Err(ModelError::fatal(message, hint))
    }
}

impl CassetteFile {
    fn append(
        &mut self,
        model: String,
        request: Request,
        outcome: Result<Reply, ModelError>,
        seconds: f64,
    ) -> std::io::Result<()> {
        let setting = Setting {
            tools: request.tools.clone(),
            parallel_calls: request.parallel_calls,
            temperature: request.temperature,
            max_tokens: request.max_tokens,
        };
        let last = self.last.as_ref();
        let kept = last.map_or(0, |(messages, _)| {
            let pairs = messages.iter().zip(&request.messages);
            pairs.take_while(|(a, b)| a == b).count()
        });
        let is_same = last.is_some_and(|(_, last)| *last == setting);
        let exchange = Exchange {
            model,
            digest: digest(&request),
            kept,
            messages: request.messages[kept..].to_vec(),
            setting: (!is_same).then(|| setting.clone()),
            error: outcome.as_ref().err().cloned(),
            reply: outcome.ok(),
            seconds,
        };
        let mut line = serde_json::to_vec(&exchange)?;
        line.push(b'\n');
        let before = self.file.stream_position()?;
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| self.file.sync_data());
        if written.is_err() {
            // Remove the incomplete line, so that the next one does not run into it.
            let _ = self.file.set_len(before);
            let _ = self.file.seek(SeekFrom::Start(before));
            return written;
        }
        self.last = Some((request.messages, setting));
        Ok(())
    }
}
