//! Detects the licence of a repository from the text of its licence file.

use serde::Serialize;
use sha2::{Digest, Sha256};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::Repository;

use testwright_sandboxes::hex::hex;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Licence {
    /// SPDX identifier; `None` if the text is not recognized.
    pub spdx: Option<&'static str>,
    pub file: String,
    pub sha256: String,
}

/// Returns the licence at the base commit, or `None` if there is no licence file.
pub(super) fn licence_at(
    repository: &Repository,
    commit: &str,
) -> Result<Option<Licence>, SandboxError> {
    let mut names = repository.root_entries(commit)?;
    names.retain(|name| {
        let stem = name.split(['.', '-']).next().unwrap_or_default();
        ["license", "licence", "copying"].contains(&stem.to_lowercase().as_str())
    });
    for file in names {
        // Skip folders, such as `LICENSES`.
        if let Some(content) = repository.file_at(commit, &file)? {
            return Ok(Some(Licence {
                spdx: spdx(&String::from_utf8_lossy(&content)),
                file,
                sha256: hex(&Sha256::digest(&content)),
            }));
        }
    }
    Ok(None)
}

/// Recognizes a licence by a sentence that no other licence contains. More specific licences are tested first.
fn spdx(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let has = |sentence: &str| text.contains(sentence);
    let version = |three: &'static str, two: &'static str| match has("version 3") {
        true => Some(three),
        false => Some(two),
    };
    if has("gnu affero general public license") && has("version 3, 19 november 2007") {
        Some("AGPL-3.0-only")
    } else if has("gnu lesser general public license") && !has("gnu general public license is") {
        version("LGPL-3.0-only", "LGPL-2.1-only")
    } else if has("gnu general public license") && has("terms and conditions") {
        version("GPL-3.0-only", "GPL-2.0-only")
    } else if has("mozilla public license version 2.0") {
        Some("MPL-2.0")
    } else if has("apache license") && has("version 2.0") {
        Some("Apache-2.0")
    } else if has("python software foundation license version 2") {
        Some("PSF-2.0")
    } else if has("permission to use, copy, modify, and/or distribute this software") {
        Some("ISC")
    } else if has("permission is hereby granted, free of charge") {
        Some("MIT")
    } else if has("redistribution and use in source and binary forms") {
        match has("endorse or promote products") {
            true => Some("BSD-3-Clause"),
            false => Some("BSD-2-Clause"),
        }
    } else {
        None
    }
}

#[cfg(test)]
mod tests;
