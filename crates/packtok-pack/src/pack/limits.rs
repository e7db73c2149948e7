//! `max_documents` and `max_tokens`: end a run at the same line for any chunk size.

use packtok_jobs::Flow;
use packtok_pbin::{Counts, TokenWidth};

use super::worker::{DocBatch, Outcome};

/// The remaining limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    documents: u64,
    tokens: u64,
}

impl Limits {
    pub(crate) fn new(max_documents: Option<u64>, max_tokens: Option<u64>) -> Self {
        Self {
            documents: max_documents.unwrap_or(u64::MAX),
            tokens: max_tokens.unwrap_or(u64::MAX),
        }
    }

    /// The remaining limits after `counts`.
    pub(crate) fn after(self, counts: &Counts) -> Self {
        Self {
            documents: self.documents.saturating_sub(counts.documents),
            tokens: self.tokens.saturating_sub(counts.tokens),
        }
    }

    /// Truncates `batch` at the limits.
    ///
    /// If a limit is reached exactly, the run ends before the next line. If a document would
    /// exceed a limit, the run ends before its line. Later lines are neither counted nor judged,
    /// so the counts do not depend on chunk boundaries.
    pub(crate) fn cut(&mut self, batch: &mut DocBatch, width: TokenWidth) -> Flow {
        let (num_kept, kept_bytes) = self.take(&batch.document_bytes, width);
        let is_exhausted = self.documents == 0 || self.tokens == 0;
        let num_lines = match num_kept < batch.document_bytes.len() {
            _ if is_exhausted => line_of_document(&batch.outcomes, num_kept.checked_sub(1))
                .map_or(0, |line| line + 1),
            true => line_of_document(&batch.outcomes, Some(num_kept)).unwrap_or(0),
            false => return Flow::Continue,
        };
        batch.document_bytes.truncate(num_kept);
        batch.offsets.truncate(num_kept);
        batch.texts.truncate(num_kept);
        batch.data.truncate(kept_bytes as usize);
        batch
            .eods_in_text
            .retain(|&(document, _)| document < num_kept);
        batch.outcomes.truncate(num_lines);
        batch.rejects.retain(|reject| reject.line < num_lines);
        batch.is_fatal = false;
        Flow::Stop
    }

    /// Subtracts documents from the limits; returns how many fit and their bytes.
    fn take(&mut self, document_bytes: &[u64], width: TokenWidth) -> (usize, u64) {
        let mut kept_bytes = 0;
        for (i, bytes) in document_bytes.iter().enumerate() {
            let tokens = bytes / width.bytes();
            if self.documents == 0 || tokens > self.tokens {
                return (i, kept_bytes);
            }
            self.documents -= 1;
            self.tokens -= tokens;
            kept_bytes += bytes;
        }
        (document_bytes.len(), kept_bytes)
    }
}

/// Index of the line that a packed document comes from.
fn line_of_document(outcomes: &[Outcome], document: Option<usize>) -> Option<usize> {
    let mut packed = (0..)
        .zip(outcomes)
        .filter(|(_, outcome)| **outcome == Outcome::Packed);
    packed.nth(document?).map(|(line, _)| line)
}

#[cfg(test)]
mod tests {
    use Outcome::{Blank, Empty, Packed};

    use super::*;

    fn batch() -> DocBatch {
        DocBatch {
            data: vec![0; 12],
            document_bytes: vec![2, 6, 4],
            eods_in_text: vec![(1, 1), (2, 3)],
            outcomes: vec![Blank, Packed, Empty, Packed, Blank, Packed, Blank],
            ..DocBatch::default()
        }
    }

    #[test]
    fn without_limits_nothing_is_cut() {
        let mut batch = batch();
        assert_eq!(
            Limits::new(None, None).cut(&mut batch, TokenWidth::U16),
            Flow::Continue
        );
        assert_eq!(batch.outcomes.len(), 7);
    }

    #[test]
    fn the_cut_is_after_an_exact_fit_and_before_what_exceeds() {
        for (max_documents, max_tokens, num_documents, num_lines) in [
            (Some(2), None, 2, 4),
            (None, Some(4), 2, 4),
            (None, Some(5), 2, 5),
            (None, Some(3), 1, 3),
            (Some(1), Some(100), 1, 2),
            (Some(3), None, 3, 6),
            (Some(0), None, 0, 0),
        ] {
            let mut batch = batch();
            let mut limits = Limits::new(max_documents, max_tokens);
            assert_eq!(limits.cut(&mut batch, TokenWidth::U16), Flow::Stop);
            assert_eq!(batch.document_bytes, [2, 6, 4][..num_documents]);
            assert_eq!(
                batch.data.len() as u64,
                batch.document_bytes.iter().sum::<u64>()
            );
            assert_eq!(batch.outcomes.len(), num_lines);
            assert!(batch.eods_in_text.iter().all(|&(i, _)| i < num_documents));
        }
    }

    #[test]
    fn limits_continue_across_batches() {
        let mut limits = Limits::new(Some(4), None);
        assert_eq!(limits.cut(&mut batch(), TokenWidth::U16), Flow::Continue);
        let mut second = batch();
        assert_eq!(limits.cut(&mut second, TokenWidth::U16), Flow::Stop);
        assert_eq!(second.document_bytes, [2]);
    }
}
