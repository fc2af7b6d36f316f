//! Forks that copy only the changes: a second container of the same image gets the files that `find` and `tar` in the
//! first report as changed since its start.
//!
//! A commit makes the engine compare whole file systems if it has no native diff (3 s for a Debian with a sympy
//! checkout on fuse-overlayfs). This fork takes as long as starting a container. It is complete because tools can write
//! only to [`WRITABLE`], and the host's files elsewhere are known. Change times cannot be set back, so every change is
//! visible.
//!
//! Unusual cases are errors, after which the caller commits instead: no GNU find and tar in the image, files that their
//! owner may not read, a folder that was moved here with old files in it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt;

use super::archive::{self, Ids};
use super::container::{Container, Tar};
use super::container_config::WRITABLE;
use super::images::Image;
use crate::error::SandboxError;
use crate::sandbox::{Command, Result, Sandbox, read_all, read_messages};

/// Maximum time of a fork; beyond it, a commit would have been faster.
const SCAN_TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum bytes of a file that the host put into the original. The longest one is the toolbox.
const MAX_UPLOAD: usize = 512 << 20;

pub(super) async fn fork(original: &Container) -> Result<Container> {
    let image = Image {
        name: original.image_id.clone(),
        ..original.image.clone()
    };
    let start = Container::start(&original.engine, original.spec.clone(), image, None);
    let (fork, survey) = tokio::try_join!(start, scan_changes(original, &WRITABLE))?;
    let work = async {
        transfer(original, &fork, survey).await?;
        uploads(original, &fork).await
    };
    match tokio::time::timeout(SCAN_TIMEOUT, work).await {
        Ok(Ok(())) => Ok(fork),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(unsure("it took too long")),
    }
}

fn unsure(why: impl std::fmt::Display) -> SandboxError {
    SandboxError::system(format!("copy what changed: {why}"))
}

/// Paths as bytes, each with its type as printed by `find`.
type Entries = BTreeMap<Vec<u8>, u8>;

#[derive(Debug, Default, PartialEq)]
struct FileScan {
    /// Changed paths, without the roots of the search.
    changed: Entries,
    /// Folders whose entries changed.
    folders: BTreeSet<Vec<u8>>,
    /// All entries of these folders.
    present: Entries,
}

async fn scan_changes(original: &Container, roots: &[&str]) -> Result<FileScan> {
    // One second earlier, because the clocks are read at different moments. Copying too much does no harm.
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

/// Returns the arguments of `find` that exclude mount points. It does not enter other file systems, but would report
/// their mount points.
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

fn read_survey(output: &[u8], roots: &[&str]) -> FileScan {
    let mut survey = FileScan::default();
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

/// Changes to make in the fork.
#[derive(Debug, PartialEq)]
struct Plan {
    remove: BTreeSet<Vec<u8>>,
    copy: BTreeSet<Vec<u8>>,
}

/// Plans the changes. `theirs` lists the fork's entries in the changed folders.
fn plan(survey: &FileScan, theirs: &Entries) -> Result<Plan> {
    for (path, kind) in &survey.present {
        if theirs.get(path) != Some(kind) && !survey.changed.contains_key(path) {
            return Err(unsure(format!(
                "{} is not marked as changed but missing from the fork",
                String::from_utf8_lossy(path)
            )));
        }
    }
    let replaced = theirs
        .iter()
        .filter(|(path, kind)| survey.present.get(*path) != Some(*kind));
    // Sockets are useless without their process.
    let copied = survey.changed.iter().filter(|(_, kind)| **kind != b's');
    Ok(Plan {
        remove: replaced.map(|(path, _)| path.clone()).collect(),
        copy: copied.map(|(path, _)| path.clone()).collect(),
    })
}

async fn transfer(original: &Container, fork: &Container, survey: FileScan) -> Result<()> {
    let theirs = list_entries(fork, &survey).await?;
    let plan = plan(&survey, &theirs)?;
    remove(fork, &plan.remove).await?;
    if !plan.copy.is_empty() {
        // Names in the archive have no leading slash.
        pipe(original, fork, list(&plan.copy, 1)).await?;
    }
    Ok(())
}

/// Lists the entries of another container's folders of the same names.
async fn list_entries(container: &Container, survey: &FileScan) -> Result<Entries> {
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

/// Removes files from a committed copy that the original no longer has. Returns true if there were any. Docker on
/// fuse-overlayfs restores the old content of a folder that was removed and created again.
pub(super) async fn repair(original: &Container, copy: &Container) -> Result<bool> {
    let roots: &[&str] = if original.user == Ids::ROOT {
        &["/"]
    } else {
        &WRITABLE
    };
    let survey = scan_changes(original, roots).await?;
    let theirs = list_entries(copy, &survey).await?;
    let leftovers: BTreeSet<Vec<u8>> = theirs
        .into_keys()
        .filter(|path| !survey.present.contains_key(path))
        .collect();
    remove(copy, &leftovers).await?;
    Ok(!leftovers.is_empty())
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

/// Runs a script with some input, and fails if it fails or does not get all of its input.
async fn run(container: &Container, text: String, input: Vec<u8>) -> Result<Vec<u8>> {
    let mut process = container.spawn(&script(text)).await?;
    let feed = async move {
        process.stdin.write_all(&input).await?;
        process.stdin.shutdown().await
    };
    let name = || "the list of changed files".to_owned();
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
    let (mut from, mut to) = tokio::try_join!(original.spawn(&pack), fork.spawn(&unpack))?;
    // Each end is closed as soon as its work ends, also by an error. Otherwise the other process would wait for it.
    let feed = async move {
        from.stdin.write_all(&names).await?;
        from.stdin.shutdown().await
    };
    let flow = async move {
        tokio::io::copy(&mut from.stdout, &mut to.stdin).await?;
        to.stdin.shutdown().await
    };
    let (complaints, refusals) = (read_messages(from.stderr), read_messages(to.stderr));
    let (fed, flown, complaints, refusals) = tokio::join!(feed, flow, complaints, refusals);
    let (packed, unpacked) = tokio::try_join!(from.exit, to.exit)?;
    // Code 1 means that a file changed while it was read. Callers that run processes meanwhile must avoid that.
    if packed > 1 || unpacked != 0 {
        return Err(unsure(complaints? + &refusals?));
    }
    fed?;
    flown?;
    Ok(())
}

/// Copies the files that the host put where tools cannot write.
async fn uploads(original: &Container, fork: &Container) -> Result<()> {
    for path in original.uploads() {
        let tar = original.get(&path, MAX_UPLOAD).await?;
        let parent = path.parent().unwrap_or(Path::new("/"));
        let (folder, missing_part) = fork.split_at_existing(parent).await?;
        if !missing_part.as_os_str().is_empty() {
            let folders = archive::folders(&[(&missing_part, Ids::ROOT)])?;
            fork.upload_archive(&folder, Tar::Whole(folders)).await?;
        }
        fork.upload_archive(parent, Tar::Whole(tar)).await?;
        fork.record_upload(&path);
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
    fn changes_are_copied_and_removals_repeated() {
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
    fn old_files_in_moved_folder_fail() {
        let survey = FileScan {
            changed: entries(&[("/testbed/moved", 'd')]),
            folders: paths(&["/testbed", "/testbed/moved"]),
            present: entries(&[("/testbed/moved", 'd'), ("/testbed/moved/file", 'f')]),
        };
        assert!(plan(&survey, &Entries::new()).is_err());
    }
}
