//! Tests of packs of a few hundred bytes that contain objects of hundreds of megabytes.

use std::io::Write as _;

use sha1_checked::{Digest as _, Sha1};

use super::addresses::addresses;
use super::sizes::{commit_tree, hash_object, opened_apart};
use super::*;

const BASE: u64 = 64 << 10;
const LARGE: u64 = 480 << 20;

fn zlib(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

/// Returns the name of a blob of zeros.
fn name_of_zeros(bytes: u64) -> String {
    let zeros = std::io::Read::take(std::io::repeat(0), bytes);
    hash_object(Path::new("/"), &[], zeros)
}

/// Returns the bytes of a hexadecimal name.
fn binary(name: &str) -> Vec<u8> {
    let digits = (0..name.len()).step_by(2).map(|at| &name[at..at + 2]);
    digits
        .map(|two| u8::from_str_radix(two, 16).unwrap())
        .collect()
}

/// Encodes a number with seven bits a byte, the lowest first.
fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Returns the head of an object in a pack, with its kind and size.
fn head(kind: u8, size: u64) -> Vec<u8> {
    let low = kind << 4 | (size & 15) as u8;
    match size >> 4 {
        0 => vec![low],
        high => [vec![low | 0x80], number(high)].concat(),
    }
}

/// Writes a pack of two blobs: some zeros, and `LARGE` zeros as a delta that copies the first ones repeatedly. Returns
/// the name of the large blob.
fn plant(work: &Path) -> String {
    let (blob, difference) = (3, 7);
    let copies = vec![0x80; (LARGE / BASE) as usize];
    let delta = [number(BASE), number(LARGE), copies].concat();
    let parts = [
        b"PACK\0\0\0\x02\0\0\0\x02".to_vec(),
        head(blob, BASE),
        zlib(&vec![0; BASE as usize]),
        head(difference, delta.len() as u64),
        binary(&name_of_zeros(BASE)),
        zlib(&delta),
    ];
    let mut pack = parts.concat();
    assert!(pack.len() < 200, "{} bytes", pack.len());
    pack.extend(Sha1::digest(&pack));
    let path = work.join(".git/objects/pack/pack-hostile.pack");
    std::fs::write(&path, pack).unwrap();
    git(work, &["index-pack", path.to_str().unwrap()]);
    name_of_zeros(LARGE)
}

#[test]
fn small_pack_takes_little_memory() {
    let test = "security::git::packs::small_pack_takes_little_memory";
    if opened_apart(test, None).is_none() {
        return;
    }
    let scene = Scene::new();
    let work = scene.repository();
    let large = plant(&work);
    let small = git(&work, &["rev-parse", "main:a.py"]);
    let many: Vec<_> = (0..20)
        .map(|n| {
            let blob = git_with(&work, &["hash-object", "-w", "--stdin"], &n.to_string());
            format!("100644 blob {blob}\tm{n}.py\n")
        })
        .collect();
    let many = many.concat();
    let tree = |lines: &str| format!("100644 blob {small}\ta.py\n{lines}{many}");
    // The second commit adds the file to many that a clone already has.
    for (round, lines) in [
        tree(&format!("100644 blob {large}\tbig.bin\n")),
        tree(""),
        tree(&format!("100644 blob {large}\tlate.bin\n")),
    ]
    .iter()
    .enumerate()
    {
        let cache = if round == 0 { "first" } else { "later" };
        commit_tree(&work, lines);
        for (address, location) in addresses(&work) {
            let cache = scene.path(&format!("{cache}-{address}"));
            let opened = opened_apart(test, Some((&location, &cache))).unwrap();
            let what = format!("round {round} by {address}: {opened:?}");
            assert!(opened.peak < 200, "{what}");
            assert!(opened.said.contains("files: a.py"), "{what}");
            let left_out = ["big.bin", "", "late.bin"][round];
            let note = format!("files larger than 256 MiB were omitted: {left_out}");
            assert_eq!(opened.said.contains(&note), round != 1, "{what}");
        }
    }
}
