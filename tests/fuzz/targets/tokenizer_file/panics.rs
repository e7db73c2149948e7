//! Catches panics silently: `tokenizers` refuses many files and texts that way.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    static MESSAGE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Keeps libFuzzer's panic hook, which aborts the process, from running inside [`catch`].
pub(crate) fn install_hook() {
    let aborting = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IS_CAUGHT.get() {
            MESSAGE.set(info.to_string())
        } else {
            aborting(info)
        }
    }));
}

/// The result of `call`, or the message of its panic.
pub(crate) fn catch<T>(call: impl FnOnce() -> T) -> Result<T, String> {
    IS_CAUGHT.set(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(call));
    IS_CAUGHT.set(false);
    outcome.map_err(|_| MESSAGE.take())
}
