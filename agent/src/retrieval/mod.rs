//! Finds the files that an issue is about, without a model: BM25 over the repository's Python files
//! (SWT-bench §4.1), within a budget of tokens.

mod functions;
pub mod tokens;

use bm25::{Document, SearchEngine, SearchEngineBuilder, Tokenizer};
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::repository::Tree;

pub use functions::functions;

/// Common words of English text (Lucene's list).
const STOP_WORDS: [&str; 32] = [
    "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they",
    "this", "to", "was", "will", "with",
];
/// Maximum bytes of a file to index. Larger files, such as generated tables, are indexed only up to here.
const MAX_FILE_LEN: usize = 1 << 20;

/// The Python files of a repository, including tests.
pub struct Index {
    files: Vec<RetrievedFile>,
    engine: SearchEngine<u32, u32, IdentifierTokenizer>,
}

/// A Python file that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetrievedFile {
    /// Path relative to the repository.
    pub path: String,
    /// Text, which is shorter than the file if the budget ran out.
    pub text: String,
}

impl Index {
    /// Indexes the Python files of a repository.
    ///
    /// # Errors
    ///
    /// Fails if a file cannot be read.
    pub fn from_tree(tree: &Tree) -> Result<Index, SandboxError> {
        let mut files = Vec::new();
        for path in tree.paths().filter(|path| path.ends_with(".py")) {
            if let Some(text) = tree.text(path)? {
                files.push(RetrievedFile {
                    path: path.to_owned(),
                    text,
                });
            }
        }
        Ok(Index::of_files(files))
    }

    /// Indexes these files by their paths and texts.
    pub fn of_files(files: Vec<RetrievedFile>) -> Index {
        let documents = files.iter().zip(0..).map(|(file, id)| {
            let text = &file.text[..file.text.floor_char_boundary(MAX_FILE_LEN)];
            Document::new(id, format!("{}\n{text}", file.path))
        });
        let documents: Vec<_> = documents.collect();
        let builder =
            SearchEngineBuilder::with_tokenizer_and_documents(IdentifierTokenizer, documents);
        Index {
            engine: builder.build(),
            files,
        }
    }

    /// Returns all files, sorted by path.
    pub fn files(&self) -> &[RetrievedFile] {
        &self.files
    }

    /// Returns files by relevance; on a tie, sorted by path.
    pub fn ranked(&self, query: &str) -> Vec<&RetrievedFile> {
        let mut hits = self.engine.search(query, None);
        hits.sort_by(|a, b| {
            b.score
                .total_cmp(&a.score)
                .then(a.document.id.cmp(&b.document.id))
        });
        let files = hits
            .iter()
            .filter_map(|hit| self.files.get(hit.document.id as usize));
        files.collect()
    }
}

/// Returns the first files that fit into a budget in tokens, with or without line numbers; the last one may
/// be cut.
pub fn within<'f>(
    files: impl IntoIterator<Item = &'f RetrievedFile>,
    budget: usize,
    are_numbered: bool,
) -> Vec<RetrievedFile> {
    let mut remaining_tokens = budget;
    let mut retrieved_files = Vec::new();
    for file in files {
        let path_tokens = tokens::count(&file.path);
        if remaining_tokens <= path_tokens {
            break;
        }
        let full_text = shown(&file.text, are_numbered);
        let text = tokens::first(&full_text, remaining_tokens - path_tokens);
        let is_cut = text.len() < full_text.len();
        remaining_tokens -= path_tokens + tokens::count(text);
        retrieved_files.push(RetrievedFile {
            path: file.path.clone(),
            text: text.to_owned(),
        });
        if is_cut {
            break;
        }
    }
    retrieved_files
}

/// Returns a text unchanged, or with a number in front of each line.
pub fn shown(text: &str, are_numbered: bool) -> String {
    if !are_numbered {
        return text.to_owned();
    }
    let lines = text.split_inclusive('\n').enumerate();
    lines
        .map(|(at, line)| match line.trim_end() {
            "" => format!("{}{line}", at + 1),
            _ => format!("{} {line}", at + 1),
        })
        .collect()
}

/// A tokenizer for prose and code: identifiers count as a whole and in parts.
#[derive(Debug, Clone, Copy, Default)]
pub struct IdentifierTokenizer;

impl Tokenizer for IdentifierTokenizer {
    fn tokenize(&self, text: &str) -> Vec<String> {
        let mut terms = Vec::new();
        let is_inside = |c: char| c.is_alphanumeric() || c == '_';
        for word in text.split(|c| !is_inside(c)).filter(|word| word.len() > 1) {
            let parts = parts(word);
            if parts.len() > 1 {
                terms.push(word.to_lowercase());
            }
            terms.extend(parts);
        }
        terms.retain(|word| !STOP_WORDS.contains(&word.as_str()));
        terms
    }
}

/// Splits an identifier: `HTTPServer_port2` gives `http`, `server`, `port2`. Single letters are dropped.
fn parts(word: &str) -> Vec<String> {
    let mut word_parts = Vec::new();
    for word in word.split('_') {
        let letters: Vec<char> = word.chars().collect();
        let mut part = String::new();
        for (at, letter) in letters.iter().enumerate() {
            let before = at.checked_sub(1).map(|at| letters[at]);
            let next_is_lower = letters.get(at + 1).is_some_and(|c| c.is_lowercase());
            let begins = letter.is_uppercase()
                && before.is_some_and(|before| !before.is_uppercase() || next_is_lower);
            if begins {
                word_parts.push(std::mem::take(&mut part));
            }
            part.extend(letter.to_lowercase());
        }
        word_parts.push(part);
    }
    word_parts.retain(|part| part.chars().count() > 1);
    word_parts
}

#[cfg(test)]
mod tests;
