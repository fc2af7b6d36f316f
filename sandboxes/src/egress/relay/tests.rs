//! Tests of a relay that code in the sandbox has taken over. Its frames can end the relay but do nothing else.

#![allow(clippy::unwrap_used)]

use std::sync::Mutex;

use super::*;

fn frame(kind: u8, number: u32, content: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    frame.extend_from_slice(&number.to_be_bytes());
    frame.extend_from_slice(&(content.len() as u32).to_be_bytes());
    frame.extend_from_slice(content);
    frame
}

/// Returns the error and the number of opened connections for these frames, with connections that are never read.
async fn relay_output(frames: Vec<u8>) -> (String, usize) {
    let (mut relay, stdout) = tokio::io::duplex(1 << 20);
    let (stdin, mut answers) = tokio::io::duplex(1 << 20);
    let streams = Mutex::new(Vec::new());
    let carried = run_relay(stdin, stdout, |stream| streams.lock().unwrap().push(stream));
    let feed = async {
        let _ = relay.write_all(&frames).await;
        drop(relay);
    };
    let drain = async {
        let _ = tokio::io::copy(&mut answers, &mut tokio::io::sink()).await;
    };
    let error = tokio::select! {
        (ended, ()) = async { tokio::join!(carried, feed) } => ended.unwrap_err(),
        () = async { drain.await; std::future::pending().await } => unreachable!(),
    };
    let opened = streams.lock().unwrap().len();
    (error.to_string(), opened)
}

#[tokio::test]
async fn invalid_frames_end_relay() {
    let open = frame(OPEN, 1, b"");
    let with = |more: Vec<u8>| [open.clone(), more].concat();
    let mut long = frame(DATA, 1, b"");
    long[5..9].copy_from_slice(&u32::MAX.to_be_bytes());
    let full = frame(DATA, 1, &vec![0; CHUNK]);
    let many: Vec<u8> = (0..10_000).flat_map(|n| frame(OPEN, n, b"")).collect();
    for (frames, expected, opened) in [
        (with(long), "a frame is too long", 1),
        (with(full.repeat(64)), "more than the window", 1),
        (with(frame(DATA, 1, b"")), "an empty frame", 1),
        (frame(DATA, 5, b""), "an empty frame", 0),
        (with(open.clone()), "too many connections", 1),
        (many, "too many connections", MAX_CONNECTIONS),
        (
            with(frame(CREDIT_FRAME, 1, &1u32.to_be_bytes())),
            "more credit than the window",
            1,
        ),
        (
            with(frame(CREDIT_FRAME, 1, &u32::MAX.to_be_bytes())),
            "more credit than the window",
            1,
        ),
        (
            with(frame(CREDIT_FRAME, 1, b"abc")),
            "credit without an amount",
            1,
        ),
        (with(frame(77, 1, b"")), "a frame of an unknown kind", 1),
        (frame(READY, 80, b""), "a frame of an unknown kind", 0),
    ] {
        let (text, count) = relay_output(frames).await;
        assert_eq!((text.as_str(), count), (expected, opened));
    }
    // Frames for unknown or closed connections have no effect.
    let stray = [
        frame(DATA, 5, b"x"),
        frame(CREDIT_FRAME, 5, &1u32.to_be_bytes()),
        frame(END_FRAME, 5, b""),
        frame(RESET, 5, b""),
        frame(OPEN, 5, b""),
        frame(RESET, 5, b""),
        frame(DATA, 5, &vec![0; CHUNK]),
    ];
    let (text, count) = relay_output(stray.concat()).await;
    assert_eq!((text.contains("end of file"), count), (true, 1), "{text}");
}

#[tokio::test]
async fn reset_connections_leave_no_tasks() {
    let (mut relay, stdout) = tokio::io::duplex(1 << 20);
    let (stdin, _answers) = tokio::io::duplex(1 << 20);
    let (accepted, mut streams) = tokio::sync::mpsc::channel(1);
    tokio::spawn(run_relay(stdin, stdout, move |stream| {
        accepted.try_send(stream).unwrap();
    }));
    for number in 0..4 * MAX_CONNECTIONS {
        let open = frame(OPEN, number as u32, b"");
        relay.write_all(&open).await.unwrap();
        let mut stream = streams.recv().await.unwrap();
        let reset = frame(RESET, number as u32, b"");
        relay.write_all(&reset).await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
        // Closed in both directions means that the task ended, not only its reading half.
        assert!(stream.write_all(b"x").await.is_err());
    }
}

#[tokio::test]
async fn small_frames_arrive_in_order() {
    let (mut relay, stdout) = tokio::io::duplex(1 << 20);
    let (stdin, _answers) = tokio::io::duplex(16 << 20);
    let (accepted, mut stream) = tokio::sync::mpsc::channel(1);
    tokio::spawn(run_relay(stdin, stdout, move |stream| {
        accepted.try_send(stream).unwrap();
    }));
    // Sends as much as the window allows before anything is read.
    let content: Vec<u8> = (0..WINDOW_BYTES).map(|n| (n % 251) as u8).collect();
    let mut frames = frame(OPEN, 1, b"");
    frames.extend(content.chunks(1).flat_map(|byte| frame(DATA, 1, byte)));
    frames.extend(frame(END_FRAME, 1, b""));
    relay.write_all(&frames).await.unwrap();
    let mut received = Vec::new();
    let mut stream = stream.recv().await.unwrap();
    stream.read_to_end(&mut received).await.unwrap();
    assert!(received == content);
}
