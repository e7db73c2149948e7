//! The pbins of a dataset, in order, as one row of tokens and documents.
//!
//! Responsible for opening each when it is first touched, for that it is the file that was listed, and for
//! checking its data when it is first read if that is asked for.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use packtok_pbin::{AccessPattern, CHECKED_DATA_BYTES, Reader, TokenWidth};

use super::error::SamplingError;
use super::manifest::{self, Entry};
use super::plan_file::DataFingerprint;
use crate::error::Result;

/// Pbins of one token width.
#[derive(Debug)]
pub struct Files {
    slots: Vec<Slot>,
    width: TokenWidth,
    verify: bool,
    /// What files opened from now on are advised, as in [`PATTERNS`].
    pattern: AtomicU8,
    /// First token of each file in the row of all, and the number of all tokens.
    first_tokens: Vec<u64>,
    /// First document of each file in the row of all, and the number of all documents.
    first_documents: Vec<u64>,
}

#[derive(Debug)]
struct Slot {
    entry: Entry,
    opened: OnceLock<Opened>,
}

#[derive(Debug)]
struct Opened {
    reader: Reader,
    /// One bit for each checked piece of the data that was found whole; empty if nothing is checked.
    whole: Box<[AtomicU64]>,
}

const PATTERNS: [AccessPattern; 3] = [
    AccessPattern::Normal,
    AccessPattern::Sequential,
    AccessPattern::Random,
];

impl Files {
    /// Opens all of `paths`.
    ///
    /// # Errors
    /// [`SamplingError::NoFiles`], [`SamplingError::WidthDiffers`], [`SamplingError::NoChecksums`] if `verify` cannot be
    /// done, [`packtok_pbin::Error::PartDiffers`] if ids mean different things, and what opening a pbin may find.
    pub fn open(paths: &[PathBuf], verify: bool) -> Result<Self> {
        let mut slots = Vec::with_capacity(paths.len());
        for path in paths {
            let reader = Reader::open(path)?;
            slots.push(Slot {
                entry: Entry::of(&reader),
                opened: Opened::new(reader, verify)?.into(),
            });
        }
        check_alike(slots.iter().filter_map(|slot| slot.opened.get()))?;
        Self::new(slots, verify)
    }

    /// The files that `entries` tell of; none is opened before it is needed.
    ///
    /// # Errors
    /// [`SamplingError::NoFiles`], [`SamplingError::WidthDiffers`], [`SamplingError::ImpossibleEntry`].
    pub fn listed(entries: Vec<Entry>, verify: bool) -> Result<Self> {
        entries.iter().try_for_each(Entry::check)?;
        let slots = entries.into_iter().map(|entry| Slot {
            entry,
            opened: OnceLock::new(),
        });
        Self::new(slots.collect(), verify)
    }

    fn new(slots: Vec<Slot>, verify: bool) -> Result<Self> {
        let first = &slots.first().ok_or(SamplingError::NoFiles)?.entry;
        if let Some(Slot { entry, .. }) = slots
            .iter()
            .find(|slot| slot.entry.token_bytes != first.token_bytes)
        {
            return Err(SamplingError::WidthDiffers {
                path: entry.path.clone(),
                found: entry.token_bytes,
                first: first.path.clone(),
                expected: first.token_bytes,
            }
            .into());
        }
        Ok(Self {
            width: match first.token_bytes {
                1 => TokenWidth::U8,
                2 => TokenWidth::U16,
                _ => TokenWidth::U32,
            },
            first_tokens: sums(&slots, |entry| entry.tokens)?,
            first_documents: sums(&slots, |entry| entry.documents)?,
            slots,
            verify,
            pattern: AtomicU8::new(0),
        })
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether there are no files, which is never.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of one token.
    pub fn width(&self) -> TokenWidth {
        self.width
    }

    /// Path of a file.
    pub fn path(&self, file: usize) -> &Path {
        &self.slots[file].entry.path
    }

    /// What tells the files from others, in order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.slots.iter().map(|slot| &slot.entry)
    }

    /// SHA-256 of the entries.
    pub fn fingerprint(&self) -> DataFingerprint {
        manifest::fingerprint(self.entries())
    }

    /// Tokens of a file in the row of all.
    pub fn tokens_of(&self, file: usize) -> Range<u64> {
        self.first_tokens[file]..self.first_tokens[file + 1]
    }

    /// Documents of a file in the row of all.
    pub fn documents_of(&self, file: usize) -> Range<u64> {
        self.first_documents[file]..self.first_documents[file + 1]
    }

    /// Number of tokens in all files.
    pub fn num_tokens(&self) -> u64 {
        self.first_tokens[self.slots.len()]
    }

    /// Number of documents in all files.
    pub fn num_documents(&self) -> u64 {
        self.first_documents[self.slots.len()]
    }

    /// The file that holds a token of the row of all, which must be one of them.
    pub fn file_of_token(&self, token: u64) -> usize {
        file_of(&self.first_tokens, token)
    }

    /// The file that holds a document of the row of all, which must be one of them.
    pub fn file_of_document(&self, document: u64) -> usize {
        file_of(&self.first_documents, document)
    }

    /// The open file; opened now if it was not touched before.
    ///
    /// # Errors
    /// [`SamplingError::FileReplaced`], [`SamplingError::NoChecksums`], and what opening a pbin may find.
    pub fn reader(&self, file: usize) -> Result<&Reader> {
        Ok(&self.opened(file)?.reader)
    }

