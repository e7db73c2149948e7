//! Memory taken from the system in large pages, and given back to it.
#![allow(unsafe_code)]

/// Gives back what loading a tokenizer has left free: parsing its file takes more than keeping it does. The
/// threads that pack have heaps of their own, so that they would not use it again.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: takes no pointer, and what is allocated stays as it is.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Ids from which on their memory is in huge pages: fewer fit into the pages that the allocator has at hand.
const HUGE_FROM_IDS: usize = 1 << 20;

/// Room for as many ids, in huge pages where there are any; none if that is more than the system gives.
///
/// The kernel hands out 4 KiB at a time otherwise, which takes a good part of the time that ids of megabytes of text
/// take. What is not written to takes no memory.
pub(crate) fn room_for_ids(num_ids: usize) -> Vec<u32> {
    let mut ids = Vec::new();
    if ids.try_reserve_exact(num_ids).is_err() {
        return Vec::new();
    }
    #[cfg(target_os = "linux")]
    if num_ids >= HUGE_FROM_IDS {
        let page_bytes = 4096;
        let start = ids.as_mut_ptr() as usize;
        let first_page = start.next_multiple_of(page_bytes);
        let stop = start + size_of_val(ids.spare_capacity_mut());
        // SAFETY: the pages lie within the allocation, and the advice changes none of their content. Where the kernel
        // refuses it, the pages are small.
        unsafe {
            let pages = first_page as *mut libc::c_void;
            libc::madvise(pages, stop - first_page, libc::MADV_HUGEPAGE);
        }
    }
    ids
}

/// `ids` without the memory that they do not use, if that is much.
pub(crate) fn without_room(mut ids: Vec<u32>) -> Vec<u32> {
    if ids.capacity() > ids.len() + ids.len() / 4 {
        // A large allocation is cut in place.
        ids.shrink_to_fit();
    }
    ids
}
