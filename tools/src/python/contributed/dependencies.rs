//! Finds the code of its file that a test depends on: everything that it names, and the names in that code in turn.

use std::collections::BTreeMap;

use super::referred_names::NameScope;
use super::test_file::{Test, TestFile};

/// Maximum steps from a name to its definition, for all tests together. This suffices for 1,000 tests with 250 steps
/// each, before and after; no hand-written file comes near. If every test names everything, the steps would grow with
/// the square of the file's length.
const MAX_STEPS: usize = 500_000;

/// Pieces of code by key, with a hash of each definition.
type Pieces<'s> = BTreeMap<&'s str, &'s [u64]>;

/// The tests of a file before and after a change.
pub(super) struct FileComparison<'s> {
    before: &'s TestFile,
    after: &'s TestFile,
    steps: usize,
    /// Whether anything other than the tests differs; computed on demand.
    rest_differs: Option<bool>,
}

impl<'s> FileComparison<'s> {
    pub(super) fn new(before: &'s TestFile, after: &'s TestFile) -> Self {
        FileComparison {
            before,
            after,
            steps: MAX_STEPS,
            rest_differs: None,
        }
    }

    /// Returns whether the test, or anything that it depends on, differs. Beyond [`MAX_STEPS`], the test counts as
    /// depending on all code except other tests.
    pub(super) fn differs(&mut self, before: &Test, after: &Test) -> bool {
        if let Some(then) = reach(self.before, before, &mut self.steps)
            && let Some(now) = reach(self.after, after, &mut self.steps)
        {
            return then != now;
        }
        let hashes = |file: &'s TestFile, test: &Test| Some(&file.units.get(&test.unit)?.hashes);
        hashes(self.before, before) != hashes(self.after, after)
            || before.classes != after.classes
            || *self
                .rest_differs
                .get_or_insert_with(|| rest(self.before) != rest(self.after))
    }
}

/// Returns the keys of all code that a test depends on, itself included.
pub(super) fn used_by<'s>(file: &'s TestFile, test: &Test) -> Vec<&'s str> {
    let pieces = reach(file, test, &mut { MAX_STEPS });
    pieces.unwrap_or_default().into_keys().collect()
}

/// Returns the code that a test depends on; `None` if the steps do not suffice.
fn reach<'s>(file: &'s TestFile, test: &Test, steps: &mut usize) -> Option<Pieces<'s>> {
    let mut pieces = BTreeMap::new();
    let mut open: Vec<String> = vec![test.unit.clone()];
    for owner in test.classes.iter().map(String::as_str).chain([""]) {
        let unnamed = file.unnamed.get(owner).map_or(&[][..], Vec::as_slice);
        *steps = steps.checked_sub(1 + unnamed.len())?;
        open.extend_from_slice(unnamed);
    }
    for class in &test.classes {
        // For a nested class, the heads of the classes around it count too.
        for (at, _) in class.match_indices('.').chain([(class.len(), "")]) {
            open.push(format!("class {}", &class[..at]));
        }
    }
    while let Some(key) = open.pop() {
        let Some((key, unit)) = file.units.get_key_value(&key) else {
            continue;
        };
        if pieces
            .insert(key.as_str(), unit.hashes.as_slice())
            .is_some()
        {
            continue;
        }
        let own = key.rsplit('.').next();
        for name in unit.names.iter().flat_map(|names| names.iter()) {
            *steps = steps.checked_sub(1 + test.classes.len())?;
            let (name, scope) = (name.name.as_str(), name.scope);
            if own == Some(name) {
                continue;
            }
            if scope != NameScope::Module {
                let mut members = test.classes.iter().map(|class| format!("{class}.{name}"));
                open.extend(members.find(|member| file.units.contains_key(member)));
            }
            if scope != NameScope::Class && file.units.contains_key(name) {
                open.push(name.to_owned());
            }
        }
    }
    Some(pieces)
}

/// Returns everything except test functions and the classes as a whole, which contain them.
fn rest(file: &TestFile) -> Pieces<'_> {
    let mut pieces: Pieces<'_> = file
        .units
        .iter()
        .filter(|(key, _)| !file.units.contains_key(&format!("class {key}")))
        .map(|(key, unit)| (key.as_str(), unit.hashes.as_slice()))
        .collect();
    for test in &file.tests {
        pieces.remove(test.unit.as_str());
    }
    pieces
}
