//! Maps all Rust errors to Python exceptions.
//!
//! Errors of packtok derive from `PacktokError`; errors of system calls become the `OSError`
//! subclass with errno and file name; invalid arguments are `ValueError`, positions out of range
//! `IndexError`. The matches have no `_` arm, so that the compiler requires a mapping for every new
//! variant.

use std::io;
use std::path::Path;

use packtok_corpus::Error as CorpusError;
use packtok_dataset::Error as DatasetError;
use packtok_formats::Error as FormatsError;
use packtok_jobs::Error as JobsError;
use packtok_jobs::limits::{MemoryLimit, ThreadLimits};
use packtok_pack::{chain, pbin::Error as PbinError};
use packtok_reshape::Error as ReshapeError;
use packtok_store::Error as StoreError;
use packtok_stream::Error as StreamError;
use packtok_tokenizer::{EncodeError, LoadError};
use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyFileExistsError, PyFileNotFoundError, PyIndexError, PyKeyboardInterrupt,
    PyMemoryError, PyOSError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyType};

create_exception!(
    packtok,
    PacktokError,
    PyException,
    "What packtok itself finds wrong."
);
create_exception!(
    packtok,
    PbinFormatError,
    PacktokError,
    "A pbin or raw index that is damaged or is none."
);

/// `packtok.DocumentError`, a `PacktokError` and a `ValueError`, because Modalities raises a
/// `ValueError` for such documents. `create_exception!` accepts only one base.
pub(crate) struct DocumentError;

impl DocumentError {
    fn new_err(message: String) -> PyErr {
        Python::attach(|py| match Self::class(py) {
            Ok(class) => PyErr::from_type(class.clone(), message),
            Err(error) => error,
        })
    }

    pub(crate) fn class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
        static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let class = CLASS.get_or_try_init(py, || {
            let bases = (py.get_type::<PacktokError>(), py.get_type::<PyValueError>());
            let content = [
                ("__module__", "packtok"),
                ("__doc__", "A line of the corpus that cannot be packed."),
            ];
            let class = py.get_type::<PyType>().call1((
                "DocumentError",
                bases,
                content.into_py_dict(py)?,
            ))?;
            Ok::<_, PyErr>(class.cast_into::<PyType>()?.unbind())
        })?;
        Ok(class.bind(py))
    }
}

create_exception!(
    packtok,
    TokenizerError,
    PacktokError,
    "A tokenizer that cannot be loaded or used."
);

/// The message about an existing output, the same for all commands.
pub(crate) const OUTPUT_EXISTS: &str = "the output already exists; choose another path, or set --existing (existing in a config) to skip or replace";

/// `ENOENT` and `EEXIST` on every Unix.
const ENOENT: i32 = 2;
const EEXIST: i32 = 17;

/// The `OSError` subclass for a system error about `path`.
fn os_error(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        // With three arguments, OSError selects the subclass and keeps errno and file name.
        Some(errno) => {
            let text = error.to_string();
            let message = text.split(" (os error").next().unwrap_or(&text);
            PyOSError::new_err((errno, message.to_owned(), path.as_os_str().to_owned()))
        }
        None => PyOSError::new_err(format!("{}: {error}", path.display())),
    }
}

/// As [`os_error`], with the line of the list that names the file.
fn listed_error(error: &CorpusError, path: &Path, source: &io::Error) -> PyErr {
    match source.raw_os_error() {
        Some(errno) => PyOSError::new_err((errno, error.to_string(), path.as_os_str().to_owned())),
        None => PyOSError::new_err(chain(error)),
    }
}

fn file_exists(path: &Path, remedy: &'static str) -> PyErr {
    PyFileExistsError::new_err((EEXIST, remedy, path.as_os_str().to_owned()))
}

