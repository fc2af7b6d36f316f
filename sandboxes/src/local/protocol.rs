//! What the host and the supervisor inside a jail say to each other: frames of JSON with a length before
//! them over a socket pair; the frames that start a process carry its three standard streams.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::sandbox::{Limits, Paths};

/// What keeps the processes of a local sandbox in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Namespaces with an own root file system, and seccomp.
    Namespaces,
    /// Landlock and seccomp, in place: reduced isolation for containers that forbid user namespaces, or by choice.
    Landlock,
    /// Nothing but limits.
    None,
}

/// The first frame: how the jail is to be.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    pub isolation: Isolation,
    pub network: bool,
    /// Without a network namespace: the port of the relay on 127.0.0.1, which the keeper connects to.
    pub host_port: Option<u16>,
    /// Where the own root is mounted (an empty folder, `Namespaces` only).
    pub root: PathBuf,
    pub binds: Vec<Bind>,
    /// The workspace as changes on top of a saved state.
    pub overlay: Option<Overlay>,
    pub paths: Paths,
    pub home: PathBuf,
    /// The host's user and group that own what is written inside.
    pub owner: Option<u32>,
    /// An environment is built: it may take more room than tools may.
    pub building: bool,
    pub limits: Limits,
    /// Environment of every process.
    pub env: BTreeMap<String, String>,
}

/// A host folder or file that is visible inside.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bind {
    pub host: PathBuf,
    pub inside: PathBuf,
    pub writable: bool,
}

/// Host folders of an overlay that is seen as the workspace.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Overlay {
    pub lower: PathBuf,
    pub upper: PathBuf,
    pub work: PathBuf,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Request {
    pub id: u64,
    pub task: Task,
}

/// `Run` and what follows it run as a process of the jail on the three streams that come with the request.
#[derive(Debug, Serialize, Deserialize)]
pub enum Task {
    Ping,
    /// Ends every process but those that keep the jail. Answered as `Ping` is.
    EndProcesses,
    /// Stops every process.
    Freeze,
    /// Lets them go on.
    Thaw,
    Run {
        argv: Vec<String>,
        directory: PathBuf,
        env: BTreeMap<String, String>,
    },
    /// Standard input becomes the file.
    Upload {
        path: PathBuf,
        mode: u32,
    },
    /// Standard input is a tar archive.
    Unpack {
        folder: PathBuf,
    },
    /// The folder goes to standard output as a tar archive.
    Pack {
        folder: PathBuf,
    },
    /// The file goes to standard output.
    Download {
        path: PathBuf,
    },
}

/// Exit code of an `Upload`, `Unpack` or `Download` whose file is not there.
pub const NOT_FOUND: i32 = 44;

#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// The jail is set up; what is not in force, for people.
    Ready {
        lacking: Vec<String>,
        /// By a control group, not by a watch.
        memory_is_counted: bool,
    },
    /// It could not be set up.
    Failed {
        message: String,
    },
    Pong {
        id: u64,
    },
    Exited {
        id: u64,
        code: i32,
    },
    /// The keeper ends the sandbox, because it went beyond a limit.
    Ended {
        why: String,
    },
}

/// Bytes of a frame to the jail: arguments and environment of a process fit in by far.
pub const MAX_REQUEST: u32 = 64 << 20;

/// Bytes of a frame from the jail, which the host reads into its own memory: the longest holds an error message.
const MAX_REPLY: u32 = 64 << 10;

pub fn encode<T: Serialize>(message: &T) -> io::Result<([u8; 4], Vec<u8>)> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|n| *n <= MAX_REQUEST);
    let length = length.ok_or_else(|| io::Error::from(io::ErrorKind::ArgumentListTooLong))?;
    Ok((length.to_le_bytes(), body))
}

pub fn body_length(header: [u8; 4], max: u32) -> io::Result<usize> {
    let length = u32::from_le_bytes(header);
    if length > max {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    Ok(length as usize)
}

pub fn read<T: DeserializeOwned>(stream: &mut impl Read) -> io::Result<T> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let mut body = vec![0; body_length(header, MAX_REQUEST)?];
    stream.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}

/// Reads a frame from the jail, on the host.
pub async fn read_reply(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Reply> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).await?;
    let mut body = vec![0; body_length(header, MAX_REPLY)?];
    stream.read_exact(&mut body).await?;
    Ok(serde_json::from_slice(&body)?)
}

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
    async fn long_replies_are_refused_before_they_are_read() {
        let why = "x".repeat(MAX_REPLY as usize);
        let (header, body) = encode(&Reply::Ended { why }).unwrap();
        let read = read_reply(&mut header.as_slice()).await.unwrap_err();
        assert_eq!(read.kind(), io::ErrorKind::InvalidData);
        assert!(body_length(header, MAX_REQUEST).is_ok_and(|length| length == body.len()));
        let (header, body) = encode(&Reply::Pong { id: 7 }).unwrap();
        let frame = [&header[..], &body].concat();
        let read = read_reply(&mut frame.as_slice()).await.unwrap();
        assert!(matches!(read, Reply::Pong { id: 7 }));
    }
}
