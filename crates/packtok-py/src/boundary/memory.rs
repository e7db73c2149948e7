//! Allocation of large buffers in huge pages, and release of unused memory.
#![allow(unsafe_code)]

use crate::boundary::allocator::fallible;

/// Returns unused memory to the system after a tokenizer was loaded, because parsing its file
/// needs more memory than the result. The packing threads have their own arenas and would not
/// reuse it.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call takes no pointer and does not affect allocated memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Minimum number of ids for huge pages: smaller buffers fit in pages that the allocator already
/// has.
const HUGE_FROM_IDS: usize = 1 << 20;

/// An empty buffer with capacity for this many ids, in huge pages if available. Has no capacity if
/// the system cannot provide the memory.
///
/// Without huge pages, the kernel allocates pages of 4 KiB one by one, which takes a good part of
/// the time of encoding megabytes of text. Memory that is not written to is never allocated.
pub(crate) fn room_for_ids(num_ids: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    if fallible(|| ids.try_reserve_exact(num_ids)).is_err() {
        return Vec::new();
    }
    #[cfg(target_os = "linux")]
    if num_ids >= HUGE_FROM_IDS {
        let page_bytes = 4096;
        let start = ids.as_mut_ptr() as usize;
        let first_page = start.next_multiple_of(page_bytes);
        let stop = start + size_of_val(ids.spare_capacity_mut());
        // SAFETY: the pages are within the allocation, and the advice does not change their
        // content. If the kernel rejects it, normal pages are used.
        unsafe {
            let pages = first_page as *mut libc::c_void;
            libc::madvise(pages, stop - first_page, libc::MADV_HUGEPAGE);
        }
    }
    ids
}

/// `ids` without its excess capacity, if that is large.
pub(crate) fn without_room(mut ids: Vec<u32>) -> Vec<u32> {
    if ids.capacity() > ids.len() + ids.len() / 4 {
        // A large allocation is shrunk in place.
        ids.shrink_to_fit();
    }
    ids
}
