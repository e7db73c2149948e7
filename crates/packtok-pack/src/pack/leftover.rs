//! Journals of runs that were killed after publishing their output and before removing the journal.

use std::path::Path;

use packtok_jobs::journal::Journal;
use packtok_pbin::Writer;

use crate::error::Result;

/// Whether an earlier run published the output but was killed before it could report success. If
/// so, the same run has no work left.
pub(crate) fn has_published(output: &Path) -> bool {
    let folder = packtok_jobs::journal::folder_of(output);
    output.exists() && folder.is_dir() && !Writer::is_kept(&folder, output)
}

/// Removes the journal of a run that was killed after publishing the output.
pub(crate) fn remove_leftover(output: &Path) -> Result<()> {
    if has_published(output) {
        Journal::open(output, &mut || Ok(()))?.remove()?;
    }
    Ok(())
}
