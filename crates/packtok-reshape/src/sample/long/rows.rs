//! Writes planned rows into MDS files.

use std::path::Path;

use packtok_formats::mds::{self, ShardEntry, Writer};

use crate::error::Result;
use crate::sample::long::plan::{LongPlan, RowPiece, columns, with_values};
use crate::sample::long::recipe::LongRecipe;
use crate::sample::output::{Output, Part};
use crate::sample::recipe::SampleIdType;
use crate::sample::tokens::OpenFiles;

/// The rows of a plan.
pub(super) struct Rows<'a> {
    recipe: &'a LongRecipe,
    plan: &'a LongPlan,
    options: mds::Options,
}

impl<'a> Rows<'a> {
    pub(super) fn new(recipe: &'a LongRecipe, plan: &'a LongPlan) -> Result<Self> {
        let options = recipe.options()?;
        Ok(Self {
            recipe,
            plan,
            options,
        })
    }

    /// Writes one file into `folder`. `written` receives the length of each row in bytes; its
    /// error ends the work.
    pub(super) fn write(
        &self,
        output: &Output,
        part: &Part,
        folder: &Path,
        written: &mut dyn FnMut(u64) -> Result<()>,
    ) -> Result<ShardEntry> {
        let options = mds::Options {
            first_shard: part.number,
            ..self.options.clone()
        };
        let mut writer = Writer::create(folder, columns()?, options)?;
        let mut files = OpenFiles::new(&self.plan.files[output.domain]);
        // A folder has the domain's name, or is the folder of a length in it.
        let name = output.folder.strip_prefix(&self.recipe.output);
        let name = name.unwrap_or(&output.folder).to_string_lossy();
        let starts = self.plan.starts(output.domain);
        let (mut ids, mut indices) = (Vec::new(), Vec::new());
        self.plan.each_row(output, part, |pieces| {
            ids.clear();
            indices.clear();
            for &RowPiece { start, len } in pieces {
                // A file without tokens has the same start as the next file; the last such file is
                // used.
                let file = starts.partition_point(|&first| first <= start) - 1;
                let first = start - starts[file];
                let end = (ids.len() / 4) as u32;
                files.append(
                    file as u32,
                    first..first + u64::from(len),
                    SampleIdType::Uint32,
                    &mut ids,
                )?;
                indices.extend_from_slice(&end.to_le_bytes());
                indices.extend_from_slice(&(end + len).to_le_bytes());
            }
            with_values(&name, &ids, &indices, |values| writer.write(values))?;
            written(ids.len() as u64)
        })?;
        let mut finished = writer.finish()?;
        debug_assert_eq!(finished.entries.len(), 1, "a part is one file");
        Ok(finished.entries.swap_remove(0))
    }
}
