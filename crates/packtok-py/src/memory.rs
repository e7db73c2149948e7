//! Giving memory back to the system.
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
