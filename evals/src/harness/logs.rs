//! Logs of runs below the results folder, in one folder per instance and prediction.

use std::io::Read as _;
use std::path::Path;

use sha2::{Digest, Sha256};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::plain_file::{self, Links};

use super::Harness;
use crate::folder;
use crate::result::InstanceResult;
use crate::verdict::Pairs;
use testwright_sandboxes::hex::hex;

/// Key in [`InstanceResult::logs`]: outcomes of all tests in the prediction's files, with the prediction, as JSON.
pub(super) const TESTS: &str = "tests";
/// Name of the folder for logs that all predictions of an instance share.
const SHARED: &str = "instance";

/// Converts a name to a path component, without collisions. A name that is not safe gets a suffix from its digest; a
/// name that already looks like that is converted too.
pub(super) fn file_name(text: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let is_usable = text.len() <= 80
        && text.chars().all(is_safe)
        && !text.starts_with('.')
        && !looks_converted(text)
        && !matches!(text, "" | SHARED);
    if is_usable {
        return text.to_owned();
    }
    let safe = |c: char| if is_safe(c) { c } else { '_' };
    let name: String = text.chars().map(safe).take(80).collect();
    let digest = Sha256::digest(text.as_bytes());
    let digits = hex(&digest[..DIGITS / 2]);
    format!("_{name}-{digits}")
}

const DIGITS: usize = 16;

fn looks_converted(text: &str) -> bool {
    text.starts_with('_')
        && text.rsplit_once('-').is_some_and(|(_, digits)| {
            digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
        })
}

impl Harness {
    /// Writes a log of a prediction, or one that all predictions of an instance share. Returns its path relative to the
    /// results folder.
    pub(super) fn log(
        &self,
        instance: &str,
        prediction: Option<&str>,
        name: &str,
        text: &str,
    ) -> Result<String, SandboxError> {
        let owner = prediction.map_or_else(|| SHARED.to_owned(), file_name);
        let path = format!("logs/{}/{owner}/{name}.log", file_name(instance));
        folder::write_below(&self.out, &path, text.as_bytes())?;
        Ok(path)
    }
}

/// Reads the outcomes of all tests in a prediction's files from a results folder; `None` if they are not in it.
pub(crate) fn logged_pairs(result: &InstanceResult, out: &Path) -> Option<Pairs> {
    let text = folder::read_below(out, result.logs.get(TESTS)?).ok()?;
    serde_json::from_slice(&text).ok()
}

/// Maximum bytes of a build log in the results folder; builds write less.
pub(super) const MAX_LOG_LEN: u64 = 64 << 20;

/// Reads the log of a build, up to `longest` bytes.
pub(super) fn build_log(path: &Path, longest: u64) -> std::io::Result<String> {
    let file = plain_file::open(path, Links::Refuse, u64::MAX)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    file.take(longest).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if length > longest {
        text.push_str(&format!("\n== {} bytes omitted ==\n", length - longest));
    }
    Ok(text)
}

#[cfg(test)]
mod tests;
