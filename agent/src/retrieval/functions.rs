//! Finds the functions that an issue is about, without a model: BM25 over the functions of the files that
//! share the most words with it.

use testwright_tools::python::{Kind, Module, flatten};
use testwright_tools::workspace::Layout;

use super::{Index, RetrievedFile};

/// Maximum number of files whose functions are ranked.
const FILES: usize = 40;

/// Returns functions of source files as `path::Class.method`, the most relevant first.
pub fn functions(files: &Index, query: &str, most: usize) -> Vec<String> {
    let layout = Layout::default();
    let ranked = files.ranked(query).into_iter();
    let sources = ranked.filter(|file| !layout.is_test_path(&file.path));
    let index = Index::of_files(sources.take(FILES).flat_map(functions_of).collect());
    let ranked = index.ranked(query).into_iter().take(most);
    ranked.map(|function| function.path.clone()).collect()
}

fn functions_of(file: &RetrievedFile) -> Vec<RetrievedFile> {
    let module = Module::parse(file.text.clone());
    let outline = module.outline();
    let all = flatten(&outline).into_iter();
    let functions = all.filter(|definition| definition.kind == Kind::Function);
    functions
        .map(|function| RetrievedFile {
            path: format!("{}::{}", file.path, function.qualified),
            text: file
                .text
                .get(function.bytes.clone())
                .unwrap_or_default()
                .to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_functions_are_ranked() {
        let file = |path: &str, text: &str| RetrievedFile {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let files = Index::of_files(vec![
            file(
                "pkg/slug.py",
                "class Slug:\n    def shorten(self, max_length):\n        return self.text[:max_length]\n\n\ndef lower(text):\n    return text\n",
            ),
            file(
                "tests/test_slug.py",
                "def test_shorten():\n    assert Slug().shorten(max_length=3)\n",
            ),
        ]);
        let ranking = functions(&files, "`shorten` ignores max_length", 5);
        assert_eq!(ranking, ["pkg/slug.py::Slug.shorten"]);
    }
}
