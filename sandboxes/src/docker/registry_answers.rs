//! Cached answers of registries. An unreachable registry takes seconds to fail, and every start of a run would ask it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Time until the answer that an image exists expires.
const FOUND_TTL: Duration = Duration::from_secs(24 * 3600);
/// Time until the answer that an image is missing or unknown expires. It may appear soon.
const MISSING_TTL: Duration = Duration::from_secs(10 * 60);

/// An answer, with its time in seconds since 1970.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RegistryAnswer {
    pub at: u64,
    /// Error message of the registry; `None` if the image exists.
    pub refused: Option<String>,
}

impl RegistryAnswer {
    pub(super) fn now(refused: Option<String>) -> RegistryAnswer {
        RegistryAnswer {
            at: seconds(),
            refused,
        }
    }

    fn is_fresh(&self) -> bool {
        let long = match self.refused {
            None => FOUND_TTL,
            Some(_) => MISSING_TTL,
        };
        // An answer also expires if the clock was set back.
        seconds()
            .checked_sub(self.at)
            .is_some_and(|age| age < long.as_secs())
    }
}

fn seconds() -> u64 {
    UNIX_EPOCH.elapsed().unwrap_or_default().as_secs()
}

/// Returns the answer for an image, unless it has expired.
pub(super) fn find(file: &Path, image: &str) -> Option<RegistryAnswer> {
    all(file).remove(image).filter(RegistryAnswer::is_fresh)
}

/// Adds an answer. If that fails, the registry is simply asked again.
pub(super) fn store(file: &Path, image: &str, answer: RegistryAnswer) {
    let mut answers = all(file);
    answers.retain(|_, answer| answer.is_fresh());
    answers.insert(image.to_owned(), answer);
    if let Err(error) = write(file, &answers) {
        tracing::debug!(%error, "could not save the registry's answer");
    }
}

fn all(file: &Path) -> BTreeMap<String, RegistryAnswer> {
    let text = std::fs::read(file).ok();
    let read = text.and_then(|text| serde_json::from_slice(&text).ok());
    read.unwrap_or_default()
}

fn write(file: &Path, answers: &BTreeMap<String, RegistryAnswer>) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    crate::private::write(file, &serde_json::to_vec(answers)?)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn answers_expire() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache/answers.json");
        assert_eq!(find(&file, "python:3.11"), None);
        store(&file, "python:3.11", RegistryAnswer::now(None));
        store(
            &file,
            "python:3.13",
            RegistryAnswer::now(Some("no answer".to_owned())),
        );
        assert_eq!(find(&file, "python:3.11").unwrap().refused, None);
        let refused = find(&file, "python:3.13").unwrap().refused;
        assert_eq!(refused.as_deref(), Some("no answer"));

        let mut old = RegistryAnswer::now(Some("no answer".to_owned()));
        old.at -= MISSING_TTL.as_secs();
        store(&file, "python:3.13", old);
        assert_eq!(find(&file, "python:3.13"), None);
        let mut tomorrow = RegistryAnswer::now(None);
        tomorrow.at += 60;
        store(&file, "python:3.12", tomorrow);
        assert_eq!(find(&file, "python:3.12"), None);

        std::fs::write(&file, "{\"python").unwrap();
        assert_eq!(find(&file, "python:3.11"), None);
    }
}
