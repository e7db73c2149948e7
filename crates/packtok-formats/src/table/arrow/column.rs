//! A column of bytes of an Arrow schema: its type, and its buffers in a record batch.

use arrow_ipc::{Endianness, Field, Precision, Schema, Type, UnionMode};

use super::super::fault::Fault;

/// The storage layout of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Storage {
    /// Contiguous, with offsets of 32 bits.
    Offsets32,
    /// Contiguous, with offsets of 64 bits.
    Offsets64,
    /// In any number of buffers, with a view of 16 bytes per value.
    Views,
    /// Contiguous, each with this length in bytes.
    Fixed(u64),
    /// Lists of numbers of this many bytes, with offsets of 32 bits that count numbers.
    Lists32(u64),
    /// The same with offsets of 64 bits.
    Lists64(u64),
    /// Lists of booleans, one bit each, with offsets of 32 bits that count them.
    BitLists32,
    /// The same with offsets of 64 bits.
    BitLists64,
}

/// What the elements of lists are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Unsigned,
    Signed,
    Float,
    Bool,
}

/// A column of lists of numbers of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListColumn {
    pub(super) column: Column,
    pub(super) element: Element,
    /// The names of the other columns.
    pub(super) others: Vec<String>,
}

/// A column of bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Column {
    pub(super) storage: Storage,
    /// One entry per structure around the column, and the last for the column itself: the number
    /// of its node and of its first buffer, the validity bitmap, which marks null rows.
    pub(super) path: Vec<Position>,
}

/// A position among the nodes, buffers and groups of view buffers of a record batch. The nodes and
/// buffers of all fields form one sequence, parents before their children. The data buffers of
/// views are not counted, because their number differs from batch to batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) node: usize,
    pub(super) buffer: usize,
    pub(super) views: usize,
}

/// The column `names`, or the name of its type if it does not contain bytes.
pub(super) fn find_column(
    schema: &Schema<'_>,
    names: &[String],
) -> Result<Result<Column, &'static str>, Fault> {
    if schema.endianness() != Endianness::Little {
        return Err(big_endian());
    }
    let fields: Vec<Field<'_>> = schema.fields().iter().flatten().collect();
    let mut position = Position::default();
    let mut path = Vec::new();
    let mut siblings = fields.clone();
    for (depth, name) in names.iter().enumerate() {
        let mut same = (0..siblings.len()).filter(|&i| siblings[i].name() == Some(name));
        let Some(first) = same.next() else {
            return Err(Fault::ColumnMissing(column_names(&fields)));
        };
        if let Some(second) = same.next() {
            return Err(Fault::ColumnTwice(first + 1, second + 1));
        }
        for field in &siblings[..first] {
            skip(field, &mut position)?;
        }
        let field = siblings[first];
        path.push(position);
        if depth + 1 == names.len() {
            return storage_of(&field)
                .map(|storage| storage.map(|storage| Column { storage, path }));
        }
        if field.type_type() != Type::Struct_ || field.dictionary().is_some() {
            return Err(Fault::ColumnMissing(column_names(&fields)));
        }
        // The validity bitmap is the only buffer of a structure.
        position.node += 1;
        position.buffer += 1;
        siblings = field.children().iter().flatten().collect();
    }
    Err(Fault::ColumnMissing(column_names(&fields)))
}

/// The column `name` of lists of integers, or with `is_mask` of numbers or booleans. It is no field of a structure.
pub(super) fn find_lists(
    schema: &Schema<'_>,
    name: &str,
    is_mask: bool,
) -> Result<ListColumn, Fault> {
    if schema.endianness() != Endianness::Little {
        return Err(big_endian());
    }
    let fields: Vec<Field<'_>> = schema.fields().iter().flatten().collect();
    let mut same = (0..fields.len()).filter(|&i| fields[i].name() == Some(name));
    let Some(first) = same.next() else {
        return Err(Fault::ColumnMissing(column_names(&fields)));
    };
    if let Some(second) = same.next() {
        return Err(Fault::ColumnTwice(first + 1, second + 1));
    }
    let mut position = Position::default();
    for field in &fields[..first] {
        skip(field, &mut position)?;
    }
    let refused = || {
        Fault::Unsupported(format!(
            "column {name} has no lists of integers; save it as list<int32>"
        ))
    };
    let children: Vec<Field<'_>> = fields[first].children().iter().flatten().collect();
    let (element, bytes) = match &children[..] {
        [child] if child.dictionary().is_none() => element_of(child),
        _ => None,
    }
    .filter(|(element, _)| is_mask || matches!(element, Element::Unsigned | Element::Signed))
    .ok_or_else(refused)?;
    let storage = match (fields[first].type_type(), element) {
        (Type::List, Element::Bool) => Storage::BitLists32,
        (Type::LargeList, Element::Bool) => Storage::BitLists64,
        (Type::List, _) => Storage::Lists32(bytes),
        (Type::LargeList, _) => Storage::Lists64(bytes),
        _ => return Err(refused()),
    };
    let names = column_names(&fields);
    Ok(ListColumn {
        column: Column {
            storage,
            path: vec![position],
        },
        element,
        others: names.into_iter().filter(|other| other != name).collect(),
    })
}

