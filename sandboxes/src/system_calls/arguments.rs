//! System calls that are decided by an argument: one table from which every backend builds its filter.

use super::{NEW_NAMESPACES, PERSONALITIES, SOCKET_FAMILIES, SystemCall, call};

const EPERM: u16 = 1;
const EOPNOTSUPP: u16 = 95;

/// A call that fails for some values of one of its arguments and is allowed for the others.
#[derive(Debug, Clone, Copy)]
pub struct ArgumentRule {
    /// System call that the rule restricts.
    pub call: SystemCall,
    /// Index of the argument, from 0. Only its lower 32 bits count, because the kernel ignores the rest.
    pub index: u8,
    /// Values for which the call fails.
    pub refused: Refused,
    /// Error number, or 0 if the call does nothing and reports success.
    pub error: u16,
}

/// Values of an argument for which a call fails.
#[derive(Debug, Clone, Copy)]
pub enum Refused {
    /// These values.
    Values(&'static [u32]),
    /// All values except these.
    AllBut(&'static [u32]),
    /// Values in which at least one of these bits is set.
    AnyBit(&'static [u32]),
}

/// Requests that are refused. TIOCSTI and TIOCLINUX put characters into a terminal's input. FS_IOC_RESVSP,
/// FS_IOC_RESVSP64 and FS_IOC_ZERO_RANGE take disk space as `fallocate` does.
const TERMINAL_INPUT_AND_DISK_SPACE: &[u32] =
    &[0x5412, 0x541c, 0x4030_5828, 0x4030_582a, 0x4030_5839];

/// FALLOC_FL_PUNCH_HOLE with FALLOC_FL_KEEP_SIZE, which takes no space. Other modes take more space at once than a
/// watch can count. If they fail, glibc writes to each block, which takes time.
const PUNCHING_HOLES: &[u32] = &[3];

/// POSIX_FADV_DONTNEED. Sandboxes share the files of an environment, and their pages in the kernel's cache. A sandbox
/// that could evict pages could pass information to the next one. The kernel may ignore this advice, so a filter may
/// too.
const EVICTING_ADVICE_FOR_FILES: &[u32] = &[4];

/// MADV_COLD and MADV_PAGEOUT, which also evict pages.
const EVICTING_ADVICE_FOR_MEMORY: &[u32] = &[20, 21];

/// RWF_NOWAIT, which reveals whether a page is in memory. File systems without support for it give the same error.
const NO_WAIT: &[u32] = &[8];

macro_rules! by_argument {
    ($($call:ident[$index:literal] $refused:expr => $error:expr,)*) => {
        /// All calls that are decided by an argument. None of them is on the lists of allowed and refused calls.
        pub const BY_ARGUMENT: &[ArgumentRule] = &[$(ArgumentRule {
            call: call(stringify!($call), Some(libc::$call)),
            index: $index,
            refused: $refused,
            error: $error,
        }),*];
    };
}

by_argument! {
    SYS_clone[0] Refused::AnyBit(&NEW_NAMESPACES) => EPERM,
    SYS_fadvise64[3] Refused::Values(EVICTING_ADVICE_FOR_FILES) => 0,
    SYS_fallocate[1] Refused::AllBut(PUNCHING_HOLES) => EOPNOTSUPP,
    SYS_ioctl[1] Refused::Values(TERMINAL_INPUT_AND_DISK_SPACE) => EPERM,
    SYS_madvise[2] Refused::Values(EVICTING_ADVICE_FOR_MEMORY) => 0,
    SYS_personality[0] Refused::AllBut(&PERSONALITIES) => EPERM,
    SYS_preadv2[5] Refused::AnyBit(NO_WAIT) => EOPNOTSUPP,
    SYS_socket[0] Refused::AllBut(&SOCKET_FAMILIES) => EPERM,
}

/// The set of numbers that equal `value` in the bits of `mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// Bits that are compared.
    pub mask: u32,
    /// Value of the compared bits.
    pub value: u32,
}

impl Masked {
    /// Returns the set that contains only this number.
    pub const fn exactly(value: u32) -> Masked {
        let mask = u32::MAX;
        Masked { mask, value }
    }
}

impl Refused {
    /// Returns the refused values and the allowed ones, for filters whose rules have one comparison per argument.
    pub fn as_masks(&self) -> (Vec<Masked>, Vec<Masked>) {
        let exactly = |values: &[u32]| values.iter().copied().map(Masked::exactly).collect();
        match self {
            Refused::Values(values) => (exactly(values), complement(values)),
            Refused::AllBut(values) => (complement(values), exactly(values)),
            Refused::AnyBit(bits) => {
                let set = |bit: &u32| Masked {
                    mask: *bit,
                    value: *bit,
                };
                let mask = bits.iter().fold(0, |all, bit| all | bit);
                (
                    bits.iter().map(set).collect(),
                    vec![Masked { mask, value: 0 }],
                )
            }
        }
    }
}

/// Returns all numbers except these: for each highest bit in which a number can differ from all of them, the numbers
/// that do.
fn complement(values: &[u32]) -> Vec<Masked> {
    let mut sets: Vec<Masked> = Vec::new();
    for value in values {
        for bit in (0..u32::BITS).rev() {
            let mask = u32::MAX << bit;
            let value = (value ^ (1 << bit)) & mask;
            let set = Masked { mask, value };
            let is_free = values.iter().all(|other| other & mask != value);
            if is_free && !sets.contains(&set) {
                sets.push(set);
            }
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(sets: &[Masked], number: u32) -> usize {
        let holds = |set: &&Masked| number & set.mask == set.value;
        sets.iter().filter(holds).count()
    }

    #[test]
    fn masks_partition_all_numbers() {
        for rule in BY_ARGUMENT {
            let (refused, allowed) = rule.refused.as_masks();
            let mut numbers: Vec<u32> = (0..70_000).collect();
            numbers.extend((0..u32::BITS).flat_map(|bit| [1 << bit, u32::MAX << bit]));
            for number in numbers {
                let is_refused = match rule.refused {
                    Refused::Values(values) => values.contains(&number),
                    Refused::AllBut(values) => !values.contains(&number),
                    Refused::AnyBit(bits) => bits.iter().any(|bit| number & bit != 0),
                };
                assert_eq!(holds(&refused, number) > 0, is_refused, "{rule:?} {number}");
                assert_eq!(
                    holds(&allowed, number) == 0,
                    is_refused,
                    "{rule:?} {number}"
                );
            }
        }
    }
}
