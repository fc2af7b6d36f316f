//! A fork that copies only what changed: a second container of the same image gets what `find` and `tar` in the first
//! see as changed since it started.
//!
//! Why: a commit makes the engine compare the whole file systems where it has no native difference (3 s for a Debian
//! with a sympy checkout on fuse-overlayfs); this takes as long as starting a container. It is complete because tools
//! can write nowhere but to [`WRITABLE`], and what the host put elsewhere is known. Change times cannot be set back, so
//! no change hides. Whatever is not plain (no GNU find and tar in the image, files that their owner may not read, a
//! folder moved here with old files in it) is an error, and the caller falls back to a commit.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::archive::{self, Ids};
use super::container::{Container, Tar};
use super::container_config::WRITABLE;
use super::images::Image;
use crate::error::{ErrorKind, SandboxError};
use crate::sandbox::{Command, Process, Result, Sandbox, read_all, read_messages};

/// Longer than this, and a commit would have been quicker.
const SCAN_TIMEOUT: Duration = Duration::from_secs(60);

/// Bytes of a file that the host put into the original: the longest is the toolbox.
const MAX_UPLOAD: usize = 512 << 20;

pub(super) async fn fork(original: &Container) -> Result<Container> {
    let image = Image {
        name: original.image_id.clone(),
        ..original.image.clone()
    };
    let start = Container::start(&original.engine, original.spec.clone(), image, None);
    let (fork, survey) = tokio::try_join!(start, survey(original, &WRITABLE))?;
    let work = async {
        transfer(original, &fork, survey).await?;
        uploads(original, &fork).await
    };
    match tokio::time::timeout(SCAN_TIMEOUT, work).await {
        Ok(Ok(())) => Ok(fork),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(unsure("it takes too long")),
    }
}

fn unsure(why: impl std::fmt::Display) -> SandboxError {
    SandboxError::new(ErrorKind::System, format!("copy what changed: {why}"))
}

/// Paths as bytes, each with its type as `find` writes it.
type Entries = BTreeMap<Vec<u8>, u8>;

#[derive(Debug, Default, PartialEq)]
struct Survey {
    /// What changed, without the folders that were looked through.
    changed: Entries,
    /// Folders in which something changed.
    folders: BTreeSet<Vec<u8>>,
    /// All that is in these folders.
    present: Entries,
}

async fn survey(original: &Container, roots: &[&str]) -> Result<Survey> {
    // A second back, for clocks that are read at different moments: what is copied needlessly does no harm.
    let started: jiff::Timestamp = original.started.parse().map_err(unsure)?;
    let since = started - jiff::SignedDuration::from_secs(1);
    let script = format!(
        r#"set --; for f in {}; do [ -d "$f" ] && set -- "$@" "$f"; done
        exec find "$@" -xdev {} -newerct {since} -printf 'c%y%p\0' -type d \
            -exec sh -c 'find "$@" -mindepth 1 -maxdepth 1 -printf "e%y%p\0"' sh {{}} +"#,
        roots.join(" "),
        without_mounts(original),
    );
    let output = run(original, script, Vec::new()).await?;
    Ok(read_survey(&output, roots))
}

/// For `find`: other file systems are not looked into, but the folders they hang in would be.
fn without_mounts(original: &Container) -> String {
    let ours = original
        .spec
        .mounts
        .iter()
        .map(|mount| mount.inside.display().to_string());
    let all = ["/proc", "/sys", "/dev"]
        .map(str::to_owned)
        .into_iter()
        .chain(ours);
    let tests: Vec<String> = all
        .map(|path| format!("-path '{}'", path.replace('\'', "'\\''")))
        .collect();
    format!(r"\( {} \) -prune -o", tests.join(" -o "))
}

fn read_survey(output: &[u8], roots: &[&str]) -> Survey {
    let mut survey = Survey::default();
    for record in output.split(|byte| *byte == 0) {
        let [list, kind, path @ ..] = record else {
            continue;
        };
        if *list == b'e' {
            survey.present.insert(path.to_vec(), *kind);
            continue;
        }
        if *kind == b'd' {
            survey.folders.insert(path.to_vec());
        }
        if !roots.iter().any(|root| root.as_bytes() == path) {
            survey.changed.insert(path.to_vec(), *kind);
        }
    }
    survey
}