/// What the elements of lists are, and the bytes of one, where a boolean is a byte when it is read.
fn element_of(field: &Field<'_>) -> Option<(Element, u64)> {
    if let Some(integer) = field.type_as_int() {
        let bytes = match integer.bitWidth() {
            8 => 1,
            16 => 2,
            32 => 4,
            64 => 8,
            _ => return None,
        };
        let signs = [Element::Unsigned, Element::Signed];
        return Some((signs[usize::from(integer.is_signed())], bytes));
    }
    if let Some(float) = field.type_as_floating_point() {
        return match float.precision() {
            Precision::SINGLE => Some((Element::Float, 4)),
            Precision::DOUBLE => Some((Element::Float, 8)),
            _ => None,
        };
    }
    field.type_as_bool().map(|_| (Element::Bool, 1))
}

fn big_endian() -> Fault {
    Fault::Unsupported("its numbers are big-endian; write it again on another machine".to_owned())
}

/// The names of the columns of `schema` that contain texts, including fields of structures.
pub(super) fn text_columns(schema: &Schema<'_>) -> Vec<String> {
    let fields: Vec<Field<'_>> = schema.fields().iter().flatten().collect();
    let mut names = column_names(&fields);
    names.retain(|name| {
        let path: Vec<String> = name.split('.').map(str::to_owned).collect();
        // Most bytes of fixed length are hashes and other keys.
        let is_fixed = |column: &Column| matches!(column.storage, Storage::Fixed(_));
        matches!(find_column(schema, &path), Ok(Ok(column)) if !is_fixed(&column))
    });
    names
}

/// The names of all columns, including the fields of structures.
fn column_names(fields: &[Field<'_>]) -> Vec<String> {
    let mut names = Vec::new();
    for field in fields {
        let name = field.name().unwrap_or_default();
        match field.type_type() {
            Type::Struct_ => {
                let children: Vec<Field<'_>> = field.children().iter().flatten().collect();
                names.extend(
                    column_names(&children)
                        .into_iter()
                        .map(|child| format!("{name}.{child}")),
                );
            }
            _ => names.push(name.to_owned()),
        }
    }
    names
}

/// The storage layout of the values of a column, or the name of its type if it does not contain bytes.
fn storage_of(field: &Field<'_>) -> Result<Result<Storage, &'static str>, Fault> {
    if field.dictionary().is_some() {
        return match field.type_type() {
            Type::Utf8 | Type::LargeUtf8 | Type::Utf8View => Err(Fault::Unsupported(
                "the text column is dictionary-encoded; cast it to plain strings".to_owned(),
            )),
            _ => Ok(Err("a dictionary of other values than texts")),
        };
    }
    Ok(match field.type_type() {
        Type::Utf8 | Type::Binary => Ok(Storage::Offsets32),
        Type::LargeUtf8 | Type::LargeBinary => Ok(Storage::Offsets64),
        Type::Utf8View | Type::BinaryView => Ok(Storage::Views),
        Type::Null => Err("null"),
        Type::Int => Err("an integer"),
        Type::FloatingPoint => Err("a floating-point number"),
        Type::Bool => Err("a boolean"),
        Type::Decimal => Err("a decimal"),
        Type::Struct_ => Err("a structure"),
        Type::List
        | Type::LargeList
        | Type::FixedSizeList
        | Type::ListView
        | Type::LargeListView => Err("a list"),
        Type::Map => Err("a map"),
        Type::FixedSizeBinary => {
            let width = field
                .type_as_fixed_size_binary()
                .map(|kind| kind.byteWidth());
            let width = width.and_then(|width| u64::try_from(width).ok());
            let width = width.ok_or_else(|| Fault::Damaged("a column has no width".to_owned()))?;
            Ok(Storage::Fixed(width))
        }
        Type::Date | Type::Time | Type::Timestamp | Type::Duration | Type::Interval => {
            Err("a time")
        }
        _ => Err("not a text"),
    })
}

/// Moves `position` beyond this field and its children.
pub(super) fn skip(field: &Field<'_>, position: &mut Position) -> Result<(), Fault> {
    skip_without_children(field, position)?;
    // The children of a dictionary are in its own batches.
    if field.dictionary().is_none() {
        for child in field.children().iter().flatten() {
            skip(&child, position)?;
        }
    }
    Ok(())
}

/// Moves `position` beyond this field, to its first child.
pub(super) fn skip_without_children(
    field: &Field<'_>,
    position: &mut Position,
) -> Result<(), Fault> {
    position.node += 1;
    if field.dictionary().is_some() {
        // The keys of the dictionary, which are integers.
        position.buffer += 2;
        return Ok(());
    }
    position.buffer += match field.type_type() {
        Type::Null | Type::RunEndEncoded => 0,
        Type::Struct_ | Type::FixedSizeList => 1,
        Type::Utf8 | Type::LargeUtf8 | Type::Binary | Type::LargeBinary => 3,
        Type::ListView | Type::LargeListView => 3,
        Type::Union => match field.type_as_union().map(|union| union.mode()) {
            Some(UnionMode::Dense) => 2,
            _ => 1,
        },
        // Two, and the buffers of values.
        Type::Utf8View | Type::BinaryView => {
            position.views += 1;
            2
        }
        Type::NONE => return Err(Fault::Damaged("a column has no type".to_owned())),
        _ => 2,
    };
    Ok(())
}
