//! The retrieval corpus: chunks and their neighbours as JSON lines, in the schema of CEPE's scripts.

use std::io::{BufWriter, Write};
use std::path::Path;

use packtok_formats::python_json::AsPython;
use packtok_jobs::hex;
use packtok_pbin::{Replace, TempFile};
use packtok_tokenizer::Tokenizer;
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::sample::output::{Output, Part};
use crate::sample::plan::Plan;
use crate::sample::recipe::{Recipe, SampleIdType};
use crate::sample::tokens::OpenFiles;

#[derive(Serialize)]
struct Line<'a> {
    id: &'a str,
    contents: &'a str,
    neighbor: &'a str,
    contents_token_ids: &'a [u32],
    neighbor_token_ids: &'a [u32],
}

/// Writes the chunks of a part to `path`; returns its size and SHA-256.
pub(super) fn write(
    recipe: &Recipe,
    plan: &Plan,
    output: &Output,
    part: &Part,
    tokenizer: &Tokenizer,
    path: &Path,
    written: &mut impl FnMut(u64) -> Result<()>,
) -> Result<(u64, String)> {
    let chunk = recipe
        .retrieval
        .as_ref()
        .map_or(1, |retrieval| retrieval.chunk) as usize;
    let domain = &recipe.domains[output.domain].name;
    let group = plan.group(output.side, output.domain);
    let mut files = OpenFiles::new(&plan.files);
    let mut out = BufWriter::with_capacity(1 << 18, Hashed::new(TempFile::create(path)?));
    let (mut bytes, mut ids) = (Vec::new(), Vec::new());
    for (k, sample) in part.samples.clone().enumerate() {
        let entry = plan.entry(group, sample);
        bytes.clear();
        files.append(
            entry.file,
            entry.token..entry.token + entry.extra,
            SampleIdType::Uint32,
            &mut bytes,
        )?;
        ids.clear();
        ids.extend(bytes.as_chunks().0.iter().map(|&id| u32::from_le_bytes(id)));
        let (contents, neighbor) = ids.split_at(chunk.min(ids.len()));
        let decoded = |ids: &[u32], offset: usize| {
            tokenizer
                .decode_without_special_tokens(ids)
                .map_err(|source| Error::Undecodable {
                    path: files.path(entry.file).clone(),
                    token: entry.token + offset as u64,
                    source: source.into(),
                })
        };
        let line = Line {
            id: &format!("{domain}_{}_{k}", output.shard),
            contents: &decoded(contents, 0)?,
            neighbor: &decoded(neighbor, contents.len())?,
            contents_token_ids: contents,
            neighbor_token_ids: neighbor,
        };
        let mut serializer = serde_json::Serializer::with_formatter(&mut out, AsPython);
        let serialized = line
            .serialize(&mut serializer)
            .map_err(std::io::Error::from);
        serialized
            .and_then(|()| out.write_all(b"\n"))
            .map_err(Error::io(path))?;
        written(bytes.len() as u64)?;
    }
    let hashed = out.into_inner().map_err(|error| Error::Io {
        path: path.to_owned(),
        source: error.into_error(),
    })?;
    let (bytes, sha256) = (hashed.bytes, hex(&hashed.hash.finalize()));
    hashed.file.publish(Replace::Existing)?;
    Ok((bytes, sha256))
}

/// A writer that computes the hash and the size of the written bytes.
struct Hashed {
    file: TempFile,
    hash: Sha256,
    bytes: u64,
}

impl Hashed {
    fn new(file: TempFile) -> Self {
        Self {
            file,
            hash: Sha256::new(),
            bytes: 0,
        }
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_json_dumps() {
        let line = Line {
            id: "a_0_1",
            contents: "é\u{1f600}\n\"\u{7f}\u{1}",
            neighbor: "",
            contents_token_ids: &[1, 2],
            neighbor_token_ids: &[],
        };
        let mut out = Vec::new();
        line.serialize(&mut serde_json::Serializer::with_formatter(
            &mut out, AsPython,
        ))
        .unwrap();
        // json.dumps of the same dict.
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "{\"id\": \"a_0_1\", \"contents\": \"\\u00e9\\ud83d\\ude00\\n\\\"\\u007f\\u0001\", \"neighbor\": \"\", \"contents_token_ids\": [1, 2], \"neighbor_token_ids\": []}"
        );
    }
}
