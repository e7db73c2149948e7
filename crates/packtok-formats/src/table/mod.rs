//! Tables whose rows are in groups: row groups of Parquet, record batches of Arrow.
//!
//! [`Groups::open`] finds the groups of a file and one column of its schema, and
//! [`Groups::values`] decodes the values of this column in one group, one by one. A group is a
//! range of bytes of the file, so a caller can divide a file between groups and resume there.
//!
//! The files are foreign: no length that a file declares sizes an allocation unless the file can
//! contain that much, and a group of any size needs memory for about one page. The libraries that
//! decode damaged files may panic, so callers decode in [`contained`].

mod arrow;
mod cells;
mod fault;
mod group;
mod groups;
mod parquet;
mod values;
mod window;

pub use arrow::ArrowIdLists;
pub use cells::Cell;
pub use fault::{Fault, contained, is_panic_contained};
pub use group::Group;
pub use groups::{Groups, Rows, TableFormat};
pub use parquet::{IdLists, Lists};
pub use values::{Value, Values};
pub use window::{ReadAt, Window, WindowReader, WorkLimits};
