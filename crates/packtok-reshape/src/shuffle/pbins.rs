//! Shuffles the documents of pbins.

use std::ops::Range;

use packtok_formats::TokenFile;
use packtok_jobs::Monitor;
use packtok_pack::merge::copy_tokenizer;
use packtok_pbin::{Joined, PartInfo, Reader, ShuffleInfo, TokenWidth, Writer};

use super::documents::{Parts, PbinSink, UsedDocuments};
use super::meter::Meter;
use super::order::checked_len;
use super::{ShuffleOptions, ShuffleReport, chunk};
use crate::error::{Error, Result};

/// Shuffles the documents of pbins, or a chunk of each, into one pbin.
///
/// Inputs are verified while they are read. The result has the metadata of a merge of the inputs,
/// with the seed; origins are kept.
///
/// # Errors
/// An input is damaged, or the inputs are incompatible; the chunk does not exist or has no
/// documents; the output exists and must not be replaced, or differs from the result.
pub fn shuffle_pbins(options: &ShuffleOptions, monitor: &mut Monitor<'_>) -> Result<ShuffleReport> {
    let keeps = options.prepare()?;
    let chunks = Chunks::open(options)?;
    let parts = chunks.parts()?;
    let mut meter = Meter::new(monitor, 2 * parts.data_bytes());
    if keeps {
        return prove(options, &chunks, &parts, &mut meter);
    }
    for (reader, _) in chunks.readers() {
        // The pickled index is not used, so it is not verified.
        reader.verify_trailer(&mut |_| meter.check())?;
        reader.release_pages();
    }
    let len = checked_len(parts.num_documents())?;
    let order = options.shuffle.order(len, &mut || meter.add(0, 0))?;
    let mut writer = Writer::create(&options.output, chunks.width, chunks.joined.has_origins())?;
    if chunks.joined.has_loss_mask() {
        writer = writer.with_loss_mask()?;
    }
    let mut sink = PbinSink::new(writer);
    let (output, budget) = (&options.output, &options.budget);
    let checksums = parts.write_in_order(order, &mut sink, output, budget, &mut meter)?;
    let (mut metadata, sources) = chunks.joined_with(&checksums)?.finish();
    metadata.rearranged = true;
    metadata.shuffle = Some(options.info());
    let finished = sink.finish()?.finish(&metadata, &sources)?;
    let summary = finished.publish(options.existing.replace())?;
    Ok(ShuffleReport {
        output: options.output.clone(),
        num_inputs: options.inputs.len(),
        documents: summary.documents,
        tokens: Some(summary.tokens),
        file_bytes: summary.file_bytes,
        generator: options.shuffle.generator,
        seed: options.shuffle.seed.to_string(),
        tokenizer_path: copy_tokenizer(&options.output, &options.inputs, None)?,
        skipped_existing: false,
    })
}

impl ShuffleOptions {
    /// The shuffle as the trailer records it.
    fn info(&self) -> ShuffleInfo {
        ShuffleInfo {
            generator: self.shuffle.generator,
            seed: self.shuffle.seed.to_string(),
            chunk: self.chunk,
        }
    }
}

/// The chunk of each pbin that is shuffled.
struct Chunks {
    files: Vec<(TokenFile, Range<u64>)>,
    /// The metadata of the result, without the list of parts.
    joined: Joined,
    /// Index of the first source of each file among the sources of all files.
    first_sources: Vec<u64>,
    width: TokenWidth,
}

impl Chunks {
    fn open(options: &ShuffleOptions) -> Result<Self> {
        let mut joined = Joined::new(None);
        let (mut files, mut first_sources, mut lens) = (Vec::new(), Vec::new(), Vec::new());
        let mut num_documents = 0;
        for path in &options.inputs {
            let reader = Reader::open(path)?;
            let documents = match options.chunk {
                Some(chunk) => chunk::documents(chunk, reader.len()),
                None => 0..reader.len(),
            };
            first_sources.push(joined.num_sources());
            joined.add_documents(&reader, documents.clone())?;
            lens.push(reader.len());
            num_documents += documents.end - documents.start;
            files.push((TokenFile::Pbin(reader), documents));
        }
        if let Some(chunk) = options.chunk.filter(|_| num_documents == 0) {
            return Err(chunk::empty(chunk, &lens));
        }
        let width = joined.width().ok_or_else(|| packtok_pbin::Error::NoParts {
            path: options.output.clone(),
        })?;
        Ok(Self {
            files,
            joined,
            first_sources,
            width,
        })
    }

