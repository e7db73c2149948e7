//! Divides the tokens of files into shards of limited size.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use packtok_formats::{TokenFile, TokenFormat, litdata, mds, without_ending};

use super::parts::{Parts, Span};
use crate::error::{Error, Result};

/// Tokens of a shard if the caller sets no limit.
const DEFAULT_MAX_TOKENS: u64 = 1 << 30;
/// The same of a Parquet file, which Hugging Face's tools read as a whole in places.
pub(super) const PARQUET_MAX_TOKENS: u64 = 1 << 27;
/// The same of a chunk of litdata and a shard of MDS, which are downloaded and cached as a whole: 64 MiB of
/// 32-bit ids.
const CHUNK_MAX_TOKENS: u64 = 1 << 24;

/// How tokens are divided into shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sharding {
    /// The most tokens of a shard. A longer document is a shard of its own.
    pub max_tokens: Option<u64>,
    /// If set, every shard but the last has a multiple of this many tokens, and documents are cut.
    pub multiple_of: Option<u64>,
}

impl Sharding {
    /// The most tokens of a shard of this format.
    pub(crate) fn max_tokens_of(&self, to: TokenFormat) -> u64 {
        let max_tokens = self.max_tokens.unwrap_or(match to {
            TokenFormat::Parquet => PARQUET_MAX_TOKENS,
            TokenFormat::Litdata | TokenFormat::Mds => CHUNK_MAX_TOKENS,
            _ => DEFAULT_MAX_TOKENS,
        });
        match self.multiple_of {
            Some(multiple) => (max_tokens / multiple).max(1) * multiple,
            None => max_tokens,
        }
    }

    /// The shards of all tokens of `files`; at least one.
    pub(super) fn divide<'a>(
        &self,
        files: &'a [TokenFile],
        to: TokenFormat,
    ) -> Result<Vec<Parts<'a>>> {
        let max_tokens = self.max_tokens_of(to);
        let shards = match self.multiple_of {
            Some(_) => cut_at_multiples(files, max_tokens),
            None => cut_at_documents(files, max_tokens),
        }?;
        if shards.len() == 1 {
            return Ok(vec![Parts::whole(files)]);
        }
        Ok(shards)
    }
}

fn cut_at_documents(files: &[TokenFile], max_tokens: u64) -> Result<Vec<Parts<'_>>> {
    let mut shards = Shards::default();
    for file in files {
        let mut span = Span {
            documents: 0..0,
            tokens: 0..0,
        };
        for i in 0..file.num_documents() {
            let end = file.document_tokens(i)?.end;
            let is_full = shards.tokens + (end - span.tokens.start) > max_tokens;
            let has_documents = shards.has_documents() || i > span.documents.start;
            if is_full && has_documents {
                shards.push(file, span.clone());
                shards.finish();
                span.documents.start = i;
                span.tokens.start = span.tokens.end;
            }
            span.documents.end = i + 1;
            span.tokens.end = end;
        }
        shards.push(file, span);
    }
    Ok(shards.into_all())
}

fn cut_at_multiples(files: &[TokenFile], shard_tokens: u64) -> Result<Vec<Parts<'_>>> {
    let mut shards = Shards::default();
    for file in files {
        let num_documents = file.num_documents();
        let (mut start, mut first) = (0, 0);
        while file.num_tokens() - start >= shard_tokens - shards.tokens {
            let stop = start + (shard_tokens - shards.tokens);
            let (last, is_cut) = document_before(file, stop)?;
            // Documents without tokens at the end of a file belong to its last shard.
            let end = if stop == file.num_tokens() {
                num_documents
            } else {
                last + 1
            };
            shards.push(
                file,
                Span {
                    documents: first..end,
                    tokens: start..stop,
                },
            );
            shards.finish();
            first = if is_cut { last } else { end };
            start = stop;
        }
        shards.push(
            file,
            Span {
                documents: first..num_documents,
                tokens: start..file.num_tokens(),
            },
        );
    }
    Ok(shards.into_all())
}

/// The document of the token before `stop`, and whether it continues there.
fn document_before(file: &TokenFile, stop: u64) -> Result<(u64, bool)> {
    let document = file.documents_from(stop - 1)?.next().transpose()?;
    let (document, tokens) = document.unwrap_or((0, 0..stop));
    Ok((document, tokens.end > stop))
}

/// Shards of which the last is not finished.
#[derive(Default)]
struct Shards<'a> {
    finished: Vec<Parts<'a>>,
    last: Vec<(&'a TokenFile, Span)>,
    /// Tokens of the last.
    tokens: u64,
}

impl<'a> Shards<'a> {
    fn has_documents(&self) -> bool {
        !self.last.is_empty()
    }

    fn push(&mut self, file: &'a TokenFile, span: Span) {
        if !span.documents.is_empty() {
            self.tokens += span.tokens.end - span.tokens.start;
            self.last.push((file, span));
        }
    }

    fn finish(&mut self) {
        self.finished
            .push(Parts::new(std::mem::take(&mut self.last)));
        self.tokens = 0;
    }

    fn into_all(mut self) -> Vec<Parts<'a>> {
        if self.finished.is_empty() || self.has_documents() {
            self.finish();
        }
        self.finished
    }
}

/// The path, without the ending of the format, of shard `i` of an output: in the folder `output`, or
/// with the number after its name. Numbers have leading zeros, because trainers sort by text.
pub(super) fn shard_path(format: TokenFormat, output: &Path, i: usize) -> PathBuf {
    match format {
        TokenFormat::Litdata => litdata::chunk_path(output, i),
        TokenFormat::Mds => mds::shard_path(output, i as u64),
        TokenFormat::Npy | TokenFormat::Parquet => output.join(format!("shard_{i:05}")),
        _ => {
            let output = without_ending(output, &["bin", "idx", "ds", "npy"]);
            let name = output.file_name().unwrap_or_default().to_string_lossy();
            // Tokens without a header have no ending of their own.
            let ending = if format == TokenFormat::Raw {
                ".bin"
            } else {
                ""
            };
            output.with_file_name(format!("{name}_{i:05}{ending}"))
        }
    }
}

/// Checks that there are no files of tokens beside `paths` that look like shards of the same output:
/// a trainer would read them with the others.
pub(super) fn check_no_others(paths: &[&Path]) -> Result<()> {
    let Some(first) = paths.first() else {
        return Ok(());
    };
    let (Some(folder), Some(extension)) = (first.parent(), first.extension()) else {
        return Ok(());
    };
    let stem = |path: &Path| {
        let stem = path.file_stem().and_then(OsStr::to_str)?;
        // Packed rows have an ending of two parts.
        let stem = stem.strip_suffix(".idx").unwrap_or(stem);
        let (name, number) = stem.rsplit_once('_')?;
        let is_number = number.len() >= 5 && number.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| name.to_owned())
    };
    let listed = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let entries = match fs::read_dir(listed) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io(folder)(error)),
    };
    let name = stem(first);
    let mut others = Vec::new();
    for entry in entries {
        let path = folder.join(entry.map_err(Error::io(folder))?.file_name());
        let is_shard = path.extension() == Some(extension) && stem(&path) == name;
        if is_shard && !paths.contains(&path.as_path()) {
            others.push(path);
        }
    }
    others.sort();
    match others.into_iter().next() {
        None => Ok(()),
        Some(path) => Err(Error::OtherShard { path }),
    }
}
