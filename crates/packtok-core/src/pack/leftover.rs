//! What a run leaves that had published its output and was killed before it removed its notes.

use std::path::Path;

use packtok_pbin::Writer;

use crate::error::Result;
use crate::journal::Journal;

/// Whether a run has published the output and was killed before it could say so: the same run again is done.
pub(crate) fn has_published(output: &Path) -> bool {
    let folder = crate::journal::folder_of(output);
    output.exists() && folder.is_dir() && !Writer::is_kept(&folder)
}

/// Removes what a run left that was killed after it had published the output.
pub(crate) fn remove_leftover(output: &Path) -> Result<()> {
    if has_published(output) {
        Journal::open(output, &mut || Ok(()))?.remove()?;
    }
    Ok(())
}
