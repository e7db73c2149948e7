//! The pbins of a dataset in order, addressed as one sequence of tokens and documents.
//!
//! Responsible for opening a file at first use, for checking that the file still matches its
//! entry, and for verifying its data at first read if requested.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use packtok_formats::{OpenOptions, TokenFile};
use packtok_pbin::{AccessPattern, TokenWidth};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::files::checked_file::CheckedFile;
use crate::files::data_checksum::cached_crc32c;
use crate::files::fingerprint::DataFingerprint;
use crate::files::manifest::{self, Entry};
use crate::files::ranges::Ranges;

/// Pbins of one token width.
#[derive(Debug)]
pub struct Files {
    entries: Vec<Entry>,
    slots: Vec<Slot>,
    width: TokenWidth,
    /// What the caller says about the files.
    options: OpenOptions,
    verify: bool,
    /// Advice for files opened from now on, an index into [`PATTERNS`].
    pattern: AtomicU8,
    /// Token ranges of the files in the overall sequence.
    tokens: Ranges,
    /// Document ranges of the files in the overall sequence.
    documents: Ranges,
}

/// A slot for an open file. It fills one cache line; accessing an item of an open file touches no
/// other line of the array.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Slot(OnceLock<CheckedFile>);

const _: () = assert!(size_of::<Slot>() == 64);

const PATTERNS: [AccessPattern; 3] = [
    AccessPattern::Normal,
    AccessPattern::Sequential,
    AccessPattern::Random,
];

impl Files {
    /// Opens all of `paths`.
    ///
    /// # Errors
    /// [`Error::NoFiles`], [`Error::WidthDiffers`], [`Error::NoChecksums`] if `verify` is not
    /// possible, [`packtok_pbin::Error::PartDiffers`] if the meaning of ids differs, and the errors
    /// of opening a pbin.
    pub fn open(paths: &[PathBuf], verify: bool) -> Result<Self> {
        Self::open_with(paths, &OpenOptions::default(), verify)
    }

    /// As [`Files::open`], with what the caller says about the files.
    ///
    /// # Errors
    /// Those of [`Files::open`] and of [`TokenFile::open_with`].
    pub fn open_with(paths: &[PathBuf], options: &OpenOptions, verify: bool) -> Result<Self> {
        let mut entries = Vec::with_capacity(paths.len());
        let mut slots = Vec::with_capacity(paths.len());
        for path in paths {
            let file = CheckedFile::open_with(path, options, verify)?;
            entries.push(Entry {
                path: path.clone(),
                ..Entry::of(file.token_file())
            });
            slots.push(Slot(file.into()));
        }
        check_alike(slots.iter().filter_map(|slot| slot.0.get()))?;
        Self::new(entries, slots, options, verify)
    }

    /// The files described by `entries`. A file is opened at first use, as `options` say.
    ///
    /// # Errors
    /// [`Error::NoFiles`], [`Error::WidthDiffers`], [`Error::ImpossibleEntry`].
    pub fn listed(entries: Vec<Entry>, options: &OpenOptions, verify: bool) -> Result<Self> {
        entries.iter().try_for_each(Entry::check)?;
        let slots = entries.iter().map(|_| Slot::default()).collect();
        Self::new(entries, slots, options, verify)
    }

    fn new(
        entries: Vec<Entry>,
        slots: Vec<Slot>,
        options: &OpenOptions,
        verify: bool,
    ) -> Result<Self> {
        let first = entries.first().ok_or(Error::NoFiles)?;
        if let Some(entry) = entries
            .iter()
            .find(|entry| entry.token_bytes != first.token_bytes)
        {
            return Err(Error::WidthDiffers {
                path: entry.path.clone(),
                found: entry.token_bytes,
                first: first.path.clone(),
                expected: first.token_bytes,
            });
        }
        Ok(Self {
            width: first.width(),
            tokens: ranges(&entries, |entry| entry.tokens)?,
            documents: ranges(&entries, |entry| entry.documents)?,
            entries,
            slots,
            options: options.clone(),
            verify,
            pattern: AtomicU8::new(0),
        })
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Always false, because there is at least one file.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of one token.
    pub fn width(&self) -> TokenWidth {
        self.width
    }

    /// Path of a file.
    pub fn path(&self, file: usize) -> &Path {
        &self.entries[file].path
    }

    /// The entries that identify the files, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter()
    }

