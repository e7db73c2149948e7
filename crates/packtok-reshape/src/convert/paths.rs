//! The files of an output, by format.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use packtok_formats::datatrove::DatatrovePaths;
use packtok_formats::dolma::DolmaPaths;
use packtok_formats::megatron::{self, MegatronPaths};
use packtok_formats::{TokenFormat, llm_c, sidecar_ends_path};
use packtok_jobs::with_suffix;

/// The files that a conversion writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputPaths {
    /// The file of the tokens.
    pub(super) data: PathBuf,
    /// The files that describe them. They are published first: the tokens make the output complete.
    pub(super) others: Vec<PathBuf>,
    /// The one of them that has the loss mask, if the format has a file of its own for it. It is only
    /// written if there is a mask.
    pub(super) loss_mask: Option<PathBuf>,
    /// The file that [`TokenFile::open`](packtok_formats::TokenFile::open) takes. A linked pbin
    /// would open as a pbin.
    pub(super) to_open: PathBuf,
}

impl OutputPaths {
    /// The files of an output of this format that the caller names `output`: a file, or the name
    /// that several files share, with or without their ending.
    pub(super) fn new(format: TokenFormat, output: &Path) -> Self {
        let of_data = |data: PathBuf, others: Vec<PathBuf>| Self {
            to_open: data.clone(),
            data,
            others,
            loss_mask: None,
        };
        match format {
            TokenFormat::Pbin | TokenFormat::CepeNpy => of_data(output.to_owned(), Vec::new()),
            TokenFormat::Megatron => {
                let paths = MegatronPaths::of_prefix(&without(output, &["bin", "idx"]));
                Self {
                    data: paths.data,
                    to_open: paths.index.clone(),
                    others: vec![paths.index],
                    loss_mask: None,
                }
            }
            TokenFormat::Datatrove => {
                let prefix = without(output, &["ds"]);
                let paths = DatatrovePaths::of_data(&with_suffix(&prefix, ".ds"));
                Self {
                    loss_mask: Some(paths.loss.clone()),
                    ..of_data(paths.data, vec![paths.metadata, paths.index, paths.loss])
                }
            }
            TokenFormat::Dolma => {
                let paths = DolmaPaths::of_prefix(&without(output, &["npy"]));
                Self {
                    loss_mask: Some(paths.loss_mask.clone()),
                    ..of_data(paths.data, vec![paths.index, paths.loss_mask])
                }
            }
            TokenFormat::LlmC => {
                let data = with_suffix(&without(output, &["bin"]), ".bin");
                let others = vec![sidecar_ends_path(&data), llm_c::bos_index_path(&data)];
                of_data(data, others)
            }
            TokenFormat::Litdata => {
                let data = with_suffix(&without(output, &["bin"]), ".bin");
                of_data(data, Vec::new())
            }
            TokenFormat::Npy => {
                let data = with_suffix(&without(output, &["npy"]), ".npy");
                let ends = sidecar_ends_path(&data);
                of_data(data, vec![ends])
            }
            TokenFormat::Parquet => {
                let prefix = without(output, &["parquet"]);
                of_data(with_suffix(&prefix, ".parquet"), Vec::new())
            }
            TokenFormat::Mds => of_data(output.to_owned(), Vec::new()),
            TokenFormat::Raw | TokenFormat::Tatm | TokenFormat::Arrow => {
                let ends = sidecar_ends_path(output);
                of_data(output.to_owned(), vec![ends])
            }
        }
    }

    /// The file that keeps this output from being written: the tokens, or a file that no killed
    /// conversion can have left.
    pub(super) fn existing(&self) -> Option<&Path> {
        let exists = |path: &Path| path.symlink_metadata().is_ok();
        let is_foreign = |path: &&PathBuf| {
            let is_index = path.extension().is_some_and(|ending| ending == "idx");
            let is_megatron = self.to_open != self.data;
            exists(path) && is_index && is_megatron && !megatron::starts_with_magic(path)
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

/// The path without its extension, if that is one of `endings`.
pub(super) fn without(path: &Path, endings: &[&str]) -> PathBuf {
    let extension = path.extension().and_then(OsStr::to_str);
    if extension.is_some_and(|extension| endings.contains(&extension)) {
        path.with_extension("")
    } else {
        path.to_owned()
    }
}
