//! The groups of rows of a table file: their positions and numbers of rows.

use super::cells::Cell;
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

/// The records of some rows.
#[derive(Debug)]
pub struct Rows {
    /// The names of the columns that were read.
    pub columns: Vec<String>,
    /// Number of columns of the file.
    pub num_columns: usize,
    /// Number of rows of the file.
    pub num_rows: u64,
    /// The cells of each row, by column.
    pub rows: Vec<Vec<Cell>>,
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

    /// The records of up to `num_rows` rows from row `first` on, which may end earlier. The first
    /// `max_columns` columns are read; each cell has at most `max_bytes`.
    ///
    /// A column that cannot be read has the reason in its cells.
    pub fn rows(
        &self,
        first: u64,
        num_rows: usize,
        max_columns: usize,
        max_bytes: usize,
        window: &Window,
    ) -> Rows {
        let mut columns = match &self.layout {
            Layout::Parquet(layout) => layout.columns(),
            Layout::Arrow(layout) => layout.columns(),
        };
        let num_columns = columns.len();
        columns.truncate(max_columns);
        let stop = first.saturating_add(num_rows as u64);
        let mut rows = Vec::new();
        for group in &self.list {
            let start = group.first_row.max(first);
            let stop = group.first_row.saturating_add(group.rows).min(stop);
            if start >= stop {
                continue;
            }
            let of_group = (start - group.first_row, (stop - start) as usize);
            let before = rows.len();
            rows.resize_with(before + of_group.1, || Vec::with_capacity(columns.len()));
            for i in 0..columns.len() {
                let cells = self.cells(group.index, i, of_group, window, max_bytes);
                for (row, cell) in rows[before..].iter_mut().zip(cells) {
                    row.push(cell);
                }
            }
        }
        Rows {
            columns,
            num_columns,
            num_rows: self.list.iter().map(|group| group.rows).sum(),
            rows,
        }
    }

    /// The cells of a column in some rows of a group: from a row on, so many.
    fn cells(
        &self,
        index: usize,
        column: usize,
        rows: (u64, usize),
        window: &Window,
        max_bytes: usize,
    ) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(rows.1);
        let mut push = |cell| cells.push(cell);
        let read = contained(|| match &self.layout {
            Layout::Parquet(layout) => {
                layout.cells((index, column), rows, window, max_bytes, &mut push)
            }
            Layout::Arrow(layout) => {
                layout.cells((index, column), rows, window, max_bytes, &mut push)
            }
        });
        if let Err(fault) = read {
            cells.resize(rows.1, Cell::fault(fault.reason()));
        }
        cells
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
