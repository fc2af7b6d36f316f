//! Verification of a new environment.
//!
//! Some test files from all over the repository are collected, and some of their tests run as the tools will run them:
//! without network, as the tools' user. Packages that they lack are installed if their names are beyond doubt. It also
//! searches the installed packages for a copy of the code under test, which would run instead.

use std::collections::BTreeSet;

use super::Environment;
use super::before_tests::FailedCommand;
use super::build::Build;
use super::build_sandbox::SHORT_STEP;
use super::smoke_test::SmokeTestReport;
use super::trial::{self, Trial, TrialKind};
use super::{failure_hints, steps};
use crate::error::{ErrorKind, SandboxError};
use crate::recipe;
use crate::repository::Tree;
use crate::sandbox::{Command, Limits, Result, Sandbox, output};

/// Maximum rounds of adding what tests lack, because each round can reveal more.
const ROUNDS: usize = 6;

impl Build<'_> {
    /// Tries the environment and completes it.
    pub(super) async fn verify(&self, environment: &mut Environment) -> Result<()> {
        let tree = self.source.tree()?;
        // Packages that were tried, in all rounds.
        let mut tried = BTreeSet::new();
        environment.bytes = self.backend.saved_bytes(&environment.saved).await?;
        for round in 0..=ROUNDS {
            let kind = match round {
                0 => TrialKind::First,
                _ => TrialKind::Repeated,
            };
            let Some(report) = self.try_in_sandbox(environment, &tree, kind).await? else {
                break;
            };
            let mut report = match trial::lacks_results(&report) {
                true => self.try_more(environment, &tree, report).await?,
                false => report,
            };
            let may_complete = round < ROUNDS && self.plan.guess.any;
            if may_complete
                && self
                    .complete(environment, &tree, &report, &mut tried)
                    .await?
            {
                continue;
            }
            if trial::is_rejected(&report) || trial::is_aborted(&report) {
                report = self.try_more(environment, &tree, report).await?;
                // The tests of other files can lack other things.
                if may_complete
                    && self
                        .complete(environment, &tree, &report, &mut tried)
                        .await?
                {
                    continue;
                }
            }
            if let Some(draft) = &self.settings.draft {
                draft.keep_report(&report);
            }
            match self.assess_report(&report) {
                Ok(notes) => {
                    environment.notes.extend(notes);
                    let unprepared = report.unprepared.as_ref();
                    environment
                        .notes
                        .extend(unprepared.map(FailedCommand::note));
                }
                Err(error) => {
                    let error = match &report.unprepared {
                        Some(failed) => failed.explain(error),
                        None => with_settings_prefix(error, &report, &tree)?,
                    };
                    return Err(match self.older_python_for_tests(&report).await? {
                        Some(older) => self.try_older_python(older, error),
                        None => error,
                    });
                }
            }
            break;
        }
        Ok(())
    }

    /// Adds the packages, variables and services that a report asks for. Returns whether anything was added.
    async fn complete(
        &self,
        environment: &mut Environment,
        tree: &Tree,
        report: &SmokeTestReport,
        tried: &mut BTreeSet<String>,
    ) -> Result<bool> {
        let missing = self.missing(report, &environment.packages, tree, tried)?;
        if missing.is_empty() {
            return self.complete_surroundings(environment, report, tree).await;
        }
        let bytes = self.install_missing(environment, &missing).await?;
        environment.bytes += bytes;
        Ok(true)
    }

    async fn try_in_sandbox(
        &self,
        environment: &mut Environment,
        tree: &Tree,
        kind: TrialKind,
    ) -> Result<Option<SmokeTestReport>> {
        let spec = environment.tool_spec(Limits::default(), "verify");
        let sandbox = self
            .log
            .timed("start a sandbox to try tests", self.backend.start(&spec))
            .await?;
        let tried = self
            .try_tests(sandbox.as_ref(), environment, tree, kind)
            .await;
        let stopped = self.log.timed("stop the sandbox", sandbox.stop()).await;
        let tried = tried?;
        stopped?;
        Ok(tried)
    }

    /// Tries tests of other files too: a few failing tests alone do not show that nothing works.
    async fn try_more(
        &self,
        environment: &mut Environment,
        tree: &Tree,
        report: SmokeTestReport,
    ) -> Result<SmokeTestReport> {
        let kind = TrialKind::OtherFiles;
        Ok(match self.try_in_sandbox(environment, tree, kind).await? {
            Some(more) => report.with(more),
            None => report,
        })
    }

    /// Tries some tests. Returns `None` if there is nothing that pytest could run.
    async fn try_tests(
        &self,
        sandbox: &dyn Sandbox,
        environment: &mut Environment,
        tree: &Tree,
        kind: TrialKind,
    ) -> Result<Option<SmokeTestReport>> {
        let python = environment.python_in(&sandbox.info().paths);
        let python = python.to_string_lossy().into_owned();
        if kind == TrialKind::First {
            let check = installed(sandbox, &python, tree);
            let (version, copies) = self.log.timed("check the interpreter", check).await?;
            environment.python_version = version;
            environment.notes.extend(copies);
        }
        let runner = &self.recipe.runner.kind;
        if runner != "pytest" {
            let note = format!("the tests run with {runner}, so none was tried");
            environment.notes.push(note);
            return Ok(None);
        }
        if !environment.recipe.services.is_empty() {
            let start = self.start_guessed_services(sandbox, environment);
            self.log.timed("start the services", start).await?;
        }
        let unprepared = self.run_guessed_commands(sandbox, environment).await?;
        let trial = Trial {
            build: self,
            sandbox,
            environment,
            tree,
            python,
        };
        let Some(report) = trial.run(kind).await? else {
            let seconds = self.settings.trial_deadline.as_secs();
            environment.notes.push(format!(
                "the trial of a few tests timed out after {seconds} s"
            ));
            environment
                .notes
                .extend(unprepared.as_ref().map(FailedCommand::note));
            return Ok(None);
        };
        Ok(Some(SmokeTestReport {
            unprepared,
            ..report
        }))
    }

    /// Runs the commands before the tests. If a guessed one fails, it and those after it are removed, because the tests
    /// may do without them.
    async fn run_guessed_commands(
        &self,
        sandbox: &dyn Sandbox,
        environment: &mut Environment,
    ) -> Result<Option<FailedCommand>> {
        // Another try of a command that timed out would cost as much time in every round.
        let slow = self.findings.slow_command.get();
        let is_tried = |command: &&String| slow.is_none_or(|slow| slow.command != **command);
        let commands = self.recipe.before_tests.iter().take_while(is_tried);
        // An earlier round may have removed commands that lacked what has been added since.
        environment.recipe.before_tests = commands.cloned().collect();
        let commands = &environment.recipe.before_tests;
        if commands.is_empty() {
            return Ok(slow.cloned());
        }
        let begun = self.log.begin_step();
        self.log
            .line(&format!("== before the tests\n$ {}", commands.join("\n$ ")));
        let ran = environment.run_before_tests(sandbox, &[]).await;
        let seconds = self.log.end_step(begun);
        let Some(failed) = ran? else {
            self.log
                .line(&format!("== before the tests: done, {seconds:.1} s\n"));
            return Ok(slow.cloned());
        };
        self.log.line(failed.printed.text.trim_end());
        let step = format!("before the tests: {}", steps::label(&failed.command));
        let code = failed.printed.code;
        self.log
            .line(&format!("== {step}: exit code {code}, {seconds:.1} s\n"));
        if !self.plan.guess.before_tests {
            return Err(steps::failed(self.log, &step, &failed.printed));
        }
        let commands = &mut environment.recipe.before_tests;
        let at = commands.iter().position(|c| *c == failed.command);
        commands.truncate(at.unwrap_or_default());
        if failed.timed_out() {
            self.findings.slow_command.set(failed.clone()).ok();
        }
        Ok(Some(failed))
    }

    /// Starts the services. Guessed ones that do not start are removed, because the tests may do without them.
    async fn start_guessed_services(
        &self,
        sandbox: &dyn Sandbox,
        environment: &mut Environment,
    ) -> Result<()> {
        match environment.start_services(sandbox, &[]).await {
            Err(error) if self.plan.guess.services => {
                self.log.line(&format!("-- {error}"));
                let services = std::mem::take(&mut environment.recipe.services);
                let env = &environment.recipe.env;
                let is_of_service = |name: &String| {
                    !env.contains_key(name) && services.iter().any(|s| s.env.contains_key(name))
                };
                environment.env.retain(|name, _| !is_of_service(name));
                environment.notes.extend(services.iter().map(|service| {
                    let name = &service.name;
                    format!("the service {name} does not start here and was omitted")
                }));
                Ok(())
            }
            started => started,
        }
    }
}

