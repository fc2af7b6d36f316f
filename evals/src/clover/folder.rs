//! The folder of a benchmark:
//!
//! - `problems.jsonl`
//! - `sources.jsonl`: the files used in contexts.
//! - `manifest.json`
//! - `locations.json`: the origin of each repository on the machine that built the benchmark.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use testwright_sandboxes::plain_file::{self, Links, MAX_DOCUMENT};

use super::manifest::{Manifest, RepositoryFacts};
use super::problem::{Problem, sha256};
use crate::document::markdown;
use crate::folder;

/// Name of the file with the problems, one [`Problem`] per line.
pub const PROBLEMS: &str = "problems.jsonl";
/// Name of the file with the sources used in contexts, one [`SourceFile`] per line.
pub const SOURCES: &str = "sources.jsonl";
/// Name of the file with the [`Manifest`].
pub const MANIFEST: &str = "manifest.json";
/// Name of the file with the locations of repositories, by `owner/name@commit`.
pub const LOCATIONS: &str = "locations.json";
/// Name of the file with the table of tests, candidates and rejections.
pub const TABLE: &str = "problems.md";

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceFile {
    /// Repository as `owner/name`.
    pub repository: String,
    /// Full hash of the commit.
    pub commit: String,
    /// Path in the repository.
    pub path: String,
    /// SHA-256 of the text, in hexadecimal.
    pub sha256: String,
    /// Text of the file.
    pub text: String,
}

/// Problems of one repository, with the sources they use.
pub struct RepositoryProblems {
    /// Facts about the repository.
    pub facts: RepositoryFacts,
    /// Accepted problems, by task.
    pub problems: Vec<Problem>,
    /// Files that the contexts of the problems use.
    pub sources: Vec<SourceFile>,
}

/// A benchmark, as stored on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Benchmark {
    /// Input of the benchmark, and numbers of tests and candidates.
    pub manifest: Manifest,
    /// Problems sorted by repository and commit.
    pub problems: Vec<Problem>,
    /// Sorted by repository and path.
    pub sources: Vec<SourceFile>,
    /// Locations of repositories, by `owner/name@commit`.
    pub locations: BTreeMap<String, String>,
}

/// A file of the folder that could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct FolderError {
    /// The file or folder.
    pub path: PathBuf,
    /// Description of the error.
    pub problem: String,
}

impl FolderError {
    fn at(path: &Path, problem: impl ToString) -> FolderError {
        FolderError {
            path: path.to_owned(),
            problem: problem.to_string(),
        }
    }
}

/// Returns the key of a repository at a commit in [`Benchmark::locations`].
fn location_key(repository: &str, commit: &str) -> String {
    format!("{repository}@{commit}")
}

impl Benchmark {
    /// Returns a benchmark without problems.
    pub fn new(manifest: Manifest) -> Benchmark {
        Benchmark {
            manifest,
            problems: Vec::new(),
            sources: Vec::new(),
            locations: BTreeMap::new(),
        }
    }

    /// Returns whether the benchmark contains problems of a repository at a commit.
    pub fn has(&self, repository: &str, commit: &str) -> bool {
        let mut repositories = self.manifest.repositories.iter();
        repositories.any(|facts| facts.name == repository && facts.commit == commit)
    }

    /// Adds the problems of a repository. Repositories stay sorted by name, regardless of the order of insertion.
    pub fn add(&mut self, built: RepositoryProblems, location: String) {
        let key = location_key(&built.facts.name, &built.facts.commit);
        // A killed process may have written the problems, but not the manifest.
        self.problems
            .retain(|problem| location_key(&problem.repository, &problem.commit) != key);
        self.sources
            .retain(|file| location_key(&file.repository, &file.commit) != key);
        self.locations.insert(key, location);
        self.manifest.repositories.push(built.facts);
        self.problems.extend(built.problems);
        self.sources.extend(built.sources);
        let repositories = &mut self.manifest.repositories;
        repositories.sort_by(|a, b| (&a.name, &a.commit).cmp(&(&b.name, &b.commit)));
        self.problems
            .sort_by(|a, b| (&a.repository, &a.commit).cmp(&(&b.repository, &b.commit)));
        self.sources.sort_by(|a, b| {
            (&a.repository, &a.commit, &a.path).cmp(&(&b.repository, &b.commit, &b.path))
        });
    }

