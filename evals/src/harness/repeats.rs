//! Repeats the runs of a successful prediction under other conditions: with another hash seed and user, and with a
//! placebo in the code under test. A test that depends on chance, or that reads the code instead of running it, gives
//! itself away.
//!
//! The placebo changes the text and the bytecode of the fix's files, and of some files beside them, but not their
//! meaning. Each side gets unused copies of what only the other has. The old code also gets the documentation of the
//! fix, such as a changelog. On the new code, the files of the fix even show their old text, while Python runs the new
//! bytecode.
//!
//! A test may recognize the placebo and then decide by its form. So a second placebo of the old code has the form of that
//! of the new code: it shows the same text, and nothing in it is of a kind that the new code lacks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;

use futures::future::join;
use testwright_sandboxes::SandboxError;
use testwright_sandboxes::plain_file::{self, Links};
use testwright_sandboxes::repository::{AppliedPatch, File, FileKind, Files, Tree};
use testwright_tools::outcomes::report::Outcome;
use testwright_tools::python::{LineNumbers, OtherText, placebo};
use testwright_tools::split_mix::SplitMix;
use testwright_tools::workspace::is_conftest;

use super::contribution::Contribution;
use super::foreign_files::is_documentation;
use super::instance::{CodeState, PreparedInstance};
use super::outcome_pairs;
use super::runs::{CodeSide, Grading, repeated_run};
use super::test_run_cache::RecordKey;
use super::{GradingFailure, Harness, at_stage};
use crate::folder;
use crate::result::Infrastructure;
use crate::verdict::{Condition, Observations, Pair, Pairs, Repeat};

/// Maximum number of files beside those of the fix that get a placebo.
const MAX_OTHER_FILES: usize = 10;

/// Endings of data files whose meaning does not change if an empty line follows.
const LINE_FORMATS: [&str; 6] = [".cfg", ".ini", ".json", ".toml", ".yaml", ".yml"];

/// A repeat to make: the states of the two sides, and their hash seed.
struct Plan<'a> {
    hash_seed: u32,
    states: [&'a CodeState; 2],
}

/// Placebos of both sides.
struct Placebos {
    /// The placebos that all successful predictions must hold.
    all: Vec<[CodeState; 2]>,
    /// The one that changes the least, for instances whose golden tests do not hold the others.
    last_resort: Option<[CodeState; 2]>,
}

impl Grading<'_> {
    /// Repeats the runs of a prediction on both sides. `files` are its files on the old and the new code, `seconds` the
    /// time of its longest run.
    pub(super) async fn repeats(
        &self,
        tests: &Contribution,
        files: [&AppliedPatch; 2],
        observations: &Observations,
        seconds: f64,
    ) -> Result<Vec<Repeat>, GradingFailure> {
        let seed = self.harness.secret_seed(&files[0].files);
        let seed = seed.map_err(at_stage("old"))?;
        let hash_seed =
            |number: u64| u32::try_from(SplitMix(seed ^ number).draw() >> 32).unwrap_or_default();
        // Tests that need the company of others get it.
        let is_whole = tests.has_other_tests() && !observations.is_same_alone();
        let [old, new] = self.prepared.sides().map(|side| side.state);
        let placebos = self.prepared.placebos(seed).map_err(at_stage("source"))?;
        let mut plans = VecDeque::new();
        // The tests have run twice already if they ran alone and in company.
        if is_whole || !tests.has_other_tests() || placebos.all.is_empty() {
            plans.push_back((Condition::HashSeed, [old, new]));
        }
        fn placebo_plan([old, new]: &[CodeState; 2]) -> (Condition, [&CodeState; 2]) {
            (Condition::Placebo, [old, new])
        }
        plans.extend(placebos.all.iter().map(placebo_plan));
        let mut last_resort = placebos.last_resort.as_ref().map(placebo_plan);
        let mut repeats = Vec::new();
        while let Some((condition, states)) = plans.pop_front() {
            let plan = Plan {
                hash_seed: hash_seed(condition as u64),
                states,
            };
            let (pairs, timed_out) = self.repeat(tests, files, is_whole, &plan).await?;
            if timed_out && seconds > self.harness.test_time.as_secs_f64() / 2.0 {
                let cause = "a repeat of the tests did not end in time".to_owned();
                return Err(Box::new(Infrastructure::new("new", cause)));
            }
            let repeat = Repeat { condition, pairs };
            let contradicts = observations.contradicts(&repeat);
            if contradicts && !self.suits_golden_tests(&plan).await? {
                plans.extend(last_resort.take());
                continue;
            }
            repeats.push(repeat);
            if contradicts {
                break;
            }
        }
        Ok(repeats)
    }

    /// Makes a repeat. Returns the outcomes, and whether a run took too long.
    async fn repeat(
        &self,
        tests: &Contribution,
        files: [&AppliedPatch; 2],
        is_whole: bool,
        plan: &Plan<'_>,
    ) -> Result<(Pairs, bool), GradingFailure> {
        let run = async |at: usize| {
            let side: CodeSide<'_> = self.prepared.sides()[at];
            let (state, files) = (plan.states[at], &files[at].files);
            let run = repeated_run(side, state, files, tests, is_whole, plan.hash_seed);
            self.run(&run).await.map_err(at_stage(side.name))
        };
        let (old, new) = join(run(0), run(1)).await;
        let (old, new) = (old?.answer.report, new?.answer.report);
        let timed_out = old.timed_out || new.timed_out;
        Ok((outcome_pairs::pairs(&old, &new, &tests.tests), timed_out))
    }

    /// Returns whether the golden tests go from fail to pass under a condition too. If not, the condition changes more
    /// than it should, for instance because something other than Python compiles the text of a placebo.
    async fn suits_golden_tests(&self, plan: &Plan<'_>) -> Result<bool, GradingFailure> {
        let golden = (&self.prepared.golden, &self.baseline.golden);
        let (Some((golden, tests)), Some([old, new])) = golden else {
            return Ok(true);
        };
        let (again, _) = self.repeat(tests, [golden; 2], false, plan).await?;
        let (old, new) = (&old.answer.report, &new.answer.report);
        let without = outcome_pairs::pairs(old, new, &tests.tests);
        let mut turned = without.iter().filter(|(_, pair)| turns(pair));
        Ok(turned.all(|(id, _)| again.get(id).is_some_and(turns)))
    }
}

