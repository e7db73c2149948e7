//! An index and a shard file of an MDS folder: an error, or samples that are unchanged after writing and reading them again.
//!
//! Input: the index, a zero byte, the shard file. Seeds: the `*.mds_folder` files in `seeds`.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use packtok_formats::mds::{Columns, Index, Options, Pickles, Shard, ShardEntry, Value, Writer};

fuzz_target!(|bytes: &[u8]| {
    let Some(end) = bytes.iter().position(|&byte| byte == 0) else {
        return;
    };
    let Ok(index) = Index::parse(Path::new("index.json"), &bytes[..end], Pickles::Refused) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("shard");
    fs::write(&path, &bytes[end + 1..]).expect("the file");
    for (number, entry) in index.shards().iter().enumerate() {
        let _ = Shard::decompress(&path, &path, entry, false, (&path, std::io::sink()));
        // The size in the index must be that of the file; the fuzzer would rarely find it.
        let mut entry = entry.clone();
        entry.raw_data.bytes = (bytes.len() - end - 1) as u64;
        let Ok(shard) = Shard::open(&path, &entry, Arc::clone(index.columns(number))) else {
            continue;
        };
        let _ = shard.verify(&entry, true);
        let samples = (0..shard.num_samples()).filter_map(|i| shard.sample(i).ok()?.values().ok());
        // The sum of the sizes is not bounded by the file: samples may overlap.
        let samples: Vec<_> = samples.take(100).collect();
        check(
            &folder.path().join(number.to_string()),
            shard.columns(),
            &entry,
            &samples,
        );
    }
});

fn check(folder: &Path, columns: &Columns, entry: &ShardEntry, samples: &[Vec<Value<'_>>]) {
    let named = entry.column_names.iter().zip(&entry.column_encodings);
    let mut names = entry.column_names.clone();
    names.sort();
    // The writer sorts the columns and refuses arrays without elements, as the format does.
    if names != entry.column_names || samples.iter().flatten().any(is_empty) {
        return;
    }
    let again =
        Columns::new(named.map(|(name, encoding)| (&**name, &**encoding))).expect("parsed columns");
    assert_eq!(&again, columns);
    let options = Options {
        size_limit: None,
        ..Options::default()
    };
    let mut writer = Writer::create(folder, again, options).expect("a new folder");
    for sample in samples {
        writer.write(sample).expect("values of the columns");
    }
    writer
        .finish()
        .and_then(|finished| finished.publish(None))
        .expect("the folder is writable");
    let index = Index::open(folder, Pickles::Refused).expect("a written index");
    assert_eq!(index.num_samples(), samples.len() as u64);
    for (i, expected) in samples.iter().enumerate() {
        let path = folder.join(&index.shards()[0].raw_data.basename);
        let shard = Shard::open(&path, &index.shards()[0], Arc::clone(index.columns(0)))
            .expect("a written shard");
        let sample = shard.sample(i as u64).expect("a written sample");
        assert_eq!(&sample.values().expect("written values"), expected);
    }
}

fn is_empty(value: &Value<'_>) -> bool {
    matches!(value, Value::Array(_, dims, _) if dims.is_empty() || dims.contains(&0))
}
