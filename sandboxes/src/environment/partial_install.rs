//! Installation of requirements that cannot all be installed: without those that cannot be built, or in groups.
//!
//! Only a guessed recipe gets this help, because it may ask for too much.

use super::build::Build;
use super::build_isolation::failed_packages;
use super::build_sandbox::BuildSandbox;
use super::omissions::{contradiction, omission, split_failed};
use super::requirements::name;
use super::steps::StepOutput;
use crate::error::ErrorKind;
use crate::sandbox::Result;

/// Maximum rounds of leaving out requirements that cannot be built, because uv reports one at a time.
const MAX_OMISSION_ROUNDS: usize = 6;

impl Build<'_> {
    /// Checks that the requirements that the user added can be installed. They are never omitted.
    pub(super) async fn require_added(&self, builder: &BuildSandbox) -> Result<()> {
        let added = &self.recipe.stated.added;
        if added.is_empty() {
            return Ok(());
        }
        let step = "install the added requirements";
        let printed = self.try_install(builder, step, added).await?;
        if printed.code == 0 {
            return Ok(());
        }
        let mut error = self.steps(builder).failed(step, &printed);
        // If a package was found and failed to build, its name and version are right.
        if !error.is_external && failed_packages(&printed.text).is_empty() {
            error.kind = ErrorKind::Input;
        }
        Err(error)
    }

    /// Installs what can be installed of the requirements. `printed` is the output of the first attempt. Returns a note
    /// for each omitted one.
    pub(super) async fn install_most(
        &self,
        builder: &BuildSandbox,
        printed: &StepOutput,
    ) -> Result<Vec<String>> {
        match self.install_buildable(builder, printed).await? {
            Some(notes) => Ok(notes),
            None => self.install_in_groups(builder, printed).await,
        }
    }

    /// Installs the requirements except those that cannot be built, in one resolution. `printed` is the output of the
    /// first attempt. Returns a note for each omitted one, or `None` if something else is at fault.
    async fn install_buildable(
        &self,
        builder: &BuildSandbox,
        printed: &StepOutput,
    ) -> Result<Option<Vec<String>>> {
        let steps = self.steps(builder);
        let step = "install the other requirements";
        let mut notes = Vec::new();
        let mut split = split_failed(&self.plan.requirements.lines, printed);
        let mut reason: Option<StepOutput> = None;
        for _ in 0..MAX_OMISSION_ROUNDS {
            let Some((omitted, rest)) = split else {
                return Ok(None);
            };
            let failed = reason.as_ref().unwrap_or(printed);
            notes.extend(omitted.iter().map(|line| omission(line, failed)));
            let again = self.try_install(builder, step, &rest).await?;
            if again.code == 0 {
                self.findings.omit(&notes);
                return Ok(Some(notes));
            }
            if let Some(older) = self.older_python(builder, &again).await? {
                return Err(self.try_older_python(older, steps.failed(step, &again)));
            }
            split = split_failed(&rest, &again);
            reason = Some(again);
        }
        Ok(None)
    }

    /// Installs the requirements in halves, and halves of those that fail. Each adds to the ones before, so of two
    /// requirements of one package the first counts. Other contradictions are ignored, as pip did: old pins can contradict
    /// each other and work all the same.
    async fn install_in_groups(
        &self,
        builder: &BuildSandbox,
        printed: &StepOutput,
    ) -> Result<Vec<String>> {
        let steps = self.steps(builder);
        let mut notes = Vec::new();
        let mut accepted: Vec<String> = Vec::new();
        let mut is_any_installed = false;
        let mut groups = halves(&self.plan.requirements.lines);
        while let Some(group) = groups.pop() {
            let step = match group.as_slice() {
                [line] => format!("install {line}"),
                lines => format!("install {} of the requirements", lines.len()),
            };
            let together: Vec<String> = accepted.iter().chain(&group).cloned().collect();
            let mut output = self.try_install(builder, &step, &together).await?;
            if output.code == 0 {
                accepted = together;
                continue;
            }
            let [line] = group.as_slice() else {
                groups.extend(halves(&group));
                continue;
            };
            let is_repeated = accepted.iter().any(|other| name(other) == name(line));
            if !is_repeated && !accepted.is_empty() {
                let alone = self.try_install(builder, &step, &group).await?;
                if alone.code == 0 {
                    is_any_installed = true;
                    let note = contradiction(line, &output);
                    self.findings.omit(std::slice::from_ref(&note));
                    notes.push(note);
                    continue;
                }
                output = alone;
            }
            // pytest is indispensable.
            if name(line) == "pytest" && !is_repeated {
                return Err(steps.failed("install the requirements", printed));
            }
            if let Some(older) = self.older_python(builder, &output).await? {
                return Err(self.try_older_python(older, steps.failed(&step, &output)));
            }
            let note = omission(line, &output);
            self.findings.omit(std::slice::from_ref(&note));
            notes.push(note);
        }
        match is_any_installed || !accepted.is_empty() {
            true => Ok(notes),
            false => Err(steps.failed("install the requirements", printed)),
        }
    }
}

/// Splits lines into two groups, the first one last. One line stays whole.
fn halves(lines: &[String]) -> Vec<Vec<String>> {
    let (first, second) = lines.split_at(lines.len().div_ceil(2));
    let groups = [second, first].into_iter();
    groups
        .filter(|group| !group.is_empty())
        .map(<[String]>::to_vec)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::halves;

    #[test]
    fn halves_keep_order_on_stack() {
        let lines = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(halves(&lines), [&lines[2..], &lines[..2]]);
        assert_eq!(halves(&lines[..1]), [&lines[..1]]);
        assert_eq!(halves(&[]), [[""; 0]; 0]);
    }
}
