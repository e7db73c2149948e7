//! Messages of Arrow: where the description and the body of each are.

use arrow_ipc::{Message as Parsed, MessageHeader, root_as_message};
use bytes::Bytes;

use super::super::fault::Fault;
use super::super::window::Window;

/// Precedes the length of a description in all files except those written before Arrow 0.15.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];

/// A message of a file.
#[derive(Debug, Clone)]
pub(super) struct Message {
    /// Offset of its first byte.
    pub(super) start: u64,
    pub(super) header: MessageHeader,
    /// Number of rows, for a record batch.
    pub(super) rows: u64,
    description_start: u64,
    description_bytes: usize,
    body_bytes: u64,
}

impl Message {
    /// The bytes of the description.
    pub(super) fn description(&self, window: &Window) -> Result<Bytes, Fault> {
        Ok(window.bytes(self.description_start, self.description_bytes)?)
    }

    /// Offset of its body.
    pub(super) fn body_start(&self) -> u64 {
        self.description_start + self.description_bytes as u64
    }

    /// The end of its body.
    pub(super) fn end(&self) -> u64 {
        self.body_start() + self.body_bytes
    }
}

/// The message at `start`; `None` if the stream ends there.
pub(super) fn message_at(window: &Window, start: u64) -> Result<Option<Message>, Fault> {
    let four = |at: u64| -> Result<[u8; 4], Fault> {
        let bytes = window.bytes(at, 4)?;
        Ok([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let mut prefix_bytes = 4;
    let mut len = four(start)?;
    if len == CONTINUATION {
        len = four(start.saturating_add(4))?;
        prefix_bytes = 8;
    }
    let invalid = |reason: &str| Fault::Damaged(format!("message at byte {start}: {reason}"));
    let description_bytes =
        usize::try_from(i32::from_le_bytes(len)).map_err(|_| invalid("its length is negative"))?;
    if description_bytes == 0 {
        return Ok(None);
    }
    let description_start = start + prefix_bytes;
    let bytes = window.bytes(description_start, description_bytes)?;
    let parsed = parse(&bytes, start)?;
    let rows = match parsed.header_as_record_batch() {
        Some(batch) => {
            let first_column = batch.nodes().filter(|nodes| !nodes.is_empty());
            if first_column.is_some_and(|nodes| nodes.get(0).length() != batch.length()) {
                return Err(invalid("its first column has another number of rows"));
            }
            u64::try_from(batch.length()).map_err(|_| invalid("its number of rows is negative"))?
        }
        None => 0,
    };
    let body_bytes = u64::try_from(parsed.bodyLength())
        .map_err(|_| invalid("the length of its body is negative"))?;
    let message = Message {
        start,
        header: parsed.header_type(),
        rows,
        description_start,
        description_bytes,
        body_bytes,
    };
    match message.body_start().checked_add(body_bytes) {
        Some(_) => Ok(Some(message)),
        None => Err(invalid("its body exceeds the file")),
    }
}

/// The description of the message at `start`.
pub(super) fn parse(description: &[u8], start: u64) -> Result<Parsed<'_>, Fault> {
    root_as_message(description)
        .map_err(|cause| Fault::Damaged(format!("message at byte {start} is invalid: {cause}")))
}