/// Maps an error of the file format.
pub(crate) fn pbin_error(error: PbinError) -> PyErr {
    use PbinError as E;
    match &error {
        E::Io { path, source } => os_error(path, source),
        E::Exists { path } => file_exists(path, OUTPUT_EXISTS),
        E::Cancelled => PyKeyboardInterrupt::new_err(()),
        E::NoSuchDocument { .. } | E::NoSuchTokens { .. } => PyIndexError::new_err(chain(&error)),
        E::NoFileName { .. }
        | E::NotAFile { .. }
        | E::NoParts { .. }
        | E::PartIsOutput { .. }
        | E::AppendedBytes { .. }
        | E::AppendedTokens { .. }
        | E::MetadataTooLarge { .. } => PyValueError::new_err(chain(&error)),
        E::PartWidth { .. }
        | E::PartTokenizerUnknown { .. }
        | E::PartDiffers { .. }
        | E::SourceScattered { .. }
        | E::DeclaredTokenizerDiffers { .. } => PacktokError::new_err(chain(&error)),
        E::TooShort { .. }
        | E::TokenWidth { .. }
        | E::PartialToken { .. }
        | E::DataTruncated { .. }
        | E::Pickle { .. }
        | E::BytesAfterIndex { .. }
        | E::DocumentStart { .. }
        | E::DocumentsEnd { .. }
        | E::DamagedOrigin { .. }
        | E::DocumentSpan { .. }
        | E::Trailer { .. }
        | E::Json { .. }
        | E::Checksum { .. }
        | E::IndexDisagrees { .. }
        | E::IndexBytes { .. }
        | E::Count { .. } => PbinFormatError::new_err(chain(&error)),
    }
}

/// Maps an error of the tokenizer.
pub(crate) fn tokenizer_error(error: packtok_tokenizer::Error) -> PyErr {
    use packtok_tokenizer::Error as E;
    match &error {
        E::Load(LoadError::Io { path, source }) => os_error(path, source),
        E::Load(LoadError::UnknownBuiltin { .. })
        | E::Encode(
            EncodeError::TruncationTooShort { .. }
            | EncodeError::NotFast { .. }
            | EncodeError::WideIds { .. }
            | EncodeError::NotACharacter { .. },
        ) => PyValueError::new_err(chain(&error)),
        E::Load(
            LoadError::NotUtf8 { .. }
            | LoadError::NotJson { .. }
            | LoadError::Shape { .. }
            | LoadError::Dropout { .. }
            | LoadError::Unloadable { .. }
            | LoadError::Disagreement { .. }
            | LoadError::SameAddedTokens { .. }
            | LoadError::EmptyAddedToken { .. }
            | LoadError::Ranks { .. }
            | LoadError::SentencePiece { .. }
            | LoadError::StripsInModel { .. }
            | LoadError::Tekken { .. },
        )
        | E::Encode(EncodeError::Excess { .. })
        | E::Decode { .. } => TokenizerError::new_err(chain(&error)),
        E::Encode(EncodeError::OutOfMemory { .. }) => {
            PyMemoryError::new_err(format!("{}; {MemoryLimit}", chain(&error)))
        }
        E::Encode(EncodeError::SpecialTokenInText { .. } | EncodeError::Engine { .. }) => {
            DocumentError::new_err(chain(&error))
        }
    }
}

/// Maps an error of items and batches.
pub(crate) fn dataset_error(error: DatasetError) -> PyErr {
    use DatasetError as E;
    match error {
        E::Pbin(error) => pbin_error(error),
        E::Io { path, source } => os_error(&path, &source),
        E::Formats(error) => formats_error(*error),
        E::Store(error) => store_error(&error),
        E::Tokenizer(error) => tokenizer_error(error),
        E::Jobs(error) => jobs_error(error),
        E::NoWritableFolder { .. } => PyOSError::new_err(chain(&error)),
        E::NoSuchItem { .. } | E::NoSuchBlock { .. } => PyIndexError::new_err(chain(&error)),
        E::ManifestLine { .. } | E::ImpossibleEntry { .. } | E::TooMany { .. } => {
            PbinFormatError::new_err(chain(&error))
        }
        E::NoFiles
        | E::NoTokenizer
        | E::Pattern { .. }
        | E::PathNotUtf8 { .. }
        | E::NoChecksums { .. }
        | E::LossColumn { .. }
        | E::CacheBytes { .. }
        | E::BlockTooSmall { .. }
        | E::Overlap { .. }
        | E::TooFewTokens { .. }
        | E::TooFewTokensForRow { .. }
        | E::IdTooLarge { .. }
        | E::BatchTooLong { .. }
        | E::ByFileOfSplit
        | E::NoRows
        | E::RowsDiffer { .. }
        | E::MixtureWithoutSources
        | E::MixtureWeightZero { .. }
        | E::MixtureWeightsTooLarge { .. }
        | E::BlockTokens { .. }
        | E::NoSuchSplit { .. }
        | E::SplitOfSplit
        | E::Fraction { .. }
        | E::TooFewDocuments { .. } => PyValueError::new_err(chain(&error)),
        E::WidthDiffers { .. }
        | E::CacheFull { .. }
        | E::FileReplaced { .. }
        | E::ManifestReplaced { .. }
        | E::PlanTokens { .. }
        | E::SplitDisagrees { .. }
        | E::PlanFile { .. } => PacktokError::new_err(chain(&error)),
    }
}

