//! The protocol between the host and the supervisor of a jail.
//!
//! Frames of JSON, each after its length, go over a socket pair. Frames that start a process carry its three standard
//! streams.

#![allow(unreachable_pub)] // fuzz targets use these items

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::sandbox::Limits;

/// Isolation of a local sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Namespaces with a separate root file system, and seccomp.
    Namespaces,
    /// Landlock and seccomp in place: reduced isolation for containers that forbid user namespaces, or by choice.
    Landlock,
    /// Resource limits only.
    None,
}

/// Setup of the jail, the first frame.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    pub isolation: Isolation,
    /// Port of the relay on 127.0.0.1, to which the keeper connects; only without a network namespace.
    pub host_port: Option<u16>,
    /// Mount point of the jail's root file system (an empty folder, `Namespaces` only).
    pub root: PathBuf,
    pub binds: Vec<Bind>,
    /// Overlay that makes the workspace from a saved state and changes on top of it.
    pub overlay: Option<Overlay>,
    /// Host user and group that own what is written inside.
    pub owner: Option<u32>,
    /// Whether an environment is being built, which may take more disk space than tools.
    pub building: bool,
    pub limits: Limits,
    /// Environment variables of every process.
    pub env: BTreeMap<String, String>,
}

/// A host folder or file that is visible inside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bind {
    pub host: PathBuf,
    pub inside: PathBuf,
    pub writable: bool,
}

/// Host folders of the overlay that is mounted as the workspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Overlay {
    pub inside: PathBuf,
    pub lower: PathBuf,
    pub upper: PathBuf,
    pub work: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    pub id: u64,
    pub task: Task,
}

/// A task for the supervisor. `Run` and the variants after it are processes of the jail, on the three streams that come
/// with the request.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    Ping,
    /// Ends every process except those that keep the jail. Answered like `Ping`.
    EndProcesses,
    /// Stops every process.
    Freeze,
    /// Resumes every process.
    Thaw,
    Run {
        argv: Vec<String>,
        directory: PathBuf,
        env: BTreeMap<String, String>,
    },
    /// Writes standard input to the file.
    Upload {
        path: PathBuf,
        mode: u32,
    },
    /// Unpacks a tar archive from standard input.
    Unpack {
        folder: PathBuf,
    },
    /// Writes the folder to standard output, as a tar archive.
    Pack {
        folder: PathBuf,
    },
    /// Writes the file to standard output.
    Download {
        path: PathBuf,
    },
}

/// Exit code of an `Upload`, `Unpack` or `Download` whose file does not exist.
pub const NOT_FOUND: i32 = 44;

#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The jail is ready. `lacking` lists protections that are not in force, for people.
    Ready {
        lacking: Vec<String>,
        /// Whether a control group counts the memory, not a watch.
        memory_is_counted: bool,
    },
    /// The jail could not be set up.
    Failed { message: String },
    /// A process exited, or the supervisor completed another task.
    Exited { id: u64, code: i32 },
    /// The keeper ended the sandbox because it exceeded a limit.
    Ended { why: String },
}

/// Maximum bytes of a frame to the jail, far more than arguments and environment of a process need.
pub const MAX_REQUEST: u32 = 64 << 20;

/// Maximum bytes of a frame from the jail, which the host reads into its memory. The longest one contains an error
/// message.
const MAX_REPLY: u32 = 64 << 10;

/// Encodes a message as a frame: its length and its body.
///
/// # Errors
///
/// Fails if the message cannot be written as JSON or is too long for a frame.
pub fn encode<T: Serialize>(message: &T) -> io::Result<([u8; 4], Vec<u8>)> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|n| *n <= MAX_REQUEST);
    let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::ArgumentListTooLong))?;
    Ok((length.to_le_bytes(), body))
}

/// Reads the length of a frame's body from its header.
///
/// # Errors
///
/// Fails if the length exceeds the maximum.
pub fn body_length(header: [u8; 4], max: u32) -> io::Result<usize> {
    let length = u32::from_le_bytes(header);
    if length > max {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    Ok(length as usize)
}

/// Reads a frame.
///
/// # Errors
///
/// Fails if the stream ends or fails, or the frame is too long or not the expected message.
pub fn read<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<T> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut body = vec![0; body_length(header, MAX_REQUEST)?];
    stream.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// Reads a frame from the jail, on the host.
///
/// # Errors
///
/// Fails if the stream ends or fails, or the frame is too long or not a reply.
pub async fn read_reply(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Reply> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    let mut body = vec![0; body_length(header, MAX_REPLY)?];
    stream.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

/// Writes a message as a frame.
///
/// # Errors
///
/// Fails if the message cannot be encoded, or the stream fails.
pub fn write<T: Serialize>(stream: &mut impl Write, message: &T) -> io::Result<()> {
    let (header, body) = encode(message)?;
    stream.write_all(&header)?;
    stream.write_all(&body)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn long_replies_are_refused_unread() {
        let why = "x".repeat(MAX_REPLY as usize);
        let (header, body) = encode(&Reply::Ended { why }).unwrap();
        let read = read_reply(&mut header.as_slice()).await.unwrap_err();
        assert_eq!(read.kind(), io::ErrorKind::InvalidData);
        assert!(body_length(header, MAX_REQUEST).is_ok_and(|length| length == body.len()));
        let (header, body) = encode(&Reply::Exited { id: 7, code: 0 }).unwrap();
        let frame = [&header[..], &body].concat();
        let read = read_reply(&mut frame.as_slice()).await.unwrap();
        assert!(matches!(read, Reply::Exited { id: 7, code: 0 }));
    }
}
