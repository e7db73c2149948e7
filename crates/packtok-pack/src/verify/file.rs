//! Verifies a token file by itself: checksums, index, ids and EODs.

use std::path::Path;

use packtok_formats::{OpenOptions, TokenFile, TokenFormat, mds};
use packtok_jobs::{Monitor, Progress};
use packtok_pbin::Dialect;
use packtok_tokenizer::Tokenizer;
use serde::Serialize;

use crate::error::{Error, Result};

/// The verified properties of a file, and those that could not be verified.
#[derive(Debug, Serialize)]
pub struct FileReport {
    /// Number of documents in the file.
    pub documents: u64,
    /// Number of tokens in the file.
    pub tokens: u64,
    /// The verified properties, one phrase each.
    pub checked: Vec<&'static str>,
    /// The properties that the file lacks the information to verify, one phrase each.
    pub unchecked: Vec<&'static str>,
}

/// Verifies all checksums, the index, every id and every EOD of a pbin; for other
/// formats, the index and every id.
///
/// Vocabulary and EOD come from the trailer. The ids of a file without a trailer are compared with
/// the vocabulary of `tokenizer`, if set.
///
/// # Errors
/// The first fault found.
pub fn verify_file(
    path: &Path,
    open: &OpenOptions,
    tokenizer: Option<&Tokenizer>,
    monitor: &mut Monitor<'_>,
) -> Result<FileReport> {
    let file = TokenFile::open_with(path, open)?;
    if file.format() == TokenFormat::Mds {
        mds::verify_hashes(path)?;
    }
    let metadata = file.metadata()?;
    let recorded = metadata.and_then(|metadata| metadata.tokenizer.as_ref());
    if let (Some(recorded), Some(tokenizer)) = (recorded, tokenizer)
        && recorded.fingerprint != tokenizer.fingerprint()
    {
        return Err(Error::TokenizerDiffers {
            path: path.to_owned(),
            found: recorded.fingerprint.clone(),
            expected: tokenizer.fingerprint().to_owned(),
        });
    }
    let total_bytes = file.file_bytes() + file.data_bytes();
    let mut report_progress = |bytes_read| {
        monitor(&Progress {
            bytes_read,
            total_bytes,
            ..Progress::default()
        })
    };
    let dialect = match &file {
        TokenFile::Pbin(reader) => {
            reader.verify(&mut report_progress)?;
            Some(reader.dialect())
        }
        TokenFile::Raw(_) | TokenFile::Npy(_) | TokenFile::Flat(_) => {
            file.verify_loss_mask()?;
            None
        }
    };
    let vocab_size = recorded
        .map(|recorded| recorded.vocab_size)
        .or(tokenizer.map(Tokenizer::vocab_size));
    let of_documents = metadata.filter(|metadata| !metadata.has_rows());
    let eod_id = of_documents.and_then(|metadata| metadata.eod.as_ref().map(|eod| eod.id));
    // Reading the ids of other formats checks that they fit in 32 bits.
    if vocab_size.is_some() || eod_id.is_some() || dialect.is_none() {
        let mut scan = Scan {
            file: &file,
            vocab_size: vocab_size.unwrap_or(u64::MAX),
            eod_id,
        };
        scan.run(&mut |bytes| report_progress(file.file_bytes() + bytes))?;
    }
    let has_trailer = dialect == Some(Dialect::Packtok);
    let phrases = [
        ("the index covers the data", true),
        ("checksums", has_trailer),
        ("offsets and pickle agree", has_trailer),
        ("every id fits in 32 bits", true),
        ("every id is in the vocabulary", vocab_size.is_some()),
        ("every document ends with EOD", eod_id.is_some()),
    ];
    // Ids of a pbin have at most 32 bits, and other formats have no pickle.
    let irrelevant = match dialect {
        Some(_) => "every id fits in 32 bits",
        None => "offsets and pickle agree",
    };
    let of = |proven| {
        let phrases = phrases.iter().filter(move |phrase| phrase.1 == proven);
        let phrases = phrases.map(|phrase| phrase.0);
        phrases.filter(|&phrase| phrase != irrelevant).collect()
    };
    Ok(FileReport {
        documents: file.num_documents(),
        tokens: file.num_tokens(),
        checked: of(true),
        unchecked: of(false),
    })
}

struct Scan<'a> {
    file: &'a TokenFile,
    vocab_size: u64,
    eod_id: Option<u32>,
}

impl Scan<'_> {
    fn run(
        &mut self,
        report_progress: &mut dyn FnMut(u64) -> std::ops::ControlFlow<()>,
    ) -> Result<()> {
        let mut bytes = 0;
        for i in 0..self.file.num_documents() {
            let tokens = self.file.document_tokens(i)?;
            self.file.check_signs(tokens.clone())?;
            let document = self.file.tokens(tokens)?;
            self.check(i, document)?;
            bytes += document.len() as u64;
            // Reading the clock for each document would take longer than checking a short one.
            if i % 1024 == 0 && report_progress(bytes).is_break() {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }

    fn check(&self, i: u64, document: &[u8]) -> Result<()> {
        let width = self.file.width();
        let mut ids = width.ids(document).zip(0..);
        if let Some((id, token)) = ids.find(|&(id, _)| u64::from(id) >= self.vocab_size) {
            return Err(Error::IdBeyondVocab {
                path: self.file.path().to_owned(),
                document: i,
                token,
                found: id,
                vocab_size: self.vocab_size,
            });
        }
        let last = width.ids(document).next_back();
        match self.eod_id {
            Some(eod_id) if last != Some(eod_id) => Err(Error::NoEodAtEnd {
                path: self.file.path().to_owned(),
                document: i,
                found: last,
                eod_id,
            }),
            _ => Ok(()),
        }
    }
}