/// Maps an error of a token file of any format, or of a folder of samples.
pub(crate) fn formats_error(error: FormatsError) -> PyErr {
    use FormatsError as E;
    match error {
        E::Io { path, source } => os_error(&path, &source),
        E::Pbin(error) => pbin_error(error),
        E::NarrowedCopy { .. } | E::TemporaryIndex { .. } => PyOSError::new_err(chain(&error)),
        E::NoSuchTokens { .. } | E::NoSuchDocument { .. } | E::NoSuchMdsSample { .. } => {
            PyIndexError::new_err(chain(&error))
        }
        E::NpyDoesNotFit { .. }
        | E::MegatronDocumentTooLong { .. }
        | E::LlmCTooLong { .. }
        | E::LitdataChunkTooLarge { .. }
        | E::OtherFormat { .. }
        | E::OtherDtype { .. }
        | E::DtypeOfNoIds { .. }
        | E::UnknownDtype { .. }
        | E::BoundariesAreRecorded { .. }
        | E::MdsSizeLimit { .. }
        | E::MdsUnknownHash { .. }
        | E::MdsUnknownCompression { .. }
        | E::MdsNoColumns
        | E::MdsNumValues { .. }
        | E::MdsValue { .. }
        | E::MdsNoHash { .. }
        | E::MdsSampleTooLarge { .. } => PyValueError::new_err(chain(&error)),
        E::MdsEncoding { .. } | E::MdsCodec { .. } | E::MdsFormat { .. } | E::MdsVersion { .. } => {
            PacktokError::new_err(chain(&error))
        }
        E::RawPartialToken { .. }
        | E::NoSuchRawTokens { .. }
        | E::Fault(_)
        | E::DataLength { .. }
        | E::MaskLength { .. }
        | E::NoKnownFormat { .. }
        | E::NoSuchRawDocument { .. }
        | E::TableRows { .. }
        | E::RowId { .. }
        | E::LitdataIndex { .. }
        | E::MdsTokens { .. }
        | E::NotNpy { .. }
        | E::NpyIsPickle { .. }
        | E::NpyVersion { .. }
        | E::NpyHeaderTruncated { .. }
        | E::NpyHeaderText { .. }
        | E::NpyObjectArray { .. }
        | E::NpyStructured { .. }
        | E::NpyElementType { .. }
        | E::NpyTooNarrow { .. }
        | E::NpyFloat { .. }
        | E::NpyFortranOrder { .. }
        | E::NpyDimensions { .. }
        | E::NpyFileLength { .. }
        | E::NpyMisaligned { .. }
        | E::NpyNumDocuments { .. }
        | E::NpyDocumentLength { .. }
        | E::NpyLengths { .. }
        | E::NpyId { .. }
        | E::MdsJson { .. }
        | E::MdsJsonTooLarge { .. }
        | E::MdsColumnLists { .. }
        | E::MdsColumnSize { .. }
        | E::MdsBasename { .. }
        | E::MdsCompressedFile { .. }
        | E::MdsTooManySamples { .. }
        | E::MdsFileBytes { .. }
        | E::MdsNumSamples { .. }
        | E::MdsTooShort { .. }
        | E::MdsPosition { .. }
        | E::MdsSample { .. }
        | E::MdsHashDiffers { .. }
        | E::MdsDamagedCompression { .. }
        | E::MdsDecompressedBytes { .. } => PbinFormatError::new_err(chain(&error)),
    }
}

