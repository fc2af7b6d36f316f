//! Shared code of the fuzz targets.
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

/// Divider between the parts of an input. This byte never occurs in UTF-8.
pub const DIVIDER: u8 = 0xff;

/// Returns a folder of this process in `$TMPDIR`, for inputs that are read from files.
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

/// Returns the parts of an input as text; missing parts are `None`.
pub fn texts<const N: usize>(data: &[u8]) -> [Option<String>; N] {
    let mut parts = data.splitn(N, |byte| *byte == DIVIDER);
    std::array::from_fn(|_| {
        parts
            .next()
            .map(|part| String::from_utf8_lossy(part).into_owned())
    })
}

/// Returns the tools offered to a model, without descriptions, which would take longer to write into a request than
/// most replies take to read.
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
            // A parameter named `description` is an object, not a string.
            fields.retain(|name, value| name != "description" || !value.is_string());
            fields.values_mut().for_each(without_words);
        }
        Value::Array(items) => items.iter_mut().for_each(without_words),
        _ => {}
    }
}

/// Runs a future on a single-threaded runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(|| {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().expect("a runtime")
    });
    RUNTIME.block_on(future)
}

/// Installs a handler for stack overflows. Without it, an overflow ends the process silently and the input is lost.
pub fn handle_stack_overflow() {
    const SIZE: usize = 256 * 1024;
    extern "C" fn end(_: libc::c_int) {
        // SAFETY: abort() may be called in a signal handler. libFuzzer's handler then saves the input.
        unsafe { libc::abort() }
    }
    let stack = Vec::leak(vec![0_u8; SIZE]);
    // SAFETY: the stack is never freed, the handler has the required type, and there is no other thread yet.
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

/// Defines a fuzz target that may allocate at most `fixed + per_byte * (bytes of its input)` bytes at a time.
#[macro_export]
macro_rules! bounded_target {
    (fixed: $fixed:expr, per_byte: $per_byte:expr, |$data:ident: &[u8]| $body:expr) => {
        $crate::fuzz_target!(init: $crate::handle_stack_overflow(), |$data: &[u8]| {
            let max = $fixed + $per_byte * $data.len();
            $crate::assert_allocation(max, || $body)
        });
    };
}

/// An allocator that counts the allocated bytes.
struct CountingAllocator;

static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

fn count(bytes: usize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call is passed unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the contract of this call.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of this call.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both blocks exist while the content is copied.
        count(size);
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of this call.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// Returns the result of `work` and its peak allocation in bytes, in all threads together.
pub fn peak_allocation<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.load(Ordering::Relaxed);
    PEAK.store(before, Ordering::Relaxed);
    let result = work();
    let held = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    (result, held)
}

/// Panics if the peak allocation of `work` exceeds `max` bytes.
pub fn assert_allocation<T>(max: usize, work: impl FnOnce() -> T) -> T {
    let (result, held) = peak_allocation(work);
    assert!(held <= max, "{held} bytes were allocated, more than {max}");
    result
}
