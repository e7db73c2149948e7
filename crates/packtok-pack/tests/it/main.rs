//! The tests of the crate's public interface, in one binary.

mod fixture;
mod pack;
mod resumed;
mod shards;

/// Returns the first value in the thorough run, otherwise the second, as `tests/support/extent.py` does.
fn extent<T>(all_of_it: T, some_of_it: T) -> T {
    match std::env::var_os("PACKTOK_THOROUGH") {
        Some(set) if set == "1" => all_of_it,
        _ => some_of_it,
    }
}
