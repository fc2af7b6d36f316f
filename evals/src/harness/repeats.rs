//! Repeats the runs of a successful prediction under other conditions: with another hash seed, and with a placebo in
//! the code under test. A test that depends on chance, or that reads the code instead of running it, gives itself away.
//!
//! The placebo changes the text and the bytecode of the fix's files, and of some files beside them, but not their
//! meaning. On the old code, the files of the fix even show their new text, while Python runs the bytecode of the old.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};

use futures::future::{join, try_join_all};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::plain_file::{self, Links};
use testwright_sandboxes::repository::{AppliedPatch, File, FileKind, Files, Tree};
use testwright_tools::python::{LineNumbers, placebo};
use testwright_tools::workspace::Layout;

use super::contribution::Contribution;
use super::instance::{CodeState, PreparedInstance};
use super::outcome_pairs;
use super::runs::{CodeSide, repeated_run};
use super::test_run_cache::RecordKey;
use super::timeline::Timeline;
use super::{GradingFailure, Harness, at_stage};
use crate::folder;
use crate::verdict::{Condition, Observations, Repeat};

/// Maximum number of files beside those of the fix that get a placebo.
const MAX_OTHER_FILES: usize = 10;

impl Harness {
    /// Repeats the runs of a prediction on both sides. `files` are its files on the old and the new code.
    pub(super) async fn repeats(
        &self,
        prepared: &PreparedInstance,
        tests: &Contribution,
        files: [&AppliedPatch; 2],
        observations: &Observations,
        timeline: &Timeline<'_>,
    ) -> Result<Vec<Repeat>, GradingFailure> {
        let seed = self.secret_seed(&files[0].files).map_err(at_stage("old"))?;
        let hash_seed = |number: u64| u32::try_from(mix(seed ^ number) >> 32).unwrap_or_default();
        // Tests that need the company of others get it.
        let is_whole = tests.has_other_tests() && !observations.is_same_alone();
        let placebos = prepared.placebos(seed).map_err(at_stage("source"))?;
        let mut conditions = Vec::new();
        if is_whole || !tests.has_other_tests() {
            let sides = prepared.sides().map(|side| side.state);
            conditions.push((Condition::HashSeed, hash_seed(1), sides));
        }
        if let Some([old, new]) = &placebos {
            conditions.push((Condition::Placebo, hash_seed(2), [old, new]));
        }
        let repeats = conditions
            .into_iter()
            .map(async |(condition, hash_seed, states)| {
                let run = async |at: usize| {
                    let side: CodeSide<'_> = prepared.sides()[at];
                    let run = repeated_run(
                        side,
                        states[at],
                        &files[at].files,
                        tests,
                        is_whole,
                        hash_seed,
                    );
                    self.run(&run, timeline).await.map_err(at_stage(side.name))
                };
                let (old, new) = join(run(0), run(1)).await;
                let (old, new) = (old?, new?);
                let (old, new) = (&old.answer.report, &new.answer.report);
                Ok(Repeat {
                    condition,
                    pairs: outcome_pairs::pairs(old, new, &tests.tests),
                })
            });
        try_join_all(repeats).await
    }

    /// Returns a number that depends on the files and on a secret of this cache, so that no prediction can know it.
    fn secret_seed(&self, files: &Files) -> Result<u64, SandboxError> {
        let path = self.cache.join("secret");
        let read = || plain_file::read(&path, Links::Refuse, 16).ok();
        let secret = match read().filter(|secret| secret.len() == 16) {
            Some(secret) => secret,
            None => {
                let secret = [random_number(), random_number()].map(u64::to_le_bytes);
                std::fs::create_dir_all(&self.cache)?;
                folder::write_atomically(&path, 0o600, |aside| {
                    std::io::Write::write_all(aside, &secret.concat())
                })?;
                secret.concat()
            }
        };
        let mut key = RecordKey::new(self);
        key.add(&secret);
        key.files(files);
        Ok(key.number())
    }
}

/// Returns a number that the operating system's random numbers decide.
fn random_number() -> u64 {
    RandomState::new().hash_one(0)
}

/// Returns another number for each number (SplitMix64).
fn mix(number: u64) -> u64 {
    let mut number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

impl PreparedInstance {
    /// Returns both sides with a placebo; `None` if no file can be changed without changing its meaning.
    fn placebos(&self, seed: u64) -> Result<Option<[CodeState; 2]>, SandboxError> {
        let mut old = self.old.clone();
        let mut new = self.new.clone();
        let mut is_changed = false;
        for path in self.placebo_paths() {
            let before = self.tree.file(&path)?;
            let after = match self.fix.get(&path) {
                Some(after) => after.clone(),
                None => before.clone(),
            };
            let before = before.as_ref().and_then(text);
            let shown = after.as_ref().and_then(text);
            if let Some(changed) = before.and_then(|text| placebo(text, seed, LineNumbers::Moved)) {
                is_changed = true;
                old.files
                    .insert(path.clone(), with_text(&path, changed, &self.tree)?);
                if let Some(shown) = shown
                    && self.fix.contains_key(&path)
                    && self.may_show_other_text(&path, shown)
                {
                    old.shown.insert(path.clone(), shown.to_owned());
                }
            }
            if let Some(changed) = shown.and_then(|text| placebo(text, seed, LineNumbers::Kept)) {
                is_changed = true;
                new.files
                    .insert(path.clone(), with_text(&path, changed, &self.tree)?);
            }
        }
        Ok(is_changed.then_some([old, new]))
    }

    /// Returns the code files of the fix, and some files beside them.
    fn placebo_paths(&self) -> BTreeSet<String> {
        let is_code = |path: &str| is_code(path, &self.layout);
        let fix: BTreeSet<&str> = (self.fix.keys().map(String::as_str))
            .filter(|path| is_code(path))
            .collect();
        let folders: BTreeSet<&str> = fix.iter().map(|path| folder_of(path)).collect();
        let beside = (self.tree.paths())
            .filter(|path| folders.contains(folder_of(path)) && is_code(path))
            .filter(|path| !fix.contains(path))
            .take(MAX_OTHER_FILES);
        fix.iter()
            .copied()
            .chain(beside)
            .map(str::to_owned)
            .collect()
    }

    /// Returns whether a file may show another text than its bytecode has. Not if Python may run the text itself: a
    /// script, a module outside of packages, or code whose assertions pytest rewrites.
    fn may_show_other_text(&self, path: &str, text: &str) -> bool {
        let is_in_package = self
            .tree
            .contains(&format!("{}/__init__.py", folder_of(path)));
        let is_script = path.ends_with("__main__.py") || text.contains("__main__");
        let is_plugin = path.contains("pytest") || text.contains("pytest");
        is_in_package && !is_script && !is_plugin
    }
}

fn is_code(path: &str, layout: &Layout) -> bool {
    path.ends_with(".py") && !layout.is_test_path(path) && path != "setup.py"
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn text(file: &File) -> Option<&str> {
    std::str::from_utf8(&file.content).ok()
}

/// Returns a file of the tree, or a new one, with another text.
fn with_text(path: &str, text: String, tree: &Tree) -> Result<Option<File>, SandboxError> {
    let kind = tree.file(path)?.map_or(FileKind::Plain, |file| file.kind);
    Ok(Some(File {
        content: text.into_bytes(),
        kind,
    }))
}