/// Maps an error of reshaping token files.
pub(crate) fn reshape_error(error: ReshapeError) -> PyErr {
    use ReshapeError as E;
    match error {
        E::Io { path, source } => os_error(&path, &source),
        E::Pack(error) => pack_error(*error),
        E::Dataset(error) => dataset_error(*error),
        E::Pbin(error) => pbin_error(error),
        E::Formats(error) => formats_error(*error),
        E::ImportExists { path } => {
            file_exists(&path, "the output already exists; choose another folder")
        }
        E::SamplesExist { .. } | E::OtherShard { .. } => PyFileExistsError::new_err(chain(&error)),
        E::ListedMissing { .. } => PyFileNotFoundError::new_err(chain(&error)),
        E::NoChunks
        | E::NoSuchChunk { .. }
        | E::EmptyChunk { .. }
        | E::NotAFile { .. }
        | E::OptionOutOfRange { .. }
        | E::NoSuchRetrievalShard { .. }
        | E::NoSuchPart { .. }
        | E::DomainWithoutFiles { .. }
        | E::NoTokenizer
        | E::NoMdsFolders { .. }
        | E::OutputWithinInput { .. }
        | E::ImportedIdTooLarge { .. }
        | E::OutputIsInput { .. }
        | E::UnknownEntry { .. }
        | E::NoSuchDocument { .. }
        | E::NoTokenizerForHashes
        | E::DtypeContradicted { .. }
        | E::OtherMeaning { .. }
        | E::SeveralInputs { .. }
        | E::NotLinkable { .. }
        | E::OnlyRead { .. }
        | E::Lost { .. }
        | E::EmptyDocument { .. }
        | E::SameNpyName { .. }
        | E::NotBelowRoot { .. }
        | E::NameNotUtf8 { .. } => PyValueError::new_err(chain(&error)),
        E::ExistingBytesDiffer { .. }
        | E::TooManyDocuments { .. }
        | E::ListedNoFile { .. }
        | E::ListNotUtf8 { .. }
        | E::ListEmpty { .. }
        | E::Compressed { .. }
        | E::InputChanged { .. }
        | E::Unprovable { .. }
        | E::TooFewSamples { .. }
        | E::SamplesOfOtherPlan { .. }
        | E::PartsMissing { .. }
        | E::PartVanished { .. }
        | E::PartDamaged { .. }
        | E::TokenFileChanged { .. }
        | E::IdTooLarge { .. }
        | E::Undecodable { .. }
        | E::OutputBusy { .. }
        | E::UnsupportedPickle { .. }
        | E::KindDiffers { .. }
        | E::RowOfManyDimensions { .. }
        | E::EmptyValue { .. }
        | E::ColumnExists { .. }
        | E::ExistingDocumentDiffers { .. }
        | E::ExistingDtype { .. }
        | E::PartMissing { .. }
        | E::OtherPart { .. }
        | E::TokenizerDiffers { .. }
        | E::TokenizerDoesNotFit { .. }
        | E::NoOrigins { .. }
        | E::NotPacked { .. }
        | E::ExistingNpyDiffers { .. }
        | E::RemovedDocumentLeft { .. }
        | E::DamagedRejects { .. } => PacktokError::new_err(chain(&error)),
        E::IdBeyondVocab { .. }
        | E::IdBeyondType { .. }
        | E::RestDiffers { .. }
        | E::DamagedMarker { .. } => PbinFormatError::new_err(chain(&error)),
    }
}

