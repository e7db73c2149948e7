//! The files of an output, by format.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use packtok_formats::datatrove::DatatrovePaths;
use packtok_formats::megatron::{self, MegatronPaths};
use packtok_jobs::with_suffix;

use super::formats::TokenFormat;

/// The folder beside an output that holds what its format has no room for. Its name starts with a
/// dot, and no reader of the formats looks into folders.
pub(super) const SIDECAR_FOLDER: &str = ".packtok";

/// The files that a conversion writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputPaths {
    /// The file of the tokens.
    pub(super) data: PathBuf,
    /// The files that describe them. They are published first: the tokens make the output complete.
    pub(super) others: Vec<PathBuf>,
    /// The file that [`TokenFile::open`](packtok_formats::TokenFile::open) takes. A linked pbin
    /// would open as a pbin.
    pub(super) to_open: PathBuf,
}

impl OutputPaths {
    /// The files of an output of this format that the caller names `output`: a file, or the name
    /// that several files share, with or without their ending.
    pub(super) fn new(format: TokenFormat, output: &Path) -> Self {
        match format {
            TokenFormat::Pbin | TokenFormat::CepeNpy => Self {
                data: output.to_owned(),
                others: Vec::new(),
                to_open: output.to_owned(),
            },
            TokenFormat::Megatron => {
                let paths = MegatronPaths::of_prefix(&without(output, &["bin", "idx"]));
                Self {
                    data: paths.data,
                    to_open: paths.index.clone(),
                    others: vec![paths.index],
                }
            }
            TokenFormat::Datatrove => {
                let prefix = without(output, &["ds"]);
                let paths = DatatrovePaths::of_data(&with_suffix(&prefix, ".ds"));
                Self {
                    to_open: paths.data.clone(),
                    data: paths.data,
                    others: vec![paths.metadata, paths.index],
                }
            }
        }
    }

    /// The file that keeps this output from being written: the tokens, or a file that no killed
    /// conversion can have left.
    pub(super) fn existing(&self) -> Option<&Path> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let is_foreign = |path: &&PathBuf| {
            let is_index = path.extension().is_some_and(|ending| ending == "idx");
            exists(path) && is_index && !megatron::starts_with_magic(path)
        };
        let data = exists(&self.data).then_some(self.data.as_path());
        data.or_else(|| self.others.iter().find(is_foreign).map(PathBuf::as_path))
    }

    /// All files.
    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        let others = self.others.iter();
        others.chain([&self.data]).map(PathBuf::as_path)
    }
}

/// The path of a file in the sidecar folder of the token file `data`: its name without the format's
/// ending, and `ending`.
pub(super) fn sidecar_path(data: &Path, ending: &str) -> PathBuf {
    let prefix = without(data, &["bin", "idx", "ds"]);
    let name = prefix.file_name().unwrap_or_default();
    let name = with_suffix(Path::new(name), ending);
    prefix.with_file_name(SIDECAR_FOLDER).join(name)
}

/// The path without its extension, if that is one of `endings`.
pub(super) fn without(path: &Path, endings: &[&str]) -> PathBuf {
    let extension = path.extension().and_then(OsStr::to_str);
    if extension.is_some_and(|extension| endings.contains(&extension)) {
        path.with_extension("")
    } else {
        path.to_owned()
    }
}
