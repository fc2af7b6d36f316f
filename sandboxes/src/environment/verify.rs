//! Is the environment good for anything? Its tests are collected, as the tools will run them: without network, as the
//! tools' user. Also looks for a copy of the code under test among the installed packages, which would be run instead.

use std::collections::BTreeSet;
use std::time::Duration;

use regex::Regex;

use super::log::Log;
use super::steps::{Printed, Steps};
use super::{BuildSettings, Environment, Progress};
use crate::error::{ErrorKind, SandboxError};
use crate::repository::{Source, Tree};
use crate::sandbox::{Backend, Command, Limits, Result, Sandbox, Spec, Start, output};

pub(super) struct Logged<'a> {
    pub log: &'a Log,
    pub progress: Progress<'a>,
}

pub(super) async fn verify(
    backend: &dyn Backend,
    settings: &BuildSettings,
    logged: &Logged<'_>,
    environment: &mut Environment,
    source: &Source,
) -> Result<()> {
    let spec = Spec {
        start: Start::Saved(environment.saved.clone()),
        network: false,
        host_port: None,
        root: false,
        limits: Limits::default(),
        env: environment.env.clone(),
        mounts: Vec::new(),
        purpose: "verify".to_owned(),
    };
    let sandbox = backend.start(&spec).await?;
    let done = look(sandbox.as_ref(), settings, logged, environment, source).await;
    let stopped = sandbox.stop().await;
    done?;
    stopped
}

