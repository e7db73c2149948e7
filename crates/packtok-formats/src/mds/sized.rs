//! Writes one shard file whose samples have sizes that are known in advance.

use std::path::Path;

use packtok_pbin::{Replace, TempFile};

use crate::error::{Error, Result};
use crate::mds::MAX_FILE_BYTES;
use crate::mds::check::STEP_BYTES;
use crate::mds::columns::Columns;
use crate::mds::encoding::Value;
use crate::mds::entry::ShardEntry;
use crate::mds::options::Options;
use crate::mds::shard_file::{Layout, ShardFile};

/// Writes one shard file whose samples have sizes that are known in advance.
///
/// The positions of samples precede the samples, so a [`Writer`](crate::mds::Writer) keeps a shard
/// in memory until it is complete. With known sizes, bytes are hashed and written while they are
/// in the processor's cache.
pub struct SizedWriter {
    layout: Layout,
    file: ShardFile,
    /// The end of each sample, counted from the start of the first sample.
    ends: Vec<u32>,
    /// Number of samples that were written, and their bytes.
    written: usize,
    written_bytes: u64,
    /// Bytes that have not been written to the file yet.
    step: Vec<u8>,
}

impl SizedWriter {
    /// Starts writing shard number `options.first_shard` into `folder`, which is created if it is missing, with samples of these
    /// sizes in bytes ([`Columns::sample_bytes`]). The size limit is only recorded.
    ///
    /// # Errors
    /// An option is invalid; the folder cannot be written; [`Error::MdsSampleTooLarge`] if the samples exceed a file.
    pub fn create(
        folder: &Path,
        columns: Columns,
        options: Options,
        sizes: impl IntoIterator<Item = u64>,
    ) -> Result<Self> {
        let layout = Layout::new(folder, columns, options)?;
        let (mut bytes, mut ends) = (0u64, Vec::new());
        for sample_bytes in sizes {
            bytes = bytes.saturating_add(sample_bytes);
            if layout.file_bytes(ends.len() as u64 + 1, bytes) > MAX_FILE_BYTES {
                let path = layout.folder.clone();
                return Err(Error::MdsSampleTooLarge {
                    path,
                    found: sample_bytes,
                });
            }
            // Fits in 32 bits, as the size of the file does.
            ends.push(bytes as u32);
        }
        let file_bytes = layout.file_bytes(ends.len() as u64, bytes);
        let mut file = layout.create(layout.options.first_shard, file_bytes)?;
        file.write_all(&layout.head(&ends))?;
        Ok(Self {
            layout,
            file,
            ends,
            written: 0,
            written_bytes: 0,
            step: Vec::with_capacity(2 * STEP_BYTES),
        })
    }

    /// Writes the next sample: the values of all columns in the order of their names.
    ///
    /// # Errors
    /// A value does not fit its column; the file cannot be written.
    ///
    /// # Panics
    /// If the size of the sample differs from the announced size.
    pub fn write(&mut self, values: &[Value<'_>]) -> Result<()> {
        let start = self.step.len();
        self.layout.append(values, &mut self.step)?;
        self.written_bytes += (self.step.len() - start) as u64;
        let end = self.ends.get(self.written).copied().map(u64::from);
        assert_eq!(Some(self.written_bytes), end, "the size of a sample");
        self.written += 1;
        if self.step.len() >= STEP_BYTES {
            self.file.write_all(&self.step)?;
            self.step.clear();
        }
        Ok(())
    }

    /// Publishes the file. The caller publishes the index.
    ///
    /// # Errors
    /// The file cannot be written.
    ///
    /// # Panics
    /// If a sample has not been written.
    pub fn finish(self) -> Result<ShardEntry> {
        let (file, entry) = self.into_file()?;
        file.publish(Replace::Existing)?;
        Ok(entry)
    }

    /// The complete file under a temporary name, and its entry in the index.
    ///
    /// # Errors
    /// The file cannot be written.
    ///
    /// # Panics
    /// If a sample has not been written.
    pub fn into_file(mut self) -> Result<(TempFile, ShardEntry)> {
        assert_eq!(self.written, self.ends.len(), "the number of samples");
        self.file.write_all(&self.step)?;
        self.layout.finish(self.file, self.ends.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mds::{Compression, Dtype, Writer};

    #[test]
    fn the_file_is_that_of_the_writer_which_learns_sizes_last() {
        let columns = Columns::new([("ids", "ndarray:uint16"), ("name", "str")]).unwrap();
        let ids: Vec<u8> = (0..60_000u32).map(|i| (i * 7 % 251) as u8).collect();
        // The samples fill several steps and a part of a last one.
        let samples: Vec<_> = (0..40)
            .map(|i| {
                let row = Value::row(Dtype::U16, &ids[..2 * (1 + i * 700)]);
                [row, Value::Str(&"abc"[..i % 4])]
            })
            .collect();
        for compression in [None, Some("zstd:3")] {
            let options = Options {
                compression: compression.map(|text| Compression::parse(text).unwrap()),
                first_shard: 7,
                ..Options::default()
            };
            let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
            let [left, right] = folders.each_ref().map(|folder| folder.path());
            let mut writer = Writer::create(left, columns.clone(), options.clone()).unwrap();
            let sizes = samples.iter().map(|values| columns.sample_bytes(values));
            let sizes = sizes.map(Result::unwrap);
            let mut sized = SizedWriter::create(right, columns.clone(), options, sizes).unwrap();
            for values in &samples {
                writer.write(values).unwrap();
                sized.write(values).unwrap();
            }
            let expected = writer.finish().unwrap().entries;
            let entry = sized.finish().unwrap();
            assert_eq!(std::slice::from_ref(&entry), expected.as_slice());
            let file = &entry.stored().basename;
            let [left, right] = [left, right].map(|folder| std::fs::read(folder.join(file)));
            assert!(left.unwrap() == right.unwrap(), "{compression:?}");
        }
    }
}
