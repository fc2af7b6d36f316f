//! Verification that an object matches its name.
//!
//! git does not check this when it reads objects. So an attacker could store any content under any name; it would be
//! shown as a commit of the real project and cached as such.

use std::io::{self, BufRead, Read};

use sha1_checked::Sha1;
use sha2::{Digest, Sha256};

use super::git::{Git, failed};
use crate::error::SandboxError;
use crate::hex::hex;
use crate::sandbox::Result;

/// The hash of one object. The length of the object's name selects the algorithm.
pub(super) enum ObjectHash {
    /// SHA-1 with detection of collision attacks.
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
}

impl ObjectHash {
    /// Starts the hash of an object whose `kind` is `blob`, `tree` or `commit`.
    pub(super) fn new(name: &str, kind: &str, size: u64) -> Self {
        let mut hash = if name.len() == 64 {
            ObjectHash::Sha256(Box::default())
        } else {
            ObjectHash::Sha1(Box::new(Sha1::builder().safe_hash(false).build()))
        };
        hash.update(format!("{kind} {size}\0").as_bytes());
        hash
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            ObjectHash::Sha1(hash) => hash.update(bytes),
            ObjectHash::Sha256(hash) => hash.update(bytes),
        }
    }

    fn check(self, name: &str) -> Result<()> {
        let digest = match self {
            ObjectHash::Sha1(hash) => {
                let result = hash.try_finalize();
                (!result.has_collision()).then(|| hex(result.hash()))
            }
            ObjectHash::Sha256(hash) => Some(hex(&hash.finalize())),
        };
        if digest.as_deref() == Some(name) {
            return Ok(());
        }
        let text = format!("the repository's object {name} does not match its hash");
        Err(SandboxError::input(text).hint(
            "run `git fsck` there, or clone it again: the repository is damaged or was tampered with",
        ))
    }
}

/// Checks a commit and the folders of a tree. Files are checked when they are read.
pub(super) fn check_tree(git: &Git, commit: Option<&str>, tree: &str) -> Result<()> {
    let folders = git.run(&["ls-tree", "-r", "-d", "-z", "--full-tree", tree])?;
    let folders = folders.split('\0').filter_map(|line| {
        let mut fields = line.split('\t').next()?.split(' ').skip(1);
        (fields.next()? == "tree").then_some(fields.next()?)
    });
    let mut names: Vec<&str> = folders.chain([tree]).chain(commit).collect();
    names.sort_unstable();
    names.dedup();
    let input: String = names.iter().map(|name| format!("{name}\n")).collect();
    let output = git.try_run(&["cat-file", "--batch", "--buffer"], input.as_bytes())?;
    let mut objects = output.stdout.as_slice();
    for name in names {
        let broken = || failed("cat-file", &output.stderr);
        let mut header = String::new();
        objects.read_line(&mut header)?;
        let mut fields = header.trim_end().split(' ').skip(1);
        let kind = fields.next().unwrap_or_default();
        let size: usize = fields
            .next()
            .and_then(|size| size.parse().ok())
            .ok_or_else(broken)?;
        let content = objects.get(..size).ok_or_else(broken)?;
        let mut hash = ObjectHash::new(name, kind, size as u64);
        hash.update(content);
        hash.check(name)?;
        objects = objects.get(size + 1..).unwrap_or_default();
    }
    Ok(())
}

/// A reader that hashes the content that passes through it.
pub(super) struct HashingReader<R> {
    content: R,
    hash: ObjectHash,
}

impl<R: Read> HashingReader<R> {
    pub(super) fn new(content: R, hash: ObjectHash) -> Self {
        HashingReader { content, hash }
    }

    /// Compares the hash with the object's name. Call it after all content was read.
    pub(super) fn check(self, name: &str) -> Result<()> {
        self.hash.check(name)
    }
}

impl<R: Read> Read for HashingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.content.read(buffer)?;
        self.hash.update(&buffer[..count]);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, kind: &str, content: &[u8]) -> bool {
        let hash = ObjectHash::new(name, kind, content.len() as u64);
        let mut hashed = HashingReader::new(content, hash);
        io::copy(&mut hashed, &mut io::sink()).is_ok() && hashed.check(name).is_ok()
    }

    #[test]
    fn names_match_git_hash_object() {
        // The names come from `git hash-object -t KIND`, also in a repository with `--object-format=sha256`.
        for (kind, content, names) in [
            (
                "blob",
                "hello\n",
                [
                    "ce013625030ba8dba906f756967f9e9ca394464a",
                    "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4",
                ],
            ),
            (
                "tree",
                "",
                [
                    "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
                    "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
                ],
            ),
        ] {
            for name in names {
                assert!(check(name, kind, content.as_bytes()), "{name}");
                assert!(!check(name, kind, b"another"), "{name}");
                assert!(!check(name, "commit", content.as_bytes()), "{name}");
            }
        }
    }
}
