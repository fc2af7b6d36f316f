//! What the targets have in common.
#![allow(clippy::expect_used, clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

#[doc(hidden)]
#[cfg(feature = "libfuzzer")]
pub use libfuzzer_sys::fuzz_target;

use serde_json::Value;
use testwright_tools::tool::ToolSpec;

/// Parts of an input are divided by this byte, which no UTF-8 holds.
pub const DIVIDER: u8 = 0xff;

/// A folder of this process for inputs that are read from files, in `$TMPDIR`.
pub fn folder() -> &'static Path {
    static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = std::env::temp_dir().join(format!("fuzz-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for inputs");
        folder
    });
    &FOLDER
}

/// Writes a file into [`folder`].
pub fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = folder().join(name);
    std::fs::write(&path, content).expect("a file of inputs");
    path
}

/// The parts of an input, as text; the last is `None` where there are fewer.
pub fn texts<const N: usize>(data: &[u8]) -> [Option<String>; N] {
    let mut parts = data.splitn(N, |byte| *byte == DIVIDER);
    std::array::from_fn(|_| {
        parts
            .next()
            .map(|part| String::from_utf8_lossy(part).into_owned())
    })
}

/// The tools that a model is offered, without the words that only a model reads: to write those into a request takes longer than
/// to read most replies.
pub fn tools() -> &'static [ToolSpec] {
    static TOOLS: OnceLock<Vec<ToolSpec>> = OnceLock::new();
    TOOLS.get_or_init(|| {
        let offered = testwright_tools::registry::for_models();
        let mut specs: Vec<_> = offered.map(|tool| tool.spec()).collect();
        for spec in &mut specs {
            spec.description.clear();
            without_words(&mut spec.parameters);
        }
        specs
    })
}

fn without_words(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            // A parameter of that name is an object.
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(without_words);
        }
        Value::Array(items) => items.iter_mut().for_each(without_words),
        _ => {}
    }
}

/// One thread, for what is asynchronous.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    });
    RUNTIME.block_on(future)
}

/// Without it, a stack that is used up ends the process without a word, and the input is not kept.
pub fn prepare() {
    const SIZE: usize = 256 * 1024;
    extern "C" fn end(_: libc::c_int) {
        // SAFETY: may be called in a signal handler; libFuzzer's own handler keeps the input then.
        unsafe { libc::abort() }
    }
    let stack = Vec::leak(vec![0_u8; SIZE]);
    // SAFETY: the stack lives for ever, the handler is a function of the type that is asked for, and there is no other
    // thread yet.
    unsafe {
        let stack = libc::stack_t {
            ss_sp: stack.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: SIZE,
        };
        libc::sigaltstack(&stack, std::ptr::null_mut());
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = end as *const () as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
    }
}

/// Defines a fuzz target that may hold no more than `fixed + per_byte * (bytes of its input)` bytes at one time.
#[macro_export]
macro_rules! bounded_target {
    (fixed: $fixed:expr, per_byte: $per_byte:expr, |$data:ident: &[u8]| $body:expr) => {
        $crate::fuzz_target!(init: $crate::prepare(), |$data: &[u8]| {
            let max = $fixed + $per_byte * $data.len();
            $crate::within(max, || $body)
        });
    };
}

/// Counts the bytes that Rust code holds.
struct CountingAllocator;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn count(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the rules of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the rules of this call.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of this call.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are held while the content is copied.
        count(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the rules of this call.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The result of `work`, and the bytes that it held at one time, at most, in all threads together.
pub fn held_by<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    let held = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (result, held)
}

/// Panics if `work` holds more than `max` bytes at one time.
pub fn within<T>(max: usize, work: impl FnOnce() -> T) -> T {
    let (result, held) = held_by(work);
    assert!(held <= max, "{held} bytes were held, more than {max}");
    result
}
