//! Writes the samples of one side of one domain as MDS files.

use std::num::NonZeroU64;
use std::ops::Range;
use std::path::Path;

use packtok_dataset::order::permutation::Permutation;
use packtok_formats::mds::{Dtype, ShardEntry, SizedWriter, Value, Writer};

use crate::error::Result;
use crate::sample::output::{Form, Output, Part};
use crate::sample::plan::{Group, Plan};
use crate::sample::recipe::{From, Recipe, SampleIdType, Side};
use crate::sample::tokens::OpenFiles;

/// The start of the tokens of a sample.
#[derive(Debug, Clone, Copy)]
struct Start {
    file: u32,
    token: u64,
    /// The document of a stream, and the tokens before the sample in it.
    document: u64,
    offset: u64,
}

/// The samples of an output.
pub(super) struct Samples<'a> {
    recipe: &'a Recipe,
    plan: &'a Plan,
    form: &'a Form,
    output: &'a Output,
    group: &'a Group,
    /// The order of a stream's windows.
    order: Option<Permutation>,
}

impl<'a> Samples<'a> {
    pub(super) fn new(
        recipe: &'a Recipe,
        plan: &'a Plan,
        form: &'a Form,
        output: &'a Output,
    ) -> Self {
        let group = plan.group(output.side, output.domain);
        let order = match recipe.from {
            From::Documents => None,
            From::Stream => NonZeroU64::new(group.counts.available)
                .map(|available| Permutation::new(available, recipe.seed, output.side as u64)),
        };
        Self {
            recipe,
            plan,
            form,
            output,
            group,
            order,
        }
    }

    fn start(&self, sample: u64) -> Start {
        let Some(order) = &self.order else {
            let entry = self.plan.entry(self.group, sample);
            return Start {
                file: entry.file,
                token: entry.token,
                document: 0,
                offset: 0,
            };
        };
        let position = self.recipe.window().start(order.at(sample));
        let document = self.plan.document_at(self.group, position);
        let entry = self.plan.entry(self.group, document);
        Start {
            file: entry.file,
            token: entry.token + (position - entry.extra),
            document,
            offset: position - entry.extra,
        }
    }

    /// Appends the tokens of a sample to `out`.
    fn read(&self, files: &mut OpenFiles<'_>, start: Start, out: &mut Vec<u8>) -> Result<()> {
        let len = self.recipe.window().tokens();
        if self.order.is_none() {
            return files.append(
                start.file,
                start.token..start.token + len,
                self.form.dtype,
                out,
            );
        }
        let (mut document, mut offset, mut left) = (start.document, start.offset, len);
        while left > 0 {
            let entry = self.plan.entry(self.group, document);
            // Only the last document has no successor, and the last window ends in it at the latest.
            let in_document = if document + 1 < self.group.len {
                self.plan.entry(self.group, document + 1).extra - entry.extra - offset
            } else {
                left
            };
            let count = left.min(in_document);
            let first = entry.token + offset;
            files.append(entry.file, first..first + count, self.form.dtype, out)?;
            left -= count;
            (document, offset) = (document + 1, 0);
        }
        Ok(())
    }

    /// Calls `call` with the values of a sample's columns, in the order of their names.
    fn with_values<R>(&self, start: Start, ids: &[u8], call: impl FnOnce(&[Value<'_>]) -> R) -> R {
        let (context, decoder) =
            ids.split_at(self.recipe.context as usize * self.form.dtype.bytes());
        let dtype = match self.form.dtype {
            SampleIdType::Uint16 => Dtype::U16,
            SampleIdType::Uint32 => Dtype::U32,
            SampleIdType::Int32 => Dtype::I32,
        };
        let domain = Value::Str(&self.recipe.domains[self.output.domain].name);
        let (context, decoder) = (Value::row(dtype, context), Value::row(dtype, decoder));
        if !self.recipe.origin {
            return call(&[domain, context, decoder]);
        }
        let source = self.source(start);
        let (source, start) = (Value::Str(&source), Value::Int(start.token as i64));
        call(&[domain, context, source, start, decoder])
    }

    /// The samples of each file: as many as the size limit allows, as mosaicml-streaming's writer
    /// divides them.
    pub(super) fn files(&self) -> Result<Vec<Range<u64>>> {
        let mut files = Vec::new();
        let head = Writer::head_bytes(&self.form.columns, &self.form.options);
        let samples = self.output.samples.clone();
        let (mut first, mut bytes) = (samples.start, head);
        for (sample, size) in samples.clone().zip(self.sizes(samples)?) {
            if sample > first && bytes + size + 4 > self.recipe.size_limit {
                files.push(first..sample);
                (first, bytes) = (sample, head);
            }
            bytes += size + 4;
        }
        files.push(first..self.output.samples.end);
        Ok(files)
    }

    /// The size of each sample in bytes.
    fn sizes(&self, samples: Range<u64>) -> Result<impl Iterator<Item = u64>> {
        let ids = vec![0; self.recipe.window().tokens() as usize * self.form.dtype.bytes()];
        let first = self.start(samples.start);
        let bytes =
            self.with_values(first, &ids, |values| self.form.columns.sample_bytes(values))?;
        // Only the lengths of source names vary.
        let name_bytes = |start: Start| self.source(start).len() as u64;
        let fixed = bytes
            - if self.recipe.origin {
                name_bytes(first)
            } else {
                0
            };
        Ok(samples.map(move |sample| {
            if self.recipe.origin {
                fixed + name_bytes(self.start(sample))
            } else {
                fixed
            }
        }))
    }

    /// Number of samples after which the plan's pages are released. Samples of a stream search the
    /// whole plan.
    fn released_samples(&self) -> usize {
        match self.recipe.from {
            From::Documents => 1 << 16,
            From::Stream => 1 << 8,
        }
    }

    fn source(&self, start: Start) -> String {
        let file = &self.plan.files[start.file as usize];
        self.recipe.source_name(&file.path)
    }

    /// Writes one file into `folder`. `written` receives the length of each sample in bytes; its
    /// error ends the work.
    pub(super) fn write(
        &self,
        part: &Part,
        folder: &Path,
        written: &mut impl FnMut(u64) -> Result<()>,
    ) -> Result<ShardEntry> {
        let mut options = self.form.options.clone();
        options.first_shard = part.number;
        let sizes = self.sizes(part.samples.clone())?;
        let columns = self.form.columns.clone();
        let mut writer = SizedWriter::create(folder, columns, options, sizes)?;
        let mut files = OpenFiles::new(&self.plan.files);
        let mut ids = Vec::new();
        for (i, sample) in part.samples.clone().enumerate() {
            if i.is_multiple_of(self.released_samples()) {
                self.plan.release_pages();
            }
            let start = self.start(sample);
            ids.clear();
            self.read(&mut files, start, &mut ids)?;
            self.with_values(start, &ids, |values| writer.write(values))?;
            written(ids.len() as u64)?;
        }
        Ok(writer.finish()?)
    }
}

/// Divides all outputs into parts.
pub(super) fn parts(
    recipe: &Recipe,
    plan: &Plan,
    form: &Form,
    outputs: &[Output],
) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    for (number, output) in outputs.iter().enumerate() {
        if output.side == Side::Retrieval {
            parts.push(Part {
                output: number,
                number: 0,
                samples: output.samples.clone(),
            });
            continue;
        }
        for (file, samples) in Samples::new(recipe, plan, form, output)
            .files()?
            .into_iter()
            .enumerate()
        {
            parts.push(Part {
                output: number,
                number: file as u64,
                samples,
            });
        }
    }
    Ok(parts)
}
