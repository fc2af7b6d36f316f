//! Captured program output: the beginning, the end, and the number of bytes cut between them.

use std::collections::VecDeque;

/// A stream of which the first and the last bytes are kept.
#[derive(Debug, Clone, Default)]
pub struct CapturedStream {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    half: usize,
    cut: u64,
}

impl CapturedStream {
    /// Creates a stream that keeps `keep` bytes, half of them from the beginning.
    pub fn new(keep: usize) -> Self {
        CapturedStream {
            half: keep.div_ceil(2),
            ..CapturedStream::default()
        }
    }

    /// Appends output. Beyond the limit, bytes in the middle are dropped and counted.
    pub fn push(&mut self, mut bytes: &[u8]) {
        let room = self.half.saturating_sub(self.head.len()).min(bytes.len());
        let (now, later) = bytes.split_at(room);
        self.head.extend_from_slice(now);
        bytes = later;
        if bytes.len() > self.half {
            self.cut += (bytes.len() - self.half) as u64;
            bytes = &bytes[bytes.len() - self.half..];
        }
        self.tail.extend(bytes);
        let over = self.tail.len().saturating_sub(self.half);
        self.tail.drain(..over);
        self.cut += over as u64;
    }

    /// Returns whether there was no output.
    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Returns the output as text; bytes that are not UTF-8 are replaced. A note in the middle says how many bytes were
    /// left out.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.cut == 0 {
            let whole = [self.head.as_slice(), &tail].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        format!(
            "{}\n[... {} bytes left out ...]\n{}",
            String::from_utf8_lossy(&self.head),
            self.cut,
            String::from_utf8_lossy(&tail)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::CapturedStream;

    #[test]
    fn short_streams_are_kept_completely() {
        for step in 1..12 {
            let mut captured = CapturedStream::new(11);
            for chunk in "hällo welt".as_bytes().chunks(step) {
                captured.push(chunk);
            }
            assert_eq!(captured.text(), "hällo welt");
        }
    }

    #[test]
    fn long_streams_keep_both_ends() {
        for step in [1, 3, 7, 100] {
            let mut captured = CapturedStream::new(8);
            let bytes: Vec<u8> = (0..100).map(|i| b'a' + i % 26).collect();
            for chunk in bytes.chunks(step) {
                captured.push(chunk);
            }
            assert_eq!(captured.text(), "abcd\n[... 92 bytes left out ...]\nstuv");
        }
    }
}