    fn opened(&self, file: usize) -> Result<&Opened> {
        let slot = &self.slots[file];
        match slot.opened.get() {
            Some(opened) => Ok(opened),
            None => self.open_now(slot),
        }
    }

    #[cold]
    fn open_now<'a>(&self, slot: &'a Slot) -> Result<&'a Opened> {
        let reader = Reader::open(&slot.entry.path)?;
        slot.entry.compare(&Entry::of(&reader))?;
        let opened = Opened::new(reader, self.verify)?;
        opened
            .reader
            .advise(PATTERNS[usize::from(self.pattern.load(Ordering::Relaxed))])?;
        // Another thread may have been faster; both opened the same file.
        Ok(slot.opened.get_or_init(|| opened))
    }

    /// Tokens `tokens` of a file as little-endian bytes, checked if that was asked for.
    ///
    /// # Errors
    /// As [`Files::reader`]; [`packtok_pbin::Error::Checksum`].
    pub fn tokens(&self, file: usize, tokens: Range<u64>) -> Result<&[u8]> {
        let opened = self.opened(file)?;
        if !opened.whole.is_empty() {
            let width = self.width.bytes();
            opened.verify(tokens.start * width..tokens.end * width)?;
        }
        Ok(opened.reader.tokens(tokens)?)
    }

    /// Tells the system how the files will be read: those that are open, and the others when they are opened.
    ///
    /// # Errors
    /// [`packtok_pbin::Error::Io`].
    pub fn advise(&self, pattern: AccessPattern) -> Result<()> {
        let code = PATTERNS.iter().position(|&known| known == pattern);
        self.pattern
            .store(code.unwrap_or(0) as u8, Ordering::Relaxed);
        for opened in self.slots.iter().filter_map(|slot| slot.opened.get()) {
            opened.reader.advise(pattern)?;
        }
        Ok(())
    }
}

impl Opened {
    fn new(reader: Reader, verify: bool) -> Result<Self> {
        let mut words = 0;
        if verify {
            if !reader.has_data_checksums() {
                return Err(SamplingError::NoChecksums {
                    path: reader.path().into(),
                }
                .into());
            }
            reader.verify_offsets()?;
            words = reader
                .data_bytes()
                .div_ceil(CHECKED_DATA_BYTES)
                .div_ceil(64) as usize;
        }
        let whole = (0..words).map(|_| AtomicU64::new(0)).collect();
        Ok(Self { reader, whole })
    }

    /// Checks the pieces that data bytes `bytes` touch, each once.
    fn verify(&self, bytes: Range<u64>) -> Result<()> {
        for piece in bytes.start / CHECKED_DATA_BYTES..bytes.end.div_ceil(CHECKED_DATA_BYTES) {
            let (word, bit) = ((piece / 64) as usize, 1u64 << (piece % 64));
            if self.whole[word].load(Ordering::Relaxed) & bit == 0 {
                self.reader.verify_data_piece(piece)?;
                self.whole[word].fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(())
    }
}

/// Checks that ids mean the same in all files that say what they mean.
fn check_alike<'a>(files: impl Iterator<Item = &'a Opened>) -> Result<()> {
    let mut first: Option<(&Reader, Meaning)> = None;
    for Opened { reader, .. } in files {
        let Some(found) = Meaning::of(reader)? else {
            continue;
        };
        let (first, expected) = first.get_or_insert_with(|| (reader, found.clone()));
        if let Some((what, found, expected)) = found.difference(expected) {
            return Err(packtok_pbin::Error::PartDiffers {
                path: reader.path().into(),
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

/// What the ids of a file mean, as its metadata tell it.
#[derive(Clone)]
struct Meaning {
    tokenizer: String,
    eod: String,
}

impl Meaning {
    /// What differs first, here and there.
    fn difference<'a>(&'a self, other: &'a Self) -> Option<(&'static str, &'a str, &'a str)> {
        [
            ("tokenizer", &*self.tokenizer, &*other.tokenizer),
            ("EOD", &*self.eod, &*other.eod),
        ]
        .into_iter()
        .find(|(_, here, there)| here != there)
    }

    fn of(file: &Reader) -> Result<Option<Self>> {
        let metadata = file.metadata()?;
        Ok(metadata.and_then(|metadata| {
            Some(Self {
                tokenizer: metadata.tokenizer.as_ref()?.fingerprint.clone(),
                eod: metadata.eod.as_ref()?.token.clone(),
            })
        }))
    }
}

/// Where each file starts if they stand one behind the other, and where the last one ends.
fn sums(slots: &[Slot], number: impl Fn(&Entry) -> u64) -> Result<Vec<u64>> {
    let mut firsts = Vec::with_capacity(slots.len() + 1);
    let mut sum = 0u64;
    firsts.push(sum);
    for Slot { entry, .. } in slots {
        sum = sum
            .checked_add(number(entry))
            .ok_or_else(|| SamplingError::TooMany {
                path: entry.path.clone(),
            })?;
        firsts.push(sum);
    }
    Ok(firsts)
}

/// The last place that starts at or before `position`: empty ones before it are passed over.
fn file_of(firsts: &[u64], position: u64) -> usize {
    firsts.partition_point(|&first| first <= position) - 1
}