    /// Writes the folder.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), FolderError> {
        std::fs::create_dir_all(out).map_err(|error| FolderError::at(out, error))?;
        write_json(&out.join(PROBLEMS), folder::json_lines(&self.problems))?;
        write_json(&out.join(SOURCES), folder::json_lines(&self.sources))?;
        write_json(&out.join(LOCATIONS), folder::pretty_json(&self.locations))?;
        // A repository in the manifest is not built again, so its other files must be complete.
        write_json(&out.join(MANIFEST), folder::pretty_json(&self.manifest))?;
        let facts = [
            ("version", self.manifest.version.clone()),
            ("seed", self.manifest.seed.to_string()),
            ("tokenizer", self.manifest.tokenizer.clone()),
            (
                "maximum tests per repository",
                self.manifest.limits.max_tests.to_string(),
            ),
        ];
        let table = markdown(
            "CLOVER problems",
            &facts,
            &[self.manifest.section()],
            MANIFEST,
        );
        write(&out.join(TABLE), table.as_bytes())
    }

    /// Reads a folder, and checks the hashes of its sources.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read or parsed, or a hash does not match.
    pub fn read(folder: &Path) -> Result<Benchmark, FolderError> {
        let benchmark = Benchmark {
            manifest: read(&folder.join(MANIFEST))?,
            problems: read_lines(&folder.join(PROBLEMS))?,
            sources: read_lines(&folder.join(SOURCES))?,
            locations: read(&folder.join(LOCATIONS))?,
        };
        for source in &benchmark.sources {
            if sha256(&source.text) != source.sha256 {
                let problem = format!(
                    "the text of {} in {} does not match its hash",
                    source.path, source.repository
                );
                return Err(FolderError::at(&folder.join(SOURCES), problem));
            }
        }
        Ok(benchmark)
    }

    /// Returns the location of a repository on the machine that built the benchmark, or its name.
    pub fn location<'b>(&'b self, repository: &'b str, commit: &str) -> &'b str {
        let location = self.locations.get(&location_key(repository, commit));
        location.map_or(repository, String::as_str)
    }

    /// Returns the texts of a repository's files, by path.
    pub fn texts(&self, repository: &str, commit: &str) -> BTreeMap<&str, &str> {
        let of = self.sources.iter();
        of.filter(|file| file.repository == repository && file.commit == commit)
            .map(|file| (file.path.as_str(), file.text.as_str()))
            .collect()
    }
}

fn write(path: &Path, content: &[u8]) -> Result<(), FolderError> {
    folder::write_file(path, content).map_err(|error| FolderError::at(path, error))
}

fn write_json(path: &Path, text: serde_json::Result<Vec<u8>>) -> Result<(), FolderError> {
    write(path, &text.map_err(|error| FolderError::at(path, error))?)
}

fn bytes(path: &Path) -> Result<Vec<u8>, FolderError> {
    plain_file::read(path, Links::Refuse, MAX_DOCUMENT)
        .map_err(|error| FolderError::at(path, error))
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T, FolderError> {
    serde_json::from_slice(&bytes(path)?).map_err(|error| FolderError::at(path, error))
}

/// Reads a file of JSON lines; every line that is not blank must be valid.
///
/// # Errors
///
/// Fails if the file cannot be read, or a line is invalid.
pub fn read_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, FolderError> {
    let bytes = bytes(path)?;
    let lines = bytes.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.iter().all(u8::is_ascii_whitespace));
    lines
        .map(|(at, line)| {
            let read = serde_json::from_slice(line);
            read.map_err(|error| FolderError::at(path, format!("line {}: {error}", at + 1)))
        })
        .collect()
}

#[cfg(test)]
mod tests;
