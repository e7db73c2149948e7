//! Computes the sizes of samples and files before they are written, to divide samples into files
//! in advance.

use crate::error::{Error, Result};
use crate::mds::check::{Compression, Hash};
use crate::mds::columns::Columns;
use crate::mds::encoding::Value;
use crate::mds::options::Options;
use crate::mds::write::Writer;

impl Columns {
    /// Bytes of a sample with these values, in the order of the columns.
    ///
    /// # Errors
    /// A value does not fit its column.
    pub fn sample_bytes(&self, values: &[Value<'_>]) -> Result<u64> {
        if values.len() != self.all().len() {
            return Err(Error::MdsNumValues {
                found: values.len(),
                expected: self.all().len(),
            });
        }
        let (mut bytes, mut encoded) = (0, Vec::new());
        for (column, value) in self.all().iter().zip(values) {
            encoded.clear();
            let result = column.encoding.encode(value, &mut encoded);
            result.map_err(|description| Error::MdsValue {
                column: column.name.clone(),
                found: description,
                expected: column.encoding_text.clone(),
            })?;
            bytes += encoded.len() as u64 + if column.size.is_none() { 4 } else { 0 };
        }
        Ok(bytes)
    }
}

impl Writer {
    /// Bytes of a file besides its samples and the 4 bytes that each adds for its position.
    pub fn head_bytes(columns: &Columns, options: &Options) -> u64 {
        let mut hashes = options.hashes.clone();
        hashes.sort_unstable();
        hashes.dedup();
        let hashes: Vec<String> = hashes
            .into_iter()
            .map(Hash::name)
            .map(str::to_owned)
            .collect();
        let compression = options.compression.as_ref().map(Compression::text);
        8 + columns
            .config(compression, &hashes, options.size_limit)
            .len() as u64
    }
}