    fn readers(&self) -> impl Iterator<Item = (&Reader, &Range<u64>)> {
        self.files
            .iter()
            .filter_map(|(file, documents)| match file {
                TokenFile::Pbin(reader) => Some((reader, documents)),
                _ => None,
            })
    }

    fn parts(&self) -> Result<Parts<'_>> {
        let has_origins = self.joined.has_origins();
        let files = self.files.iter().zip(&self.first_sources);
        let used = files.map(|((file, documents), &first_source)| UsedDocuments {
            file,
            origins: match file {
                TokenFile::Pbin(reader) if has_origins => Some(reader),
                _ => None,
            },
            loss_mask: file.loss_mask(),
            documents: documents.clone(),
            copies: None,
            first_source,
            vocab_size: None,
        });
        Parts::new(used, self.width)
    }

    /// The metadata with the list of parts, whose data have these checksums.
    fn joined_with(&self, checksums: &[u32]) -> Result<Joined> {
        let mut joined = self.joined.clone();
        for ((reader, documents), &data_crc32c) in self.readers().zip(checksums) {
            joined.list(reader, documents.clone(), data_crc32c)?;
        }
        Ok(joined)
    }
}

/// Proves that the existing output is the result: its trailer names this shuffle and parts with
/// the checksums of these inputs, and the file is undamaged.
fn prove(
    options: &ShuffleOptions,
    chunks: &Chunks,
    parts: &Parts<'_>,
    meter: &mut Meter<'_, '_>,
) -> Result<ShuffleReport> {
    let file = Reader::open(&options.output)?;
    let path = options.output.clone();
    let unknown = || Error::from(packtok_pack::Error::ExistingUnknown { path: path.clone() });
    let metadata = file.metadata()?.ok_or_else(unknown)?;
    let recorded = metadata.shuffle.as_ref();
    let expected = options.info();
    // Without a seed, a file in any order of packtok is the result.
    let compared = |info: &ShuffleInfo| {
        let seed = options.is_seed_given.then(|| info.seed.clone());
        (info.generator, seed, info.chunk)
    };
    if recorded.map(compared) != Some(compared(&expected)) {
        let json = |info: &ShuffleInfo| serde_json::to_string(info).unwrap_or_default();
        let recorded = recorded.map_or_else(|| "none".to_owned(), json);
        return Err(differs(options, "its shuffle", recorded, json(&expected)));
    }
    let checksums = parts.checksums(meter)?;
    let (expected, _) = chunks.joined_with(&checksums)?.finish();
    let content = |part: &PartInfo| (part.documents, part.tokens, part.data_crc32c);
    let are_same = (metadata.parts.iter().map(content)).eq(expected.parts.iter().map(content));
    if !are_same {
        let json = |parts: &[PartInfo]| serde_json::to_string(parts).unwrap_or_default();
        let (recorded, expected) = (json(&metadata.parts), json(&expected.parts));
        return Err(differs(options, "its list of parts", recorded, expected));
    }
    file.verify(&mut |_| meter.check())?;
    Ok(ShuffleReport {
        output: options.output.clone(),
        num_inputs: options.inputs.len(),
        documents: file.len(),
        tokens: Some(file.num_tokens()),
        file_bytes: file.file_bytes(),
        generator: options.shuffle.generator,
        seed: recorded.map(|info| info.seed.clone()).unwrap_or_default(),
        tokenizer_path: None,
        skipped_existing: true,
    })
}

fn differs(options: &ShuffleOptions, what: &str, recorded: String, expected: String) -> Error {
    packtok_pack::Error::ExistingDiffers {
        path: options.output.clone(),
        what: what.to_owned(),
        found: recorded,
        expected,
    }
    .into()
}
