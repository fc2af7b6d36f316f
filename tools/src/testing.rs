//! A workspace for tests, in a temporary folder.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::config::Config;
use crate::tool::{Context, Result, ToolAnswer, ToolError};
use crate::workspace::Workspace;

pub(crate) struct Fixture {
    pub folder: tempfile::TempDir,
    pub workspace: Workspace,
}

impl Fixture {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Fixture {
        Fixture::with(files, |_| {})
    }

    /// Creates a fixture. `before` runs once the files exist, before the workspace is opened.
    pub(crate) fn with(files: &[(&str, &[u8])], before: impl FnOnce(&Path)) -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("testbed");
        for (name, content) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        fs::create_dir_all(&root).unwrap();
        let mut archive =
            tar::Builder::new(fs::File::create(folder.path().join("base.tar")).unwrap());
        archive.follow_symlinks(false);
        archive.append_dir_all(".", &root).unwrap();
        archive.finish().unwrap();
        before(&root);
        let workspace = Workspace::open(config(folder.path())).unwrap();
        Fixture { folder, workspace }
    }

    pub(crate) fn answer(&mut self, tool: &str, arguments: Value) -> Result<ToolAnswer> {
        let tool = crate::registry::find(tool).expect("a tool of this name");
        let mut context = Context {
            workspace: &mut self.workspace,
            deadline: Instant::now() + Duration::from_secs(60),
        };
        tool.call(&mut context, arguments)
    }

    pub(crate) fn text(&mut self, tool: &str, arguments: Value) -> String {
        self.answer(tool, arguments).expect("an answer").text
    }

    pub(crate) fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        match self.answer(tool, arguments) {
            Err(ToolError::Refused(text)) => text,
            other => panic!("not refused: {other:?}"),
        }
    }

    /// Checks that a call is answered with these words.
    #[track_caller]
    pub(crate) fn shows(&mut self, tool: &str, arguments: Value, words: &str) {
        let text = self.text(tool, arguments);
        assert!(text.contains(words), "{text}");
    }

    /// Checks that a call is refused with these words.
    #[track_caller]
    pub(crate) fn refuses(&mut self, tool: &str, arguments: Value, words: &str) {
        let text = self.refusal(tool, arguments);
        assert!(text.contains(words), "{text}");
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.workspace.root().join(path)).unwrap()
    }
}

pub(crate) fn config(folder: &Path) -> Config {
    Config {
        workspace: folder.join("testbed"),
        base_archive: folder.join("base.tar"),
        scratch: folder.join("scratch"),
        private: None,
        python: PathBuf::from("python3"),
        env: BTreeMap::new(),
        runner: Default::default(),
        test_seconds: 60,
        processors: None,
        wanted: None,
    }
}