/// Names the variables in a hint about settings with the prefix that the repository's code gives them.
fn with_settings_prefix(
    mut error: SandboxError,
    report: &SmokeTestReport,
    tree: &Tree,
) -> Result<SandboxError> {
    let prefix = recipe::settings_prefix(tree)?;
    if error.hint.is_none() || prefix.is_empty() {
        return Ok(error);
    }
    let printed = report.printed_lines();
    let texts = report.complaints().map(|(_, text)| text);
    let mut texts = texts.chain([printed.text.as_str()]);
    // The hint is about the error that decided, which may have nothing to do with settings.
    let decided = texts.find(|text| failure_hints::hint(text) == error.hint);
    let hint = decided.and_then(|text| failure_hints::hint_for_settings(text, &prefix));
    error.hint = hint.or(error.hint);
    Ok(error)
}

/// Returns the interpreter's version, and notes on packages of the repository that are also installed as copies.
///
/// A folder without `__init__.py` is not a copy: editable installs of scikit-build-core put only compiled modules there.
async fn installed(
    sandbox: &dyn Sandbox,
    python: &str,
    tree: &Tree,
) -> Result<(String, Vec<String>)> {
    let code = "import os, sys, sysconfig\n\
                print('%d.%d' % sys.version_info[:2])\n\
                for p in sorted({sysconfig.get_paths()[k] for k in ('purelib', 'platlib')}):\n    \
                is_copy = lambda n: os.path.exists(os.path.join(p, n, '__init__.py'))\n    \
                print('\\n'.join(sorted(filter(is_copy, os.listdir(p)))))";
    let output = output(sandbox, &Command::new([python, "-c", code]), SHORT_STEP).await?;
    if output.code != 0 {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(SandboxError::new(
            ErrorKind::Build,
            format!("the interpreter does not run\n    {}", text.trim()),
        ));
    }
    let installed = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = installed.lines();
    let version = lines.next().unwrap_or_default().to_owned();
    let installed: BTreeSet<&str> = lines.collect();
    let mut packages = BTreeSet::new();
    for path in tree.paths() {
        let path = path
            .strip_prefix("src/")
            .or(path.strip_prefix("lib/"))
            .unwrap_or(path);
        if let Some((folder, "__init__.py")) = path.split_once('/') {
            packages.insert(folder.to_owned());
        }
    }
    let copies = packages
        .into_iter()
        .filter(|p| {
            !["tests", "test", "docs", "examples"].contains(&p.as_str())
                && installed.contains(p.as_str())
        })
        .map(|p| {
            format!(
                "the installed packages contain a copy of `{p}`, which is not the code under test"
            )
        });
    Ok((version, copies.collect()))
}
