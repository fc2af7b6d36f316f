//! Implementation of the sandbox trait for containers. It uses the modules for containers and forks, which do not
//! depend on it.

use std::path::Path;

use async_trait::async_trait;

use super::archive::{self, FirstEntry};
use super::container::{Container, Tar};
use super::error::EngineResult;
use super::fork;
use crate::error::SandboxError;
use crate::sandbox::{Command, MAX_OUTPUT_LEN, Process, Result, Sandbox, SandboxInfo};

#[async_trait]
impl Sandbox for Container {
    fn info(&self) -> &SandboxInfo {
        &self.info
    }

    async fn upload(&self, path: &Path, content: &[u8], mode: u32) -> Result<()> {
        let (folder, relative) = self.target(path).await?;
        let tar = archive::file(&relative, content, mode, self.owner_of(path))?;
        self.upload_archive(&folder, Tar::Whole(tar)).await
    }

    async fn upload_file(&self, path: &Path, from: &Path, mode: u32) -> Result<()> {
        let (folder, relative) = self.target(path).await?;
        let tar = archive::file_on_host(from, relative, mode, self.owner_of(path));
        self.upload_archive(&folder, Tar::Stream(Box::pin(tar)))
            .await
    }

    async fn unpack(&self, folder: &Path, archive: &Path) -> Result<()> {
        tokio::fs::metadata(archive)
            .await
            .map_err(|e| SandboxError::input(format!("read {}: {e}", archive.display())))?;
        let (existing, missing_part) = self.split_at_existing(folder).await?;
        let tar = archive::owned(archive, missing_part, self.owner_of(folder));
        self.upload_archive(&existing, Tar::Stream(Box::pin(tar)))
            .await
    }

    async fn download(&self, path: &Path) -> Result<Vec<u8>> {
        let mut path = path.to_owned();
        for _ in 0..16 {
            let tar = self.get(&path, MAX_OUTPUT_LEN as usize).await?;
            match archive::first(&tar)? {
                FirstEntry::File(content) => return Ok(content),
                // The engine resolves links in folders, never beyond the container, but returns a link in the last
                // place as it is.
                FirstEntry::Link(target) => {
                    path = path.parent().unwrap_or(Path::new("/")).join(target)
                }
                FirstEntry::Other => break,
            }
        }
        Err(SandboxError::input(format!(
            "read {}: it is not a file",
            path.display()
        )))
    }

    async fn spawn(&self, command: &Command) -> Result<Process> {
        self.exec(command, self.user).await
    }

    async fn fork(&self) -> Result<Box<dyn Sandbox>> {
        fork::fork(self).await
    }

    async fn save(&self, name: &str) -> Result<()> {
        fork::save(self, name).await
    }

    async fn health(&self) -> Result<()> {
        let doing = "check the container";
        let api = self.engine.short_timeout();
        let answer = api.inspect_container(self.id(), None).await;
        let state = answer.doing(doing)?.state.unwrap_or_default();
        if state.running == Some(true) {
            return Ok(());
        }
        let why = match self.disk.why() {
            Some(why) => format!("it was stopped because {why}"),
            None if state.oom_killed == Some(true) => format!(
                "it ran out of memory; the limit is {} MiB (limits.memory)",
                self.spec.limits.memory >> 20
            ),
            None => "it has ended".to_owned(),
        };
        Err(SandboxError::dead(format!("{doing}: {why}")))
    }

    async fn stop(&self) -> Result<()> {
        self.guard.remove().await
    }
}
