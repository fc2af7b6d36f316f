//! Converts the raw lines of a run to hit and missed statements by file.
//!
//! The statements of a file are requested once, from whichever sandbox needs them first, since the repository is the
//! same in all of them. Equal results are shared, because most files have the same coverage in nearly all cases.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

use testwright_sandboxes::coverage::{self, Coverage as Package};
use testwright_sandboxes::mutex::lock;
use testwright_sandboxes::sandbox::Result;
use testwright_tools::coverage::{Coverage, Statements};

use super::worker::Worker;
use super::{CaseEnvironment, FileLines, Lines};

/// Results by path and executed lines; many cases run the same lines.
type KnownLines = HashMap<(String, BTreeSet<u32>), Arc<FileLines>>;

/// State shared by all measured runs.
pub(super) struct CoverageContext {
    pub package: Package,
    files: BTreeSet<String>,
    statements: Mutex<HashMap<String, Arc<Statements>>>,
    known: Mutex<KnownLines>,
}

/// Coverage of one case.
#[derive(Default)]
pub(super) struct MeasuredLines {
    pub files: BTreeMap<String, Arc<FileLines>>,
    pub contexts: BTreeMap<String, Lines>,
    pub problem: Option<String>,
}

impl MeasuredLines {
    /// Returns no lines, because of a problem.
    pub(super) fn unknown(problem: &str) -> MeasuredLines {
        MeasuredLines {
            problem: Some(problem.to_owned()),
            ..MeasuredLines::default()
        }
    }
}

impl CoverageContext {
    pub(super) async fn new(place: &CaseEnvironment) -> Result<CoverageContext> {
        let package = coverage::package(&place.environment.python_version, &place.build).await?;
        Ok(CoverageContext {
            package,
            files: place.python_files()?.into_iter().collect(),
            statements: Mutex::default(),
            known: Mutex::default(),
        })
    }

    /// Converts the coverage of a run. Lines of `own`, the test file of the case, are excluded.
    pub(super) async fn convert(
        &self,
        coverage: Option<&Coverage>,
        own: &str,
        worker: &mut Worker,
    ) -> Result<MeasuredLines> {
        let Some(coverage) = coverage else {
            return Ok(MeasuredLines::unknown("coverage was not measured"));
        };
        let is_of_repository = |path: &str| path != own && self.files.contains(path);
        let paths: Vec<&String> = (coverage.files.keys())
            .filter(|path| is_of_repository(path))
            .collect();
        self.load_statements(&paths, worker).await?;
        let files = paths.into_iter().map(|path| {
            let raw = &coverage.files[path].executed;
            (path.clone(), self.lines(path, raw))
        });
        let files = files.filter(|(_, lines)| !lines.hit.is_empty()).collect();
        let contexts = coverage.contexts.iter().map(|(test, ran)| {
            let of_repository = ran.iter().filter(|(path, _)| is_of_repository(path));
            let ran = of_repository.map(|(path, raw)| (path.clone(), self.hit(path, raw)));
            let ran: Lines = ran.filter(|(_, lines)| !lines.is_empty()).collect();
            (test.clone(), ran)
        });
        let lost = (coverage.lost > 0).then(|| {
            let lost = coverage.lost;
            format!("{lost} processes started by tests ended before their coverage was written")
        });
        Ok(MeasuredLines {
            files,
            contexts: contexts.collect(),
            problem: coverage.problem.clone().or(lost),
        })
    }

    /// Requests the statements of files that are not known yet.
    async fn load_statements(&self, paths: &[&String], worker: &mut Worker) -> Result<()> {
        let new: Vec<String> = {
            let cache = lock(&self.statements);
            let paths = paths.iter().filter(|path| !cache.contains_key(**path));
            paths.map(|path| (*path).clone()).collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        let mut file_statements = worker.statements(&new).await?;
        let mut cache = lock(&self.statements);
        for path in new {
            // A file that does not parse has no statements.
            let statements = file_statements.remove(&path).unwrap_or_default();
            cache.insert(path, Arc::new(statements));
        }
        Ok(())
    }

    fn hit(&self, path: &str, raw: &[u32]) -> BTreeSet<u32> {
        let statements = lock(&self.statements).get(path).cloned();
        statements.map_or_else(BTreeSet::new, |file| file.statements_of(raw))
    }

    fn lines(&self, path: &str, raw: &[u32]) -> Arc<FileLines> {
        let statements = lock(&self.statements)
            .get(path)
            .cloned()
            .unwrap_or_default();
        let hit = statements.statements_of(raw);
        let mut cache = lock(&self.known);
        let lines = cache
            .entry((path.to_owned(), hit))
            .or_insert_with_key(|(_, hit)| {
                Arc::new(FileLines {
                    hit: hit.clone(),
                    missed: statements.statements.difference(hit).copied().collect(),
                })
            });
        lines.clone()
    }
}
