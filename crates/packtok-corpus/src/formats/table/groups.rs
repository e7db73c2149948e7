//! The groups of rows of a table file: their positions and numbers of rows.

use super::fault::{Fault, contained};
use super::group::Group;
use super::texts::Texts;
use super::window::Window;
use super::{arrow, parquet};
use crate::error::Error;
use crate::{CorpusFile, Format, Source};

/// The groups of a file, and the layout that decoding them requires.
pub(super) struct Groups {
    /// The groups that have rows, in row order.
    pub(super) list: Vec<Group>,
    /// The term of the format for a group.
    pub(super) name: &'static str,
    /// CRC32C of the part of the file that describes the groups.
    pub(super) crc32c: u32,
    pub(super) layout: Layout,
    /// Whether the groups are stored in row order, each after the previous one.
    pub(super) are_in_order: bool,
}

/// The layout that decoding the groups of a file requires.
pub(super) enum Layout {
    Parquet(parquet::Layout),
    Arrow(arrow::Layout),
}

impl Groups {
    /// The names of the columns that contain texts.
    fn text_columns(&self) -> Vec<String> {
        match &self.layout {
            Layout::Parquet(layout) => layout.text_columns(),
            Layout::Arrow(layout) => layout.text_columns(),
        }
    }

    /// The texts of `list[i]`.
    pub(super) fn texts(&self, i: usize, window: &Window) -> Result<Box<dyn Texts>, Fault> {
        let index = self.list[i].index;
        match &self.layout {
            Layout::Parquet(layout) => layout.texts(index, window),
            Layout::Arrow(layout) => layout.texts(index, window),
        }
    }
}

/// The groups of `source`, for reading the column `names`. Without `names`, the result only
/// provides the starts of the groups.
pub(super) fn open(
    source: &Source,
    window: &Window,
    names: Option<&[String]>,
) -> Result<Groups, Error> {
    let opened = contained(|| match source.format {
        Format::Arrow => {
            let (list, crc32c, layout) = arrow::open(window, names)?;
            Ok((list, crc32c, "record batch", Layout::Arrow(layout)))
        }
        _ => {
            let (list, crc32c, layout) = parquet::open(window, names)?;
            Ok((list, crc32c, "row group", Layout::Parquet(layout)))
        }
    });
    let column = names.map_or_else(String::new, |names| names.join("."));
    let (list, crc32c, name, layout) = opened.map_err(|fault| fault.of(source, &column))?;
    let mut groups = Groups {
        list,
        name,
        crc32c,
        layout,
        are_in_order: true,
    };
    // If the groups are not stored in row order, sharding and resuming treat the file as one unit.
    groups.list.retain(|group| group.rows > 0);
    groups.are_in_order = groups.list.is_sorted_by(|a, b| a.start < b.start);
    if !groups.are_in_order {
        for group in &mut groups.list {
            group.start = 0;
        }
    }
    Ok(groups)
}

/// For each of two offsets, the start of the first group that starts at or after it; the end of
/// the file if no group does. The first group counts as starting at 0, whatever precedes it in the
/// file.
pub(crate) fn group_starts(source: &Source, first: u64, second: u64) -> Result<(u64, u64), Error> {
    let groups = open(source, &opened(source)?, None)?;
    let start = |offset: u64| match offset {
        0 => 0,
        _ => {
            let mut starts = groups.list.iter().skip(1).map(|group| group.start);
            starts
                .find(|start| *start >= offset)
                .unwrap_or(source.bytes)
        }
    };
    Ok((start(first), start(second)))
}

/// Names of the columns of `source` that contain texts; fields of structures by their path.
pub(crate) fn text_columns(source: &Source) -> Result<Vec<String>, Error> {
    Ok(open(source, &opened(source)?, None)?.text_columns())
}

fn opened(source: &Source) -> Result<Window, Error> {
    let file = CorpusFile::of(source)?;
    Window::new(file).map_err(|cause| Error::io(&source.path, cause))
}