/// Maps an error of packing, merging and verifying.
pub(crate) fn pack_error(error: packtok_pack::Error) -> PyErr {
    use packtok_pack::Error as E;
    match error {
        E::Io { path, source } => os_error(&path, &source),
        E::Store(error) => store_error(&error),
        E::Pbin(error) => pbin_error(error),
        E::Tokenizer(error) => tokenizer_error(error),
        E::Kept { source } => pack_error(*source),
        E::Corpus(error) => corpus_error(error),
        E::Jobs(error) => jobs_error(error),
        E::Formats(error) => formats_error(*error),
        E::Cancelled => PyKeyboardInterrupt::new_err(()),
        E::OutputExists { path } => file_exists(&path, OUTPUT_EXISTS),
        E::BadDocument { .. } => DocumentError::new_err(chain(&error)),
        E::TextItem { ref source, .. } => match **source {
            packtok_tokenizer::Error::Encode(
                EncodeError::Engine { .. } | EncodeError::SpecialTokenInText { .. },
            ) => DocumentError::new_err(chain(&error)),
            packtok_tokenizer::Error::Encode(EncodeError::NotACharacter { .. }) => {
                PyValueError::new_err(chain(&error))
            }
            _ => TokenizerError::new_err(chain(&error)),
        },
        E::NotForShards { .. }
        | E::NoPlan { .. }
        | E::PathNotUtf8 { .. }
        | E::ThroughLink { .. }
        | E::SourceInOutput { .. }
        | E::NoEodToken
        | E::InputFields { .. }
        | E::PaddingTooLong { .. }
        | E::PaddingId { .. }
        | E::NotOneToken { .. }
        | E::WidthTooNarrow { .. }
        | E::OutputNotAFile { .. }
        | E::OutputIsInput { .. }
        | E::IndexForMany { .. }
        | E::NoSuchId { .. }
        | E::OffsetsFall { .. }
        | E::OffsetsBeyond { .. } => PyValueError::new_err(chain(&error)),
        E::JournalOfPacking { .. }
        | E::NothingPlanned { .. }
        | E::PlanDiffers { .. }
        | E::PlanLine { .. }
        | E::PlanDamaged { .. }
        | E::SourceNotAsPlanned { .. }
        | E::ShardTokenizerDiffers { .. }
        | E::DamagedMarker { .. }
        | E::PartDiffers { .. }
        | E::ShardsMissing { .. }
        | E::SourceNotCovered { .. }
        | E::RejectLine { .. }
        | E::TooManyRejects { .. }
        | E::JournalDiffers { .. }
        | E::ExistingUnknown { .. }
        | E::ExistingDiffers { .. }
        | E::NothingIndexed { .. }
        | E::TextItemPanicked { .. }
        | E::EnginesDiffer(..)
        | E::WidthDiffers { .. }
        | E::DocumentDiffers { .. }
        | E::CorpusLonger { .. }
        | E::CorpusShorter { .. }
        | E::NoOrigins { .. }
        | E::OriginsUnordered { .. }
        | E::OriginsOfPlugin { .. }
        | E::SourceOutside { .. }
        | E::SourceLength { .. }
        | E::NoRecord { .. }
        | E::RecordDiffers { .. }
        | E::IdBeyondVocab { .. }
        | E::NoEodAtEnd { .. }
        | E::TokenizerDiffers { .. } => PacktokError::new_err(chain(&error)),
    }
}

/// Maps an error of a stream.
pub(crate) fn stream_error(error: StreamError) -> PyErr {
    use StreamError as E;
    match error {
        E::Corpus(error) => corpus_error(error),
        E::Pbin(error) => pbin_error(error),
        E::Dataset(error) => dataset_error(*error),
        E::Tokenizer(error) => tokenizer_error(error),
        E::Jobs(error) => jobs_error(error),
        E::DamagedState
        | E::Spec(_)
        | E::StepInputs { .. }
        | E::Weights { .. }
        | E::AfterDistribute { .. }
        | E::DropsAfterDistribute { .. }
        | E::ParallelAfterDistribute
        | E::CacheAfterDistribute
        | E::DividedAlready
        | E::AfterOutputs { .. }
        | E::EndlessCache
        | E::BatchSizes
        | E::UnevenBatch { .. }
        | E::LaneMissing { .. }
        | E::RowsOfRanks { .. }
        | E::EmptyLane { .. }
        | E::NoTokens { .. }
        | E::UnfitColumn { .. }
        | E::NoText { .. }
        | E::UnequalColumns { .. }
        | E::TooLong { .. }
        | E::NoRawIndex { .. }
        | E::OtherFile { .. }
        | E::StaleRawIndex { .. }
        | E::LossMask { .. }
        | E::NoRow
        | E::EndsOfRow
        | E::EmptyEpoch => PyValueError::new_err(chain(&error)),
        E::BadDocument { .. } => DocumentError::new_err(chain(&error)),
        E::Panicked | E::Caller { .. } | E::Failed(_) => PacktokError::new_err(chain(&error)),
    }
}