impl Harness {
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

/// Returns whether a test goes from fail to pass.
fn turns(pair: &Pair) -> bool {
    pair.old != Outcome::Passed && pair.new == Outcome::Passed
}

/// Returns a number that the operating system's random numbers decide.
fn random_number() -> u64 {
    RandomState::new().hash_one(0)
}

impl PreparedInstance {
    /// Returns the placebos that are possible without changing the meaning of the code. On the new code, all are the same.
    fn placebos(&self, seed: u64) -> Result<Placebos, SandboxError> {
        let [mut moved, mut aligned] = [self.old.clone(), self.old.clone()];
        let mut new = self.new.clone();
        let mut shown = BTreeMap::new();
        let mut is_changed = false;
        let may_show = self.may_show_other_texts()?;
        for path in self.placebo_paths() {
            let before = self.tree.file(&path)?;
            let has_names = self.may_copy_names(&path)?;
            let after = match self.fix.get(&path) {
                Some(after) => after.clone(),
                None => before.clone(),
            };
            let texts = [&before, &after].map(|file| file.as_ref().and_then(text));
            let may_show = may_show
                && texts
                    .iter()
                    .all(|text| text.is_some_and(|text| self.may_show_other_text(&path, text)));
            let copied = |text| OtherText { text, has_names };
            let is_fixed = self.fix.contains_key(&path);
            for (side, state, lines) in [
                (0, &mut moved, LineNumbers::Moved),
                (0, &mut aligned, LineNumbers::Aligned),
                (1, &mut new, LineNumbers::Kept),
            ] {
                let other = texts[1 - side].filter(|_| is_fixed).map(copied);
                let changed = texts[side].and_then(|text| placebo(text, other, seed, lines));
                let Some(changed) = changed else { continue };
                is_changed = true;
                let file = with_text(&path, changed, &self.tree)?;
                state.files.insert(path.clone(), file);
                if let Some(old_text) = texts[0].filter(|_| may_show) {
                    shown.insert(path.clone(), old_text.to_owned());
                }
            }
        }
        let [beside_old, beside_new] = self.placebos_beside_code(seed)?;
        let is_beside = !beside_old.is_empty() || !beside_new.is_empty();
        moved.files.extend(beside_old.clone());
        aligned.files.extend(beside_old);
        let last_resort = (is_beside || !shown.is_empty()).then(|| [moved.clone(), new.clone()]);
        new.files.extend(beside_new);
        new.shown.clone_from(&shown);
        aligned.shown = shown;
        let all = match is_changed || is_beside {
            true => vec![[moved, new.clone()], [aligned, new]],
            false => Vec::new(),
        };
        Ok(Placebos { all, last_resort })
    }

    /// Returns whether a file may get copied names. In a package, or in a module from which it imports all names, such a
    /// name may take the place of another.
    fn may_copy_names(&self, path: &str) -> Result<bool, SandboxError> {
        let init = format!("{}/__init__.py", folder_of(path));
        let init_text = self.tree.text(&init)?.unwrap_or_default();
        Ok(path != init && !init_text.contains("import *"))
    }

