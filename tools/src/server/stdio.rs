//! Standard input and output for the protocol, each on its own thread for the lifetime of the server.
//!
//! tokio's own stdio starts threads on demand. The confinement must know all thread ids of the toolbox in advance, to
//! stop programs from signalling them.

use std::io::{Read, Write};
use std::thread::JoinHandle;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::runtime::Handle;

const BUFFER: usize = 64 * 1024;

/// The streams of the protocol, and the thread that writes the output.
pub(super) struct Stdio {
    pub input: DuplexStream,
    pub output: DuplexStream,
    /// Ends once `output` is dropped and everything is written.
    pub writer: JoinHandle<()>,
}

pub(super) fn stdio(runtime: &Handle) -> Stdio {
    let (input, mut received) = duplex(BUFFER);
    let (output, mut to_send) = duplex(BUFFER);
    let reading = runtime.clone();
    std::thread::spawn(move || {
        let mut buffer = vec![0; BUFFER];
        loop {
            match std::io::stdin().read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => {
                    if reading.block_on(received.write_all(&buffer[..n])).is_err() {
                        break;
                    }
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    });
    let writing = runtime.clone();
    let writer = std::thread::spawn(move || {
        let mut buffer = vec![0; BUFFER];
        while let Ok(n) = writing.block_on(to_send.read(&mut buffer)) {
            if n == 0 {
                break;
            }
            let mut out = std::io::stdout();
            if out
                .write_all(&buffer[..n])
                .and_then(|()| out.flush())
                .is_err()
            {
                break;
            }
        }
    });
    Stdio {
        input,
        output,
        writer,
    }
}