/// Maps an error of finding and reading corpora.
pub(crate) fn corpus_error(error: CorpusError) -> PyErr {
    use CorpusError as E;
    match error {
        E::Io { path, source } => os_error(&path, &source),
        E::Store(error) => store_error(&error),
        E::Jobs(error) => jobs_error(error),
        E::Pbin(error) => pbin_error(error),
        E::Panicked { .. } | E::DocumentPanicked { .. } => PacktokError::new_err(chain(&error)),
        E::NoInput
        | E::NotAFile { .. }
        | E::EmptyFolder { .. }
        | E::FolderOfTokens { .. }
        | E::UnreadData { .. }
        | E::AllIgnored
        | E::FilesOfNoSplit { .. }
        | E::NoSplit { .. }
        | E::NothingMatches { .. }
        | E::BadGlob { .. }
        | E::NoStores
        | E::DuplicateInput { .. }
        | E::IndexedCompressed { .. }
        | E::JsonLinesOrNot { .. }
        | E::MixedFolder { .. }
        | E::NoColumn { .. }
        | E::ColumnMissing { .. }
        | E::ColumnTwice { .. }
        | E::NoTables { .. }
        | E::ListNotUtf8 { .. }
        | E::EmptyList { .. }
        | E::BadPattern { .. }
        | E::NotALine { .. } => PyValueError::new_err(chain(&error)),
        E::Listed {
            ref path,
            ref source,
            ..
        } => listed_error(&error, path, source),
        E::Temporary { .. } => PyOSError::new_err(chain(&error)),
        E::OtherFormat { .. } | E::NotThisFormat { .. } => DocumentError::new_err(chain(&error)),
        E::SourceChanged { .. }
        | E::OtherContent { .. }
        | E::DamagedCbor { .. }
        | E::LongCborItem { .. }
        | E::DamagedCompression { .. }
        | E::ZstdWindow { .. }
        | E::ZstdDictionary { .. }
        | E::DamagedTable { .. }
        | E::UnsupportedTable { .. }
        | E::Plugin { .. }
        | E::OtherDocuments { .. }
        | E::NotLines { .. }
        | E::IndexEntryOutside { .. } => PacktokError::new_err(chain(&error)),
    }
}

fn jobs_error(error: JobsError) -> PyErr {
    use JobsError as E;
    match error {
        E::Io { path, source } => os_error(&path, &source),
        E::Cancelled => PyKeyboardInterrupt::new_err(()),
        E::NoShards | E::NoSuchShard { .. } => PyValueError::new_err(chain(&error)),
        E::Threads { .. } | E::WorkerDied | E::OutputHeld { .. } | E::OutputTaken { .. } => {
            PacktokError::new_err(chain(&error))
        }
    }
}

/// Maps an error of object stores.
pub(crate) fn store_error(error: &StoreError) -> PyErr {
    use StoreError as E;
    match error {
        E::Local { path, source } => os_error(path, source),
        E::Exists { url } => file_exists(
            Path::new(url),
            "the object already exists; choose another URL, or set --existing (existing) to replace",
        ),
        E::Absent { url } => PyFileNotFoundError::new_err((
            ENOENT,
            "no such object",
            Path::new(url).as_os_str().to_owned(),
        )),
        E::NoBucket { url } => PyFileNotFoundError::new_err((
            ENOENT,
            "no such bucket; check its name and the endpoint",
            Path::new(url).as_os_str().to_owned(),
        )),
        E::NotAStore { .. } | E::HasCredentials { .. } => PyValueError::new_err(chain(error)),
        E::NoCredentials { .. } => PyOSError::new_err(chain(error)),
        E::Changed { .. } => PacktokError::new_err(chain(error)),
        E::NoThread { .. } => PacktokError::new_err(format!("{}; {ThreadLimits}", chain(error))),
        E::Refused { .. } => PyOSError::new_err(chain(error)),
    }
}