/// What is to be done in the fork.
#[derive(Debug, Default, PartialEq)]
struct Plan {
    remove: BTreeSet<Vec<u8>>,
    copy: BTreeSet<Vec<u8>>,
}

/// `theirs` is what the fork has in the folders that changed.
fn plan(survey: &Survey, theirs: &Entries) -> Result<Plan> {
    let mut plan = Plan::default();
    for (path, kind) in theirs {
        if survey.present.get(path) != Some(kind) {
            plan.remove.insert(path.clone());
        }
    }
    for (path, kind) in &survey.present {
        if theirs.get(path) != Some(kind) && !survey.changed.contains_key(path) {
            return Err(unsure(format!(
                "{} is new and old at once",
                String::from_utf8_lossy(path)
            )));
        }
    }
    for (path, kind) in &survey.changed {
        // Sockets are of no use without the process behind them.
        if *kind != b's' {
            plan.copy.insert(path.clone());
        }
    }
    Ok(plan)
}

async fn transfer(original: &Container, fork: &Container, survey: Survey) -> Result<()> {
    let theirs = look(fork, &survey).await?;
    let plan = plan(&survey, &theirs)?;
    remove(fork, &plan.remove).await?;
    if !plan.copy.is_empty() {
        // Without the leading slash, as in the archive.
        pipe(original, fork, list(&plan.copy, 1)).await?;
    }
    Ok(())
}

/// What is in another container's folders of the same names.
async fn look(container: &Container, survey: &Survey) -> Result<Entries> {
    if survey.folders.is_empty() {
        return Ok(Entries::new());
    }
    let script = r#"exec xargs -0 -r sh -c 'for d; do
        if [ -d "$d" ] && [ ! -L "$d" ]; then find "$d" -mindepth 1 -maxdepth 1 -printf "e%y%p\0"; fi
    done' sh"#;
    let output = run(container, script.to_owned(), list(&survey.folders, 0)).await?;
    Ok(read_survey(&output, &[]).present)
}

async fn remove(container: &Container, paths: &BTreeSet<Vec<u8>>) -> Result<()> {
    if !paths.is_empty() {
        run(
            container,
            "exec xargs -0 -r rm -rf --".to_owned(),
            list(paths, 0),
        )
        .await?;
    }
    Ok(())
}

/// Removes from a copy made by a commit what the original has no more; true if there was something. Docker on
/// fuse-overlayfs brings back what was in a folder that was removed and made again.
pub(super) async fn repair(original: &Container, copy: &Container) -> Result<bool> {
    let roots: &[&str] = if original.user() == Ids::ROOT {
        &["/"]
    } else {
        &WRITABLE
    };
    let survey = survey(original, roots).await?;
    let theirs = look(copy, &survey).await?;
    let left: BTreeSet<Vec<u8>> = theirs
        .into_keys()
        .filter(|path| !survey.present.contains_key(path))
        .collect();
    remove(copy, &left).await?;
    Ok(!left.is_empty())
}

fn list<'a>(paths: impl IntoIterator<Item = &'a Vec<u8>>, skip: usize) -> Vec<u8> {
    let mut list = Vec::new();
    for path in paths {
        list.extend_from_slice(path.get(skip..).unwrap_or_default());
        list.push(0);
    }
    list
}

fn script(text: String) -> Command {
    let mut command = Command::shell(text);
    command.directory = Some("/".into());
    command.env.insert("LC_ALL".to_owned(), "C".to_owned());
    command
}