    /// SHA-256 of the entries.
    pub fn fingerprint(&self) -> DataFingerprint {
        manifest::fingerprint(self.entries())
    }

    /// SHA-256 of the entries, and of the data of files whose entries do not identify it: those that record
    /// neither documents nor checksums. Their data is read unless its checksum is in the user's cache.
    ///
    /// # Errors
    /// As [`Files::token_file`]; a file cannot be read.
    pub fn content_fingerprint(&self) -> Result<DataFingerprint> {
        let mut hash = Sha256::new();
        hash.update(self.fingerprint());
        let mut is_complete = true;
        for (file, entry) in self.entries.iter().enumerate() {
            if entry.trailer_crc32c.is_none() && !entry.format.records_documents() {
                is_complete = false;
                let crc32c = cached_crc32c(self.token_file(file)?.data_path())?;
                hash.update(crc32c.to_le_bytes());
            }
        }
        Ok(if is_complete {
            self.fingerprint()
        } else {
            hash.finalize().into()
        })
    }

    /// Tokens of a file in the overall sequence.
    pub fn tokens_of(&self, file: usize) -> Range<u64> {
        self.tokens.range(file)
    }

    /// Documents of a file in the overall sequence.
    pub fn documents_of(&self, file: usize) -> Range<u64> {
        self.documents.range(file)
    }

    /// Number of tokens in all files.
    pub fn num_tokens(&self) -> u64 {
        self.tokens.total()
    }

    /// Number of documents in all files.
    pub fn num_documents(&self) -> u64 {
        self.documents.total()
    }

    /// The file that contains a token of the overall sequence, which must be in range.
    pub fn file_of_token(&self, token: u64) -> usize {
        self.tokens.find(token)
    }

    /// The file that contains a document of the overall sequence, which must be in range.
    pub fn file_of_document(&self, document: u64) -> usize {
        self.documents.find(document)
    }

    /// The file with number `file`, which is opened at first use.
    ///
    /// # Errors
    /// [`Error::FileReplaced`], [`Error::NoChecksums`], and the errors of opening a pbin.
    pub fn token_file(&self, file: usize) -> Result<&TokenFile> {
        Ok(self.checked_file(file)?.token_file())
    }

    pub(crate) fn checked_file(&self, file: usize) -> Result<&CheckedFile> {
        match self.slots[file].0.get() {
            Some(open) => Ok(open),
            None => self.open_now(file),
        }
    }

    #[cold]
    fn open_now(&self, file: usize) -> Result<&CheckedFile> {
        let entry = &self.entries[file];
        let open = CheckedFile::open_listed(entry, &self.options, self.verify)?;
        entry.compare(&Entry::of(open.token_file()))?;
        check_loss_columns(open.token_file())?;
        open.token_file()
            .advise(PATTERNS[usize::from(self.pattern.load(Ordering::Relaxed))])?;
        // Another thread may have opened it first; both opened the same file.
        Ok(self.slots[file].0.get_or_init(|| open))
    }

    /// Checks the columns of open files that say how tokens count in the loss; those of others are checked when
    /// they are opened. Who trains with the tokens calls this.
    ///
    /// # Errors
    /// [`Error::LossColumn`].
    pub fn check_loss_columns(&self) -> Result<()> {
        let mut open = self.slots.iter().filter_map(|slot| slot.0.get());
        open.try_for_each(|checked| check_loss_columns(checked.token_file()))
    }

    /// Tokens `tokens` of a file as little-endian bytes, verified if requested.
    ///
    /// # Errors
    /// As [`Files::token_file`]; [`packtok_pbin::Error::Checksum`].
    pub fn tokens(&self, file: usize, tokens: Range<u64>) -> Result<&[u8]> {
        self.checked_file(file)?.tokens(tokens)
    }

