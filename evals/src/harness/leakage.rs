//! Checks whether the sandbox of the old code contains the new code. Two traces are searched for in all of its files: a
//! package file with the lines that the golden patch adds (a newer release in site-packages), and a git object.

use std::path::PathBuf;
use std::time::Duration;

use testwright_sandboxes::SandboxError;
use testwright_tools::leakage::{Findings, NewFile, Request};
use testwright_tools::workspace::blob_id;

use super::Harness;
use super::instance::PreparedInstance;
use super::test_run_cache::{self, AbnormalExit, encode};
use super::timeline::{Activity, Timeline};
use crate::result::Leakage;

/// Minimum characters of a line that can reveal its origin.
const MIN_TELLING_CHARS: usize = 12;
const SEARCH_TIMEOUT: Duration = Duration::from_secs(300);

impl Harness {
    /// Searches a sandbox of the old code. The result is cached by environment and fix, as runs are.
    pub(super) async fn find_leakage(
        &self,
        prepared: &PreparedInstance,
        timeline: &Timeline<'_>,
    ) -> Result<Leakage, SandboxError> {
        let new_files = fix_files(prepared)?;
        let record = self.leakage_record(prepared, &new_files)?;
        if let Some(cached_leakage) = test_run_cache::read(&record).await {
            return Ok(cached_leakage);
        }
        let findings = timeline
            .run(Activity::Build, self.search_sandbox(prepared, new_files))
            .await?;
        let leakage = Leakage {
            files_searched: findings.searched,
            places: findings.places,
        };
        test_run_cache::write(&record, &leakage).await?;
        Ok(leakage)
    }

    async fn search_sandbox(
        &self,
        prepared: &PreparedInstance,
        new_files: Vec<NewFile>,
    ) -> Result<Findings, SandboxError> {
        let sandbox = self.start(&prepared.old.environment.saved).await?;
        let looked = async {
            super::files::write_files(sandbox.as_ref(), &prepared.old.files).await?;
            let request = Request { wanted: new_files };
            let answer = self.ask(sandbox.as_ref(), "peek", &request, SEARCH_TIMEOUT);
            answer.await?.map_err(AbnormalExit::error)
        }
        .await;
        let stopped = sandbox.stop().await;
        let findings: Findings = looked?;
        stopped.map(|()| findings)
    }

    fn leakage_record(
        &self,
        prepared: &PreparedInstance,
        new_files: &[NewFile],
    ) -> Result<PathBuf, SandboxError> {
        let mut key = test_run_cache::RecordKey::new(self);
        key.state(&prepared.old);
        key.add(&encode(&new_files)?);
        Ok(key.path(&self.cache.join("peeking")))
    }
}

/// Returns the files of the fix, with the lines that distinguish new code from old.
fn fix_files(prepared: &PreparedInstance) -> Result<Vec<NewFile>, SandboxError> {
    let mut all = Vec::new();
    for (path, file) in &prepared.fix {
        let Some(content) = file.as_ref().map(|file| file.content.as_slice()) else {
            continue;
        };
        let text = String::from_utf8_lossy(content);
        let before = prepared.tree.read(path)?.unwrap_or_default();
        let before = String::from_utf8_lossy(&before).into_owned();
        let added = prepared.changed.added.get(path);
        let lines: Vec<String> = text
            .lines()
            .enumerate()
            .filter(|(at, _)| {
                added.is_some_and(|set| u32::try_from(at + 1).is_ok_and(|n| set.contains(&n)))
            })
            .map(|(_, line)| line.trim().to_owned())
            .filter(|line| line.len() >= MIN_TELLING_CHARS && !before.contains(line.as_str()))
            .collect();
        all.push(NewFile {
            path: path.clone(),
            lines,
            blob: blob_id(content),
        });
    }
    Ok(all)
}
