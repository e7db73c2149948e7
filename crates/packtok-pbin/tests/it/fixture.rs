//! Shared test fixtures: documents, golden files, and writing a file in one call.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use packtok_pbin::{
    Counts, EmptyDocument, Metadata, Options, Reader, Replace, Source, SpecialToken,
    SpecialTokensInText, Summary, TokenWidth, TokenizerInfo, Writer, WriterInfo,
};

pub(crate) const DOCUMENTS: [&[u32]; 4] = [&[1, 2, 3], &[], &[250, 255], &[7]];
pub(crate) const EXAMPLE_DOCUMENTS: [&[u32]; 3] =
    [&[15496, 11, 995, 50256], &[50256], &[3666, 50256]];

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn golden(name: &str) -> PathBuf {
    root().join("tests/golden").join(name)
}

/// A file of the shared data, or `None` with a note if it is missing.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let folder =
        std::env::var_os("PACKTOK_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let path = folder.join("data").join(name);
    if path.exists() {
        return Some(path);
    }
    eprintln!(
        "skipped: {} is not there; set PACKTOK_SHARED",
        path.display()
    );
    None
}

pub(crate) fn encode(documents: &[&[u32]], width: TokenWidth) -> (Vec<u8>, Vec<u64>) {
    let bytes = width.bytes() as usize;
    let data = documents.iter().flat_map(|document| document.iter());
    let data = data
        .flat_map(|id| id.to_le_bytes().into_iter().take(bytes))
        .collect();
    (
        data,
        documents
            .iter()
            .map(|document| (document.len() * bytes) as u64)
            .collect(),
    )
}

pub(crate) fn decode(bytes: &[u8], width: TokenWidth) -> Vec<u32> {
    let tokens = bytes.chunks(width.bytes() as usize);
    tokens
        .map(|token| {
            token
                .iter()
                .rev()
                .fold(0, |id, &byte| id << 8 | u32::from(byte))
        })
        .collect()
}

pub(crate) fn documents_of(reader: &Reader) -> Vec<Vec<u32>> {
    (0..reader.len())
        .map(|i| decode(reader.document(i).unwrap(), reader.width()))
        .collect()
}

pub(crate) fn example_metadata() -> Metadata {
    Metadata {
        writer: WriterInfo {
            name: "packtok".into(),
            version: "0.1.0".into(),
        },
        tokenizer: Some(TokenizerInfo {
            name: "gpt2".into(),
            fingerprint: "sha256:00".into(),
            vocab_size: 50257,
        }),
        eod: Some(SpecialToken {
            token: "<|endoftext|>".into(),
            id: 50256,
        }),
        counts: Counts {
            documents: 3,
            tokens: 7,
            lines: 4,
            packed: 2,
            empty: 1,
            blank: 1,
            ..Counts::default()
        },
        options: Options {
            field: ".text".into(),
            add_special_tokens: true,
            special_tokens_in_text: SpecialTokensInText::Parse,
            empty_document: EmptyDocument::Keep,
            max_document_bytes: 1 << 30,
            ..Options::default()
        },
        ..Metadata::default()
    }
}

pub(crate) fn example_sources() -> Vec<Source> {
    vec![
        Source {
            path: "a.jsonl".into(),
            bytes: 61,
            crc32c: Some(0x1234_5678),
            format: None,
            input: None,
        },
        Source {
            path: "b/c.jsonl.zst".into(),
            bytes: 20,
            crc32c: None,
            format: None,
            input: None,
        },
    ]
}

/// Writes documents with this metadata and matching counts, and publishes them as `dst`.
pub(crate) fn write(
    dst: &Path,
    width: TokenWidth,
    documents: &[Vec<u32>],
    metadata: Metadata,
    sources: &[Source],
) -> Summary {
    let documents: Vec<&[u32]> = documents.iter().map(Vec::as_slice).collect();
    let (data, lengths) = encode(&documents, width);
    let mut writer = Writer::create(dst, width, false).unwrap();
    writer.append(&data, &lengths).unwrap();
    let (documents, tokens) = (writer.num_documents(), writer.data_bytes() / width.bytes());
    let counts = Counts {
        documents,
        tokens,
        lines: documents,
        packed: documents,
        ..Counts::default()
    };
    let finished = writer
        .finish(&Metadata { counts, ..metadata }, sources)
        .unwrap();
    finished.publish(Replace::Never).unwrap()
}

/// A progress function that never stops.
pub(crate) fn proceed(_: u64) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The bytes of the worked example.
pub(crate) fn example() -> Vec<u8> {
    fs::read(golden("example.pbin")).unwrap()
}

/// Recomputes the checksums of sections, table and tail, so that edits pass them.
pub(crate) fn seal(file: &mut [u8]) -> Option<()> {
    let field =
        |file: &[u8], at: usize| Some(u64::from_le_bytes(*file.get(at..)?.first_chunk()?) as usize);
    let tail = file.len().checked_sub(48)?;
    let table = field(file, tail)?;
    for entry in (table..tail)
        .step_by(32)
        .take_while(|entry| entry + 32 <= tail)
    {
        let (start, len) = (field(file, entry + 8)?, field(file, entry + 16)?);
        if let Some(section) = file.get(start..start.saturating_add(len)) {
            let crc = crc32c::crc32c(section);
            file[entry + 24..entry + 28].copy_from_slice(&crc.to_le_bytes());
        }
    }
    let crc = crc32c::crc32c(file.get(table..tail)?);
    file[tail + 32..tail + 36].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&file[tail..tail + 36]);
    file[tail + 36..tail + 40].copy_from_slice(&crc.to_le_bytes());
    Some(())
}