    /// Fast path of [`Files::tokens`] for an open file without verification, the common case;
    /// `None` otherwise.
    #[inline]
    pub(crate) fn ready_tokens(&self, file: usize, tokens: Range<u64>) -> Option<&[u8]> {
        self.ready_file(file)?.tokens_if_there(tokens)
    }

    /// The tokens of a document, under the same conditions and if it has any.
    pub(crate) fn ready_document(&self, document: u64) -> Option<&[u8]> {
        let file = self.file_of_document(document);
        let in_file = document - self.documents_of(file).start;
        let token_file = self.ready_file(file)?;
        let tokens = token_file.document_tokens(in_file).ok()?;
        let bytes = token_file.tokens_if_there(tokens)?;
        (!bytes.is_empty()).then_some(bytes)
    }

    /// The file, if it is open and needs no verification.
    #[inline]
    fn ready_file(&self, file: usize) -> Option<&TokenFile> {
        let open = self.slots.get(file)?.0.get()?;
        open.is_ready().then(|| open.token_file())
    }

    /// Advises the system how the files will be read. Open files are advised now, the other files
    /// when they are opened.
    ///
    /// # Errors
    /// [`packtok_pbin::Error::Io`].
    pub fn advise(&self, pattern: AccessPattern) -> Result<()> {
        let code = PATTERNS.iter().position(|&known| known == pattern);
        self.pattern
            .store(code.unwrap_or(0) as u8, Ordering::Relaxed);
        for open in self.slots.iter().filter_map(|slot| slot.0.get()) {
            open.token_file().advise(pattern)?;
        }
        Ok(())
    }
}

/// Checks that no column says how tokens count in the loss in a way that datasets do not apply.
fn check_loss_columns(file: &TokenFile) -> Result<()> {
    match file.unusable_masks().first() {
        None => Ok(()),
        Some(name) => Err(Error::LossColumn {
            path: file.path().into(),
            name: name.clone(),
        }),
    }
}

/// Checks that ids have the same meaning in all files that record it.
fn check_alike<'a>(files: impl Iterator<Item = &'a CheckedFile>) -> Result<()> {
    let mut first: Option<(&TokenFile, Meaning)> = None;
    for checked in files {
        let file = checked.token_file();
        let Some(meaning) = Meaning::of(file)? else {
            continue;
        };
        let (first, expected) = first.get_or_insert_with(|| (file, meaning.clone()));
        if let Some((what, found, expected)) = meaning.difference(expected) {
            return Err(packtok_pbin::Error::PartDiffers {
                path: file.path().into(),
                what,
                found: found.to_owned(),
                first: first.path().into(),
                expected: expected.to_owned(),
            }
            .into());
        }
    }
    Ok(())
}

/// The meaning of a file's ids, from its metadata.
#[derive(Clone)]
struct Meaning {
    tokenizer: String,
    eod: String,
}

impl Meaning {
    /// The first difference, with both values.
    fn difference<'a>(&'a self, other: &'a Self) -> Option<(&'static str, &'a str, &'a str)> {
        [
            ("tokenizer", &*self.tokenizer, &*other.tokenizer),
            ("EOD", &*self.eod, &*other.eod),
        ]
        .into_iter()
        .find(|(_, here, there)| here != there)
    }

    fn of(file: &TokenFile) -> Result<Option<Self>> {
        let metadata = file.metadata()?;
        Ok(metadata.and_then(|metadata| {
            Some(Self {
                tokenizer: metadata.tokenizer.as_ref()?.fingerprint.clone(),
                eod: metadata.eod.as_ref()?.token.clone(),
            })
        }))
    }
}

/// The range of each file in the concatenation of all files, in the unit that `number` returns.
fn ranges(entries: &[Entry], number: impl Fn(&Entry) -> u64) -> Result<Ranges> {
    Ranges::new(entries.iter().map(number)).map_err(|file| {
        let path = entries[file].path.clone();
        Error::TooMany { path }
    })
}
