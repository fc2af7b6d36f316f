//! Writes files in a short-lived child process.
//!
//! The kernel refuses to execute a file that any process has open for writing (`ETXTBSY`). A child that another thread
//! forks inherits every descriptor of this process until it executes its own program.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Argument that makes the launcher write a file instead of starting a jail.
const WRITE_FILE: &str = "write-file";

/// Content to write.
pub(super) enum Content<'a> {
    File(File),
    Bytes(&'a [u8]),
}

/// Creates `target`, which must not exist, with this content and mode. A failed attempt leaves no file.
pub(super) fn write(
    launcher: &[OsString],
    target: &Path,
    content: Content<'_>,
    mode: u32,
) -> io::Result<()> {
    let (program, arguments) = launcher
        .split_first()
        .ok_or_else(|| io::Error::other("no launcher is configured"))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .arg(WRITE_FILE)
        .arg(target)
        .arg(format!("{:o}", mode & 0o7777))
        .env_clear()
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let (stdin, bytes) = match content {
        Content::File(file) => (Stdio::from(file), None),
        Content::Bytes(bytes) => (Stdio::piped(), Some(bytes)),
    };
    let mut child = command.stdin(stdin).spawn()?;
    if let (Some(mut stdin), Some(bytes)) = (child.stdin.take(), bytes) {
        // If the child ended early, its message says why.
        let _ = stdin.write_all(bytes);
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        return Ok(());
    }
    let _ = fs::remove_file(target);
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(match message.strip_prefix("os error ").map(str::parse) {
        Some(Ok(code)) => io::Error::from_raw_os_error(code),
        _ => io::Error::other(format!("the child process failed: {message}")),
    })
}

/// Does the child's work and ends this process, if this process was started by [`write()`].
pub(super) fn run_if_requested() {
    let mut arguments = std::env::args_os().skip_while(|argument| argument != WRITE_FILE);
    let (Some(_), Some(target), Some(mode)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return;
    };
    let code = match write_stdin(Path::new(&target), &mode) {
        Ok(()) => 0,
        Err(error) => {
            match error.raw_os_error() {
                Some(code) => eprintln!("os error {code}"),
                None => eprintln!("{error}"),
            }
            1
        }
    };
    std::process::exit(code)
}

fn write_stdin(target: &Path, mode: &OsStr) -> io::Result<()> {
    let mode = u32::from_str_radix(&mode.to_string_lossy(), 8).map_err(io::Error::other)?;
    let mut file = File::create_new(target)?;
    io::copy(&mut io::stdin().lock(), &mut file)?;
    file.set_permissions(Permissions::from_mode(mode))
}