    /// Returns changes of both sides that affect no code: data ends with an empty line. On the old side, documentation has
    /// its new version, and a similar file is beside each file or folder that the fix adds, and beside each file that it
    /// deletes. It has no mark that files of the new code lack, because a test could otherwise ignore it.
    fn placebos_beside_code(&self, seed: u64) -> Result<[Files; 2], SandboxError> {
        let [mut old, mut new] = [Files::new(), Files::new()];
        for (path, after) in &self.fix {
            if self.layout.is_test_path(path) {
                continue;
            }
            let before = self.tree.file(path)?;
            let mut versions = before.iter().chain(after);
            let is_program = versions.any(|file| file.kind == FileKind::Executable);
            if is_documentation(path, &self.tree) && !is_program {
                old.insert(path.clone(), after.clone());
                continue;
            }
            let (Some(file), true) = (before, after.is_some()) else {
                // A new file or folder gets a similar one, so that their number says nothing.
                let mut entry = path.as_str();
                while !folder_of(entry).is_empty() && !self.tree.has_folder(folder_of(entry)) {
                    entry = folder_of(entry);
                }
                if let Some(similar) = self.similar_entry(entry) {
                    let rest = path.get(entry.len()..).unwrap_or_default();
                    let content = self.content_beside(entry, path, seed)?;
                    let kind = FileKind::Plain;
                    old.insert(format!("{similar}{rest}"), Some(File { content, kind }));
                }
                continue;
            };
            let is_data = LINE_FORMATS.iter().any(|ending| path.ends_with(ending));
            if is_data {
                for (files, file) in [(&mut old, Some(file)), (&mut new, after.clone())] {
                    let Some(mut file) = file.filter(|file| file.kind != FileKind::Link) else {
                        continue;
                    };
                    file.content.push(b'\n');
                    files.insert(path.clone(), Some(file));
                }
            }
        }
        Ok([old, new])
    }

    /// Returns a path beside an entry of a folder, with a similar name that neither side has.
    fn similar_entry(&self, entry: &str) -> Option<String> {
        let name_start = entry.rfind('/').map_or(0, |slash| slash + 1);
        let (folder, name) = entry.split_at(name_start);
        let (stem, ending) = name.split_at(name.rfind('.').unwrap_or(name.len()));
        let is_new = |path: &String| {
            let is_of_fix = |fixed: &String| Path::new(fixed).starts_with(path);
            let is_known = self.tree.contains(path) || self.tree.has_folder(path);
            !is_known && !self.fix.keys().any(is_of_fix)
        };
        let mut paths = (["s", "es", "2"].iter()).map(|end| format!("{folder}{stem}{end}{ending}"));
        paths.find(is_new)
    }

    /// Returns the content of a file that is added beside an entry: that of another file with the ending of `path`, with a
    /// placebo if it is Python code.
    fn content_beside(&self, entry: &str, path: &str, seed: u64) -> Result<Vec<u8>, SandboxError> {
        let ending = |path: &str| path.rsplit_once('.').map(|(_, ending)| ending.to_owned());
        let is_alike = |other: &&str| {
            folder_of(other) == folder_of(entry)
                && ending(other) == ending(path)
                && !other.ends_with("__init__.py")
                && !self.layout.is_test_path(other)
        };
        let Some(other) = self.tree.paths().find(is_alike) else {
            return Ok(Vec::new());
        };
        let text = self.tree.text(other)?.unwrap_or_default();
        let is_code = other.ends_with(".py");
        let changed = is_code.then(|| placebo(&text, None, seed, LineNumbers::Kept));
        Ok(changed.flatten().unwrap_or(text).into_bytes())
    }

    /// Returns the code files of the fix, and some files beside them.
    fn placebo_paths(&self) -> BTreeSet<String> {
        let is_code = |path: &str| {
            let is_fixed = self.fix.contains_key(path) && !self.layout.is_test_file(path);
            path.ends_with(".py")
                && path != "setup.py"
                && (is_fixed || !self.layout.is_test_path(path))
        };
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

    /// Returns whether files may show another text than their bytecode has. Not if Python uses other bytecode, or if the
    /// repository is a plugin of pytest, which then compiles the text of its modules.
    fn may_show_other_texts(&self) -> Result<bool, SandboxError> {
        let env = &self.old.environment.env;
        if env.keys().any(|name| name.starts_with("PYTHON")) {
            return Ok(false);
        }
        for path in self.tree.paths() {
            let name = path.rsplit('/').next().unwrap_or(path);
            let is_setting = matches!(name, "setup.py" | "setup.cfg" | "pyproject.toml");
            if is_setting || is_conftest(path) {
                let text = self.tree.text(path)?.unwrap_or_default();
                if text.contains("pytest11") || text.contains("register_assert_rewrite") {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns whether a file of the fix may show another text than its bytecode has. Not if Python may run the text
    /// itself: a script, a module outside of packages, or one that works on source code.
    fn may_show_other_text(&self, path: &str, text: &str) -> bool {
        let init = format!("{}/__init__.py", folder_of(path));
        let reads_source = ["__main__", "pytest", "getsource", "runpy", "linecache"];
        self.fix.contains_key(path)
            && self.tree.contains(&init)
            && !path.ends_with("__main__.py")
            && !reads_source.iter().any(|name| text.contains(name))
    }
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
