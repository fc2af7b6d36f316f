//! The name of a model, as given by flags, settings and clients. It is parsed once, and all rules apply to
//! the parsed name.
//!
//! `snippet` · `replay:FILE` (`replay-by-order:FILE`) · `azure/DEPLOYMENT` · `openai/NAME` or plain `NAME`.

use std::fmt;
use std::path::Path;

use testwright_config::error::{Error, Result};

/// Maximum length in bytes, enough for the path of any recording.
const MAX_LEN: usize = 4_096;
/// Maximum characters of a rejected name that an error repeats.
const MAX_SHOWN: usize = 80;
const RULES: &str = "snippet";

/// A model's name with a known source, without surrounding blanks and without control characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ModelName(String);

/// The source of a model's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelSource<'n> {
    /// The rule-based model.
    Rules,
    /// A recording on this machine; a lenient one answers in order without checking requests.
    Recording {
        /// Path of the recording.
        file: &'n Path,
        /// Whether requests are not checked.
        lenient: bool,
    },
    /// A deployment on Azure.
    Azure(&'n str),
    /// A model of the configured service.
    Service(&'n str),
}

impl ModelName {
    /// Parses a name as given. Nothing is trimmed, because other code would read the same text as a different
    /// name.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the name is empty, too long, surrounded by blanks, or has control
    /// characters.
    pub fn parse(text: &str) -> Result<ModelName> {
        let refused = |cause: String| {
            let excerpt: String = text.chars().take(MAX_SHOWN).collect();
            Error::usage(format!("use the model {excerpt:?}")).cause(cause)
        };
        if text.len() > MAX_LEN {
            return Err(refused(format!("its name is longer than {MAX_LEN} bytes")));
        }
        if text.contains(char::is_control) {
            return Err(refused("its name has a control character".to_owned()));
        }
        let name = ModelName(text.to_owned());
        let (part, is_path) = match name.source() {
            ModelSource::Rules => return Ok(name),
            ModelSource::Recording { file, .. } => (file.to_str().unwrap_or_default(), true),
            ModelSource::Azure(part) | ModelSource::Service(part) => (part, false),
        };
        if text.trim() != text || part.trim() != part {
            return Err(refused(
                "its name starts or ends with white space".to_owned(),
            ));
        }
        if part.is_empty() {
            let hint = match is_path {
                true => "use for example --model replay:FILE",
                false => "use for example --model gpt-5-mini",
            };
            return Err(refused("its name is empty".to_owned()).hint(hint));
        }
        if let ModelSource::Azure(deployment) = name.source() {
            Deployment::parse(deployment)?;
        }
        Ok(name)
    }

    /// Returns the name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the source that the name refers to.
    pub fn source(&self) -> ModelSource<'_> {
        let text = self.0.as_str();
        let recording = |file, lenient| ModelSource::Recording {
            file: Path::new(file),
            lenient,
        };
        if text == RULES {
            ModelSource::Rules
        } else if let Some(file) = text.strip_prefix("replay:") {
            recording(file, false)
        } else if let Some(file) = text.strip_prefix("replay-by-order:") {
            recording(file, true)
        } else if let Some(deployment) = text.strip_prefix("azure/") {
            ModelSource::Azure(deployment)
        } else {
            ModelSource::Service(text.strip_prefix("openai/").unwrap_or(text))
        }
    }

    /// Returns whether the model is a recording, which is a file on the machine that plays it.
    pub fn is_recording(&self) -> bool {
        matches!(self.source(), ModelSource::Recording { .. })
    }

    /// Returns the name without its provider.
    pub fn bare(&self) -> &str {
        match self.source() {
            ModelSource::Azure(name) | ModelSource::Service(name) => name,
            ModelSource::Rules | ModelSource::Recording { .. } => &self.0,
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The name of an Azure deployment, which becomes one segment of a URL path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deployment(String);

impl Deployment {
    /// Parses a deployment name.
    ///
    /// # Errors
    ///
    /// Fails with a usage error if the name has characters other than letters, digits, `.`, `_` and `-`.
    pub fn parse(text: &str) -> Result<Deployment> {
        let is_fit = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if !text.is_empty() && text.bytes().all(is_fit) && !matches!(text, "." | "..") {
            return Ok(Deployment(text.to_owned()));
        }
        let excerpt: String = text.chars().take(MAX_SHOWN).collect();
        Err(
            Error::usage(format!("use the deployment {excerpt:?} on Azure"))
                .cause("its name has characters other than letters, digits, `.`, `_` and `-`")
                .hint(
                    "name the deployment with --model azure/DEPLOYMENT or model.azure-deployment",
                ),
        )
    }

    /// Returns the name as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests;
