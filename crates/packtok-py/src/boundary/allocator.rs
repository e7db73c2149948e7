//! The allocator of the compiled module: the system's allocator, except that a failed allocation
//! ends the process with one line.
//!
//! The standard library would abort. With `RUST_BACKTRACE`, it first prints a backtrace, for which
//! it needs memory while it holds locks, so that the process may never end. No error can be
//! returned instead: most code cannot continue without the memory that it requests.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use packtok_jobs::limits::MemoryLimit;

#[global_allocator]
static ALLOCATOR: Reporting = Reporting;

struct Reporting;

thread_local! {
    static IS_REFUSAL_AN_ERROR: Cell<bool> = const { Cell::new(false) };
}

/// Calls `reserve`, which handles a refusal of memory itself, as `try_reserve` does.
pub(crate) fn fallible<T>(reserve: impl FnOnce() -> T) -> T {
    let before = IS_REFUSAL_AN_ERROR.replace(true);
    let result = reserve();
    IS_REFUSAL_AN_ERROR.set(before);
    result
}

// SAFETY: all calls are passed on to the system's allocator, and nothing here unwinds.
unsafe impl GlobalAlloc for Reporting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc`.
        granted(unsafe { System.alloc(layout) }, layout.size())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `alloc_zeroed`.
        granted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, num_bytes: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract of `realloc`.
        granted(
            unsafe { System.realloc(memory, layout, num_bytes) },
            num_bytes,
        )
    }
}

#[inline]
fn granted(memory: *mut u8, num_bytes: usize) -> *mut u8 {
    if memory.is_null() && !IS_REFUSAL_AN_ERROR.get() {
        end_process(num_bytes);
    }
    memory
}

/// Writes one line to stderr and ends the process as if it was killed, so that a repeated run
/// resumes.
#[cold]
fn end_process(num_bytes: usize) -> ! {
    static IS_ENDING: AtomicBool = AtomicBool::new(false);
    let mut line = [0; 400];
    let mut rest = &mut line[..];
    // Formatting numbers into a buffer needs no memory.
    let _ = writeln!(
        rest,
        "packtok: out of memory: the system refused {num_bytes} bytes; {MemoryLimit}"
    );
    let rest_bytes = rest.len();
    let written = line.len() - rest_bytes;
    // SAFETY: the pointer and the length are those of initialized bytes; ending needs nothing.
    unsafe {
        // If several threads fail, one reports the failure and the others wait for the end of the
        // process.
        while IS_ENDING.swap(true, Ordering::Relaxed) {
            libc::pause();
        }
        libc::write(2, line.as_ptr().cast(), written);
        libc::_exit(1)
    }
}