/// Runs a script with some input, and wants it to succeed.
async fn run(container: &Container, text: String, input: Vec<u8>) -> Result<Vec<u8>> {
    let process = container.spawn(&script(text)).await?;
    let mut stdin = process.stdin;
    let feed = async move {
        stdin.write_all(&input).await?;
        stdin.shutdown().await
    };
    let name = || "a survey of changed files".to_owned();
    let reading = async {
        tokio::try_join!(read_all(&name, process.stdout), async {
            Ok(read_messages(process.stderr).await?)
        })
    };
    let (fed, read) = tokio::join!(feed, reading);
    let (out, messages) = read.map_err(|e| unsure(e.message))?;
    if process.exit.await? != 0 {
        return Err(unsure(messages));
    }
    fed?;
    Ok(out)
}

async fn pipe(original: &Container, fork: &Container, names: Vec<u8>) -> Result<()> {
    let pack = "exec tar -C / --null --no-recursion --format=posix -T - -cf -".to_owned();
    let unpack = "exec tar -C / --delay-directory-restore -xpf -".to_owned();
    let (pack, unpack) = (script(pack), script(unpack));
    let (from, to) = tokio::try_join!(original.spawn(&pack), fork.spawn(&unpack))?;
    let Process {
        stdin: mut wanted,
        stdout: mut archive,
        stderr: complaints,
        exit: packed,
    } = from;
    let Process {
        stdin: mut target,
        stdout: _unused,
        stderr: refusals,
        exit: unpacked,
    } = to;
    let feed = async move {
        wanted.write_all(&names).await?;
        wanted.shutdown().await
    };
    let flow = async move {
        tokio::io::copy(&mut archive, &mut target).await?;
        target.shutdown().await
    };
    let (fed, flown, complaints, refusals) = tokio::join!(
        feed,
        flow,
        read_messages(complaints),
        read_messages(refusals)
    );
    let (packed, unpacked) = tokio::try_join!(packed, unpacked)?;
    // 1: a file changed while it was read. That is for those to avoid who run processes meanwhile.
    if packed > 1 || unpacked != 0 {
        return Err(unsure(complaints? + &refusals?));
    }
    fed?;
    flown?;
    Ok(())
}

/// What the host put where tools cannot write.
async fn uploads(original: &Container, fork: &Container) -> Result<()> {
    for path in original.uploads() {
        let tar = original.get(&path, MAX_UPLOAD).await?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        let (folder, rest) = fork.existing(parent).await?;
        if !rest.as_os_str().is_empty() {
            let folders = archive::folders(&[(&rest, Ids::ROOT)])?;
            fork.put(&folder, Tar::Whole(folders)).await?;
        }
        fork.put(parent, Tar::Whole(tar)).await?;
        fork.remember(&path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entries(list: &[(&str, char)]) -> Entries {
        list.iter()
            .map(|(path, kind)| (path.as_bytes().to_vec(), *kind as u8))
            .collect()
    }

    fn paths(list: &[&str]) -> BTreeSet<Vec<u8>> {
        list.iter().map(|path| path.as_bytes().to_vec()).collect()
    }

    #[test]
    fn changed_is_copied_and_gone_is_removed() {
        let survey = read_survey(b"cd/testbed\0ef/testbed/new\0ef/testbed/old\0el/testbed/was-file\0cf/testbed/new\0cl/testbed/was-file\0cs/tmp/socket\0", &WRITABLE);
        let theirs = entries(&[
            ("/testbed/old", 'f'),
            ("/testbed/gone", 'd'),
            ("/testbed/was-file", 'f'),
        ]);
        let plan = plan(&survey, &theirs).unwrap();
        assert_eq!(plan.copy, paths(&["/testbed/new", "/testbed/was-file"]));
        assert_eq!(plan.remove, paths(&["/testbed/gone", "/testbed/was-file"]));
    }

    #[test]
    fn old_files_in_a_new_place_are_not_guessed_at() {
        let survey = Survey {
            changed: entries(&[("/testbed/moved", 'd')]),
            folders: paths(&["/testbed", "/testbed/moved"]),
            present: entries(&[("/testbed/moved", 'd'), ("/testbed/moved/file", 'f')]),
        };
        assert!(plan(&survey, &Entries::new()).is_err());
    }
}
