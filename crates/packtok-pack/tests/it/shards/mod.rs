//! Shards packed separately and joined equal the file of one run; mismatches are rejected.

mod joined;
mod markers;
mod plans;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use packtok_pack::pack::{Existing, PackOptions, PackReport};
use packtok_pack::shard::{Choice, JoinOptions, JoinReport, PlanReport, join, pack_shard, plan};
use packtok_pack::{Error, Result, chain};
use proptest::prelude::*;
use tempfile::TempDir;

use crate::fixture::{byte_tokenizer, options};

const PROCEED: ControlFlow<()> = ControlFlow::Continue(());

/// The format of a file of the corpus.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    Crlf,
    NoLastNewline,
    ByteOrderMark,
    Gzip,
    Zstd,
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Plain),
        1 => Just(Kind::Crlf),
        2 => Just(Kind::NoLastNewline),
        1 => Just(Kind::ByteOrderMark),
        1 => Just(Kind::Gzip),
        1 => Just(Kind::Zstd),
    ]
}

fn bytes_of(lines: &[Vec<u8>], kind: Kind) -> Vec<u8> {
    let newline: &[u8] = if matches!(kind, Kind::Crlf) {
        b"\r\n"
    } else {
        b"\n"
    };
    let mut text = lines.join(newline);
    if !matches!(kind, Kind::NoLastNewline) && !lines.is_empty() {
        text.extend(newline);
    }
    match kind {
        Kind::Plain | Kind::Crlf | Kind::NoLastNewline => text,
        Kind::ByteOrderMark => [&b"\xef\xbb\xbf"[..], &text].concat(),
        Kind::Gzip => {
            let mut encoder =
                flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&text).unwrap();
            encoder.finish().unwrap()
        }
        Kind::Zstd => zstd::encode_all(&text[..], 1).unwrap(),
    }
}

/// A folder with a corpus, and methods that pack it in shards.
struct Setting {
    folder: TempDir,
    inputs: Vec<PathBuf>,
}

impl Setting {
    fn new(files: &[Vec<u8>]) -> Self {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("corpus")).unwrap();
        let write = |(i, bytes): (usize, &Vec<u8>)| {
            let path = folder.path().join(format!("corpus/part{i}.jsonl"));
            fs::write(&path, bytes).unwrap();
            path
        };
        let inputs = files.iter().enumerate().map(write).collect();
        Self { folder, inputs }
    }

    /// Twenty documents in two files; the first file has five.
    fn small() -> Self {
        let line = |i: usize| format!("{{\"text\": \"document {i:02}\"}}\n");
        let text = |lines: std::ops::Range<usize>| lines.map(line).collect::<String>().into_bytes();
        Self::new(&[text(0..5), text(5..20)])
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn options(&self, output: &str) -> PackOptions {
        options(&self.inputs, &self.path(output), 2, 64)
    }

    fn pack(&self, index: u64, count: Option<u64>) -> Result<PackReport> {
        pack_one(&self.options("out"), index, count)
    }

    fn pack_all(&self, count: u64) {
        for index in 0..count {
            self.pack(index, Some(count)).unwrap();
        }
    }

    fn join(&self) -> Result<JoinReport> {
        self.join_as("joined.pbin", Existing::Error)
    }

    fn join_as(&self, output: &str, existing: Existing) -> Result<JoinReport> {
        let options = JoinOptions {
            folder: self.path("out"),
            output: self.path(output),
            existing,
            // Some of these corpora consist of rejects only.
            max_rejects: Some("100%".parse().unwrap()),
        };
        join(&options, &mut |_| PROCEED)
    }

    fn shard_bytes(&self, index: u64, count: u64) -> u64 {
        let name = format!("out/shard-{index:05}-of-{count:05}.pbin");
        fs::metadata(self.path(&name)).unwrap().len()
    }

    /// The message of an error and its causes, without the folder's name.
    fn message<T>(&self, result: Result<T>) -> String {
        let error = match result.err().expect("this must fail") {
            // Added if finished work is kept for a later run.
            Error::Kept { source } => *source,
            error => error,
        };
        let folder = self.folder.path().display().to_string();
        chain(&error)
            .replace(&format!("{folder}/"), "")
            .replace(&folder, "")
    }

    fn edit(&self, name: &str, edit: impl Fn(&mut serde_json::Value)) {
        let path = self.path(name);
        let text = fs::read_to_string(&path).unwrap();
        let mut value = serde_json::from_str(&text).unwrap();
        edit(&mut value);
        fs::write(&path, serde_json::to_string(&value).unwrap()).unwrap();
    }
}

fn pack_one(options: &PackOptions, index: u64, count: Option<u64>) -> Result<PackReport> {
    let choice = Choice {
        index,
        count,
        default_count: None,
    };
    pack_shard(options, &byte_tokenizer(), choice, &mut |_| PROCEED)
}

fn plan_as(options: &PackOptions, num_shards: u64) -> Result<PlanReport> {
    plan(options, &byte_tokenizer(), num_shards, &mut |_| PROCEED)
}

/// The files of an output, by suffix.
fn output_files(path: &Path) -> BTreeMap<&'static str, Option<Vec<u8>>> {
    let read = |suffix| fs::read(format!("{}{suffix}", path.display())).ok();
    ["", ".rejects.jsonl", ".tokenizer.json"]
        .map(|suffix| (suffix, read(suffix)))
        .into()
}