async fn look(
    sandbox: &dyn Sandbox,
    settings: &BuildSettings,
    logged: &Logged<'_>,
    environment: &mut Environment,
    source: &Source,
) -> Result<()> {
    let python = environment
        .python_in(&sandbox.facts().paths)
        .to_string_lossy()
        .into_owned();
    let (version, copies) = installed(sandbox, &python, &source.tree()?).await?;
    environment.python_version = version;
    environment.notes.extend(copies);
    let kind = &environment.recipe.runner.kind;
    if kind != "pytest" {
        environment
            .notes
            .push(format!("tests are run by {kind}: they were not collected"));
        return Ok(());
    }
    let steps = Steps {
        sandbox,
        log: logged.log,
        progress: logged.progress,
        env: environment.env.clone(),
        deadline: settings.collect_deadline,
        egress: None,
    };
    let step = "collect the tests";
    // Plain asserts, so that the bytecode that is there is used.
    let options = [
        "--collect-only",
        "-qq",
        "--assert=plain",
        "-p",
        "no:cacheprovider",
    ]
    .map(str::to_owned);
    let command = Command::new(
        [python, "-m".to_owned(), "pytest".to_owned()]
            .into_iter()
            .chain(environment.recipe.runner.options.iter().cloned())
            .chain(options),
    );
    let tree = source.tree()?;
    let printed = match steps.attempt(step, &command).await {
        Ok(printed) => printed,
        // So many tests that counting them takes too long are still tests.
        Err(error) if error.kind == ErrorKind::Build => {
            let seconds = settings.collect_deadline.as_secs();
            environment.notes.push(format!(
                "collecting all tests takes more than {seconds} s: it was not waited for"
            ));
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let collected = Collected::read(&printed);
    environment.tests = collected.tests;
    match collected.verdict {
        Verdict::Good => Ok(()),
        Verdict::Noted(note) => {
            environment.notes.push(note);
            Ok(())
        }
        Verdict::Bad if some_are_collected(&steps, &command, &tree).await? => {
            environment.tests = None;
            environment.notes.push(format!(
                "collecting all tests at once fails (exit code {}); files for themselves can be collected",
                printed.code
            ));
            Ok(())
        }
        Verdict::Bad => Err(steps.failed(step, &printed)),
    }
}

/// Tries a few test files from all over the tree, each for itself.
async fn some_are_collected(steps: &Steps<'_>, command: &Command, tree: &Tree) -> Result<bool> {
    let files: Vec<&str> = tree
        .paths()
        .filter(|path| {
            let name = path.rsplit('/').next().unwrap_or(path);
            (name.starts_with("test_") && name.ends_with(".py")) || name.ends_with("_test.py")
        })
        .collect();
    for file in files.iter().step_by(files.len() / 4 + 1) {
        let mut command = command.clone();
        command.argv.push((*file).to_owned());
        match steps.attempt(&format!("collect {file}"), &command).await {
            Ok(printed) if printed.code == 0 => return Ok(true),
            Ok(_) => {}
            // One that hangs says nothing of the others.
            Err(error) if error.kind == ErrorKind::Build => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

struct Collected {
    tests: Option<u64>,
    verdict: Verdict,
}

#[derive(Debug, PartialEq)]
enum Verdict {
    Good,
    Noted(String),
    Bad,
}

impl Collected {
    fn read(printed: &Printed) -> Collected {
        let sum = |pattern: &str| -> u64 {
            Regex::new(pattern).map_or(0, |p| {
                p.captures_iter(&printed.text)
                    .filter_map(|c| c.get(1)?.as_str().parse::<u64>().ok())
                    .fold(0, u64::saturating_add)
            })
        };
        // `tests/test_a.py: 12`, one line a file.
        let tests = sum(r"(?m)^\S.*\.\w+: (\d+)\s*$");
        let broken: BTreeSet<&str> = printed
            .text
            .lines()
            .filter_map(|l| l.trim_matches(['_', ' ']).strip_prefix("ERROR collecting "))
            .collect();
        let files = |count: usize| {
            if count == 1 {
                "1 file".to_owned()
            } else {
                format!("{count} files")
            }
        };
        let verdict = match printed.code {
            0 => Verdict::Good,
            5 => Verdict::Noted("the repository has no tests that pytest finds".to_owned()),
            // Interrupted: some files could not be collected.
            2 | 1 if tests > 0 || !broken.is_empty() => {
                let names: Vec<_> = broken.iter().take(3).copied().collect();
                let more = if broken.len() > 3 { ", …" } else { "" };
                if tests > 0 {
                    Verdict::Noted(format!(
                        "{} with tests cannot be collected: {}{more}",
                        files(broken.len()),
                        names.join(", ")
                    ))
                } else {
                    Verdict::Bad
                }
            }
            _ => Verdict::Bad,
        };
        Collected {
            tests: (printed.code != 3 && printed.code != 4).then_some(tests),
            verdict,
        }
    }
}

/// The version of the interpreter, and packages of the repository that are also installed as copies.
async fn installed(
    sandbox: &dyn Sandbox,
    python: &str,
    tree: &Tree,
) -> Result<(String, Vec<String>)> {
    let code = "import os, sys, sysconfig\n\
                print('%d.%d' % sys.version_info[:2])\n\
                for p in sorted({sysconfig.get_paths()[k] for k in ('purelib', 'platlib')}):\n    print('\\n'.join(sorted(os.listdir(p))))";
    let said = output(
        sandbox,
        &Command::new([python, "-c", code]),
        Duration::from_secs(120),
    )
    .await?;
    if said.code != 0 {
        let text = String::from_utf8_lossy(&said.stderr).into_owned();
        return Err(SandboxError::new(
            ErrorKind::Build,
            format!(
                "build the environment: the interpreter does not run\n    {}",
                text.trim()
            ),
        ));
    }
    let installed = String::from_utf8_lossy(&said.stdout).into_owned();
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
            format!("the installed packages hold a copy of `{p}`, which is not the code under test")
        });
    Ok((version, copies.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(code: i32, text: &str) -> (Option<u64>, Verdict) {
        let collected = Collected::read(&Printed {
            code,
            text: text.to_owned(),
        });
        (collected.tests, collected.verdict)
    }

    #[test]
    fn outcomes_of_a_collection() {
        assert_eq!(
            read(0, "tests/test_a.py: 3\ntests/test_b.py: 20\n\n"),
            (Some(23), Verdict::Good)
        );
        assert!(matches!(
            read(5, "\nno tests collected in 0.01s"),
            (Some(0), Verdict::Noted(_))
        ));
        let some = "a/test_a.py: 3\n\n==== ERRORS ====\n____ ERROR collecting a/test_b.py ____\nE  ImportError\n";
        let note = "1 file with tests cannot be collected: a/test_b.py".to_owned();
        assert_eq!(read(2, some), (Some(3), Verdict::Noted(note)));
        assert_eq!(
            read(2, "____ ERROR collecting a/test_b.py ____\n").1,
            Verdict::Bad
        );
        assert_eq!(
            read(4, "ERROR: usage: pytest\nunrecognized arguments: --cov").1,
            Verdict::Bad
        );
        assert_eq!(read(1, "No module named pytest").1, Verdict::Bad);
    }
}
