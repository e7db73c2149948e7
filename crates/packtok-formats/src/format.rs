//! The table of token formats.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A format of token files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TokenFormat {
    /// packtok's own.
    #[default]
    Pbin,
    /// An NPY array of documents, as CEPE's scripts save it; see [`crate::npy`].
    CepeNpy,
    /// See [`crate::megatron`].
    Megatron,
    /// See [`crate::datatrove`].
    Datatrove,
    /// See [`crate::dolma`].
    Dolma,
    /// See [`crate::llm_c`].
    LlmC,
    /// See [`crate::litdata`].
    Litdata,
    /// A shard of samples with ids; see [`crate::mds`].
    Mds,
    /// An NPY array that has only tokens; see [`crate::npy`].
    Npy,
    /// Tokens without a header; see [`crate::raw`].
    Raw,
    /// The same with padding, which is only read: a file of tatm.
    Tatm,
    /// A Parquet file whose rows are documents; see `parquet_rows`.
    Parquet,
    /// The same of Arrow, which is only read; see `arrow_rows`.
    Arrow,
}

/// All formats: each with the name that the user gives, and the name in manifests, in the order of
/// the enum.
const FORMATS: [(TokenFormat, &str, &str); 13] = [
    (TokenFormat::Pbin, "pbin", "pbin"),
    // Manifests had this name for it before there was another format of NPY arrays.
    (TokenFormat::CepeNpy, "cepe-npy", "npy"),
    (TokenFormat::Megatron, "megatron", "megatron"),
    (TokenFormat::Datatrove, "datatrove", "datatrove"),
    (TokenFormat::Dolma, "dolma", "dolma"),
    (TokenFormat::LlmC, "llm-c", "llm-c"),
    (TokenFormat::Litdata, "litdata", "litdata"),
    (TokenFormat::Mds, "mds", "mds"),
    (TokenFormat::Npy, "npy", "numpy"),
    (TokenFormat::Raw, "raw", "raw"),
    (TokenFormat::Tatm, "tatm", "tatm"),
    (TokenFormat::Parquet, "parquet", "parquet"),
    (TokenFormat::Arrow, "arrow", "arrow"),
];

impl TokenFormat {
    /// The names of all formats that the user gives.
    pub const NAMES: [&str; FORMATS.len()] = {
        let mut names = [""; FORMATS.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = FORMATS[i].1;
            i += 1;
        }
        names
    };

    /// The format of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut formats = FORMATS.into_iter();
        formats
            .find(|(_, known, _)| *known == name)
            .map(|(format, ..)| format)
    }

    /// The name that the user gives.
    pub fn name(self) -> &'static str {
        FORMATS[self as usize].1
    }

    /// The name in manifests.
    pub fn manifest_name(self) -> &'static str {
        FORMATS[self as usize].2
    }

    /// Whether packtok writes token files of the format, and does not only read them.
    pub fn is_written(self) -> bool {
        !matches!(self, Self::Tatm | Self::Arrow)
    }

    /// Whether files of the format can record which tokens count in the loss.
    pub fn records_loss_masks(self) -> bool {
        match self {
            Self::Pbin | Self::Datatrove | Self::Dolma | Self::Parquet | Self::Arrow => true,
            Self::CepeNpy
            | Self::Megatron
            | Self::Litdata
            | Self::LlmC
            | Self::Mds
            | Self::Npy
            | Self::Raw
            | Self::Tatm => false,
        }
    }

    /// Whether files of the format record where documents start, always and by themselves.
    pub fn records_documents(self) -> bool {
        match self {
            Self::Pbin
            | Self::CepeNpy
            | Self::Megatron
            | Self::Datatrove
            | Self::Dolma
            | Self::Litdata
            | Self::Mds
            | Self::Parquet
            | Self::Arrow => true,
            Self::LlmC | Self::Npy | Self::Raw | Self::Tatm => false,
        }
    }
}

/// As in manifests.
impl Serialize for TokenFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.manifest_name())
    }
}

impl<'de> Deserialize<'de> for TokenFormat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let mut formats = FORMATS.into_iter();
        let format = formats.find(|(.., known)| *known == name);
        format.map(|(format, ..)| format).ok_or_else(|| {
            let names = FORMATS.map(|(.., name)| name).join(", ");
            de::Error::custom(format_args!("format is {name:?}; expected one of {names}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_enum() {
        for (i, (format, name, manifest_name)) in FORMATS.into_iter().enumerate() {
            assert_eq!(format as usize, i);
            assert_eq!(TokenFormat::of_name(name), Some(format));
            let json = serde_json::to_string(&format).unwrap();
            assert_eq!(json, format!("{manifest_name:?}"));
            assert_eq!(serde_json::from_str::<TokenFormat>(&json).unwrap(), format);
        }
        let error = serde_json::from_str::<TokenFormat>("\"x\"").unwrap_err();
        assert!(
            error
                .to_string()
                .contains("format is \"x\"; expected one of pbin, npy,")
        );
    }
}
