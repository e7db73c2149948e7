//! The groups of rows of a table file: their positions and numbers of rows.

use super::fault::{Fault, contained};
use super::group::Group;
use super::values::Values;
use super::window::Window;
use super::{arrow, parquet};

/// The format of a table file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableFormat {
    /// A Parquet file; its groups are row groups.
    Parquet,
    /// An Arrow file or stream; its groups are record batches.
    Arrow,
}

/// The groups of a file, and the layout that decoding them requires.
pub struct Groups {
    /// The groups that have rows, in row order. If they are not stored in this order, every group
    /// starts at 0.
    pub list: Vec<Group>,
    /// The term of the format for a group.
    pub name: &'static str,
    /// CRC32C of the part of the file that describes the groups.
    pub crc32c: u32,
    /// Whether the groups are stored in row order, each after the previous one.
    pub are_in_order: bool,
    layout: Layout,
}

/// The layout that decoding the groups of a file requires.
enum Layout {
    Parquet(parquet::Layout),
    Arrow(arrow::Layout),
}

impl Groups {
    /// The groups of the file, for decoding the column `names`, a path from the root of the
    /// schema. Without `names`, no values can be decoded.
    ///
    /// # Errors
    /// The file has another format, is damaged, cannot be read, or does not have the column.
    pub fn open(
        format: TableFormat,
        window: &Window,
        names: Option<&[String]>,
    ) -> Result<Self, Fault> {
        let (list, crc32c, name, layout) = contained(|| match format {
            TableFormat::Arrow => {
                let (list, crc32c, layout) = arrow::open(window, names)?;
                Ok((list, crc32c, "record batch", Layout::Arrow(layout)))
            }
            TableFormat::Parquet => {
                let (list, crc32c, layout) = parquet::open(window, names)?;
                Ok((list, crc32c, "row group", Layout::Parquet(layout)))
            }
        })?;
        let mut groups = Self {
            list,
            name,
            crc32c,
            are_in_order: true,
            layout,
        };
        // If the groups are not stored in row order, dividing and resuming treat the file as one
        // unit.
        groups.list.retain(|group| group.rows > 0);
        groups.are_in_order = groups.list.is_sorted_by(|a, b| a.start < b.start);
        if !groups.are_in_order {
            for group in &mut groups.list {
                group.start = 0;
            }
        }
        Ok(groups)
    }

    /// The names of the columns that contain texts; fields of structures by their path.
    pub fn text_columns(&self) -> Vec<String> {
        match &self.layout {
            Layout::Parquet(layout) => layout.text_columns(),
            Layout::Arrow(layout) => layout.text_columns(),
        }
    }

    /// The values of `list[i]`.
    ///
    /// # Errors
    /// The file is damaged, cannot be read, or uses an unsupported feature.
    pub fn values(&self, i: usize, window: &Window) -> Result<Box<dyn Values>, Fault> {
        let index = self.list[i].index;
        match &self.layout {
            Layout::Parquet(layout) => layout.values(index, window),
            Layout::Arrow(layout) => layout.values(index, window),
        }
    }
}
