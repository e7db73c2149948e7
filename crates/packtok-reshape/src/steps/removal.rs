//! Leaves out listed documents, and proves that the output has none of them.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use packtok_dataset::plans::split::document_hash;
use packtok_jobs::hex;
use packtok_pack::texts::Encoders;
use packtok_pbin::Reader;
use sha2::{Digest, Sha256};

use super::removed::{Removal, RemovalReport};
use super::retokenize::Enclosing;
use super::selection::{Reshaper, keep_going, next_number};
use super::truncation::shortened;
use crate::error::{Error, Result};

/// Numbers of documents that a report lists.
const MAX_LISTED: usize = 1000;
/// Documents that are decoded at a time.
const DECODED_DOCUMENTS: usize = 1024;
const HASH_PREFIX: &str = "sha256:";
/// Words that [`Origin`](packtok_pbin::Origin)s have before their number when they are shown.
const UNITS: [&str; 3] = ["byte ", "row ", "document "];

/// A document that is to be left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Entry {
    /// Its number among the documents of all files.
    Number(u64),
    /// Its source, and its place there.
    Origin(String, u64),
    /// SHA-256 of its text.
    TextHash(String),
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        if let Ok(number) = text.parse() {
            return Some(Self::Number(number));
        }
        if let Some(digits) = text.strip_prefix(HASH_PREFIX) {
            let is_hash =
                digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            return is_hash.then(|| Self::TextHash(digits.to_ascii_lowercase()));
        }
        let (source, place) = text.rsplit_once(':')?;
        let place = place.trim_start();
        let place = UNITS
            .iter()
            .find_map(|unit| place.strip_prefix(unit))
            .unwrap_or(place);
        Some(Self::Origin(source.to_owned(), place.parse().ok()?))
    }
}

/// The entries of `list`: a file with one on each line, where lines that start with `#` are comments,
/// or several with commas.
fn entries(list: &str) -> Result<Vec<(String, Entry)>> {
    let path = Path::new(list);
    let is_file = path.is_file();
    let content = if is_file {
        fs::read(path).map_err(Error::io(path))?
    } else {
        list.replace(',', "\n").into_bytes()
    };
    let mut entries = Vec::new();
    for (line, bytes) in (1..).zip(content.split(|&byte| byte == b'\n')) {
        let text = str::from_utf8(bytes).unwrap_or("\u{fffd}").trim();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let entry = Entry::parse(text).ok_or_else(|| Error::UnknownEntry {
            place: if is_file {
                format!("{list}: line {line}")
            } else {
                "--remove (remove)".to_owned()
            },
            text: text.to_owned(),
        })?;
        entries.push((text.to_owned(), entry));
    }
    Ok(entries)
}

impl Reshaper {
    /// Leaves out the documents that `lists` name.
    ///
    /// `encoders` decode the ids, for hashes of texts.
    ///
    /// # Errors
    /// A list cannot be read or has an unknown entry; a number has no document; there are hashes
    /// without a tokenizer.
    pub fn remove(
        &mut self,
        lists: &[String],
        encoders: Option<&Encoders>,
        num_threads: usize,
        check: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        let entries = lists.iter().map(|list| entries(list));
        let entries: Vec<_> = entries.collect::<Result<Vec<_>>>()?.concat();
        let wanted: HashSet<&Entry> = entries.iter().map(|(_, entry)| entry).collect();
        let mut matched: HashSet<Entry> = HashSet::new();
        let (mut numbers, mut origins) = (HashSet::new(), HashSet::new());
        self.start_step("remove", None);
        for entry in &wanted {
            if let Entry::Number(number) = **entry {
                if number >= self.num_documents() {
                    return Err(Error::NoSuchDocument {
                        number,
                        documents: self.num_documents(),
                    });
                }
                numbers.insert(number);
                matched.insert((*entry).clone());
            }
        }
        if wanted
            .iter()
            .any(|entry| matches!(entry, Entry::Origin(..)))
        {
            origins = self.match_origins(&wanted, &mut matched, &mut numbers, check)?;
        }
        if wanted
            .iter()
            .any(|entry| matches!(entry, Entry::TextHash(_)))
        {
            let encoders = encoders.ok_or(Error::NoTokenizerForHashes)?;
            self.match_texts(
                (encoders, num_threads),
                &wanted,
                &mut matched,
                &mut numbers,
                check,
            )?;
        }
        let unmatched = entries.iter().filter(|(_, entry)| !matched.contains(entry));
        let mut unmatched: Vec<_> = unmatched.map(|(text, _)| text.clone()).collect();
        let num_unmatched = unmatched.len() as u64;
        unmatched.truncate(MAX_LISTED);
        let mut numbers: Vec<u64> = numbers.into_iter().collect();
        numbers.sort_unstable();
        let is_used = |number: &u64| self.copies[*number as usize] > 0;
        let documents = numbers.iter().filter(|number| is_used(number)).count() as u64;
        for &number in &numbers {
            self.set_copies(number, 0)?;
        }
        self.removal = Some(Removal {
            report: RemovalReport {
                entries: entries.len() as u64,
                documents,
                unmatched,
                num_unmatched,
                is_proven_by_ids: false,
                same_ids: Vec::new(),
                num_same_ids: 0,
            },
            numbers,
            origins,
        });
        Ok(())
    }

    /// Adds the documents with listed origins, and returns these: source and place.
    fn match_origins(
        &self,
        wanted: &HashSet<&Entry>,
        matched: &mut HashSet<Entry>,
        numbers: &mut HashSet<u64>,
        check: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<HashSet<(u64, u64)>> {
        let mut origins = HashSet::new();
        let names = self.source_names();
        // Places by source, since a source is named by many entries.
        let mut places: HashMap<&str, HashSet<u64>> = HashMap::new();
        for entry in wanted {
            if let Entry::Origin(source, place) = entry {
                places.entry(source).or_default().insert(*place);
            }
        }
        let places: Vec<_> = names.iter().map(|name| places.get(name.as_str())).collect();
        let mut first = 0;
        while let Some(batch) = self.batch(first)? {
            let (sources, offsets) = self.origins(&batch)?;
            for ((&number, source), offset) in batch.iter().zip(sources).zip(offsets) {
                let places = places.get(source as usize).copied().flatten();
                if places.is_some_and(|places| places.contains(&offset)) {
                    numbers.insert(number);
                    origins.insert((source, offset));
                    matched.insert(Entry::Origin(names[source as usize].clone(), offset));
                }
            }
            first = next_number(&batch);
            keep_going(check)?;
        }
        Ok(origins)
    }

    fn match_texts(
        &self,
        (encoders, num_threads): (&Encoders, usize),
        wanted: &HashSet<&Entry>,
        matched: &mut HashSet<Entry>,
        numbers: &mut HashSet<u64>,
        check: &mut dyn FnMut() -> ControlFlow<()>,
    ) -> Result<()> {
        let enclosing = Enclosing::of(&self.inputs.metadata);
        let mut first = 0;
        while let Some(batch) = self.batch(first)? {
            for batch in batch.chunks(DECODED_DOCUMENTS) {
                let texts = self.texts(batch, &enclosing, encoders, num_threads, check)?;
                for (&number, text) in batch.iter().zip(texts) {
                    let entry = Entry::TextHash(hex(&Sha256::digest(text.as_bytes())));
                    if wanted.contains(&entry) {
                        numbers.insert(number);
                        matched.insert(entry);
                    }
                }
                keep_going(check)?;
            }
            first = next_number(&batch);
        }
        Ok(())
    }

    /// Checks that `output`, which is not published yet, has no document that was to be left out, and
    /// completes the report. `truncate_to` is the greatest length of its documents; `is_retokenized`
    /// says that its ids are others.
    ///
    /// # Errors
    /// [`Error::RemovedDocumentLeft`], which is a fault of this program.
    pub(super) fn prove_removal(
        &self,
        output: &Reader,
        truncate_to: Option<u64>,
        is_retokenized: bool,
    ) -> Result<Option<RemovalReport>> {
        let Some(removal) = &self.removal else {
            return Ok(None);
        };
        let mut report = removal.report.clone();
        let mut hashes = HashSet::new();
        for &number in &removal.numbers {
            let (input, bytes) = self.inputs.tokens(number)?;
            let width = input.file.width();
            let eod = self.inputs.metadata.eod.as_ref().map(|eod| eod.id);
            let (start, end) = shortened(bytes, width, truncate_to, eod);
            let document = [start, end].concat();
            hashes.insert(document_hash(&document, width, 0));
        }
        if output.has_origins() {
            output.for_each_origin(|document, origin| {
                if removal.origins.contains(&(origin.source, origin.offset)) {
                    return Err(Error::RemovedDocumentLeft { document });
                }
                Ok(())
            })?;
        }
        if is_retokenized {
            return Ok(Some(report));
        }
        report.is_proven_by_ids = true;
        for document in 0..output.len() {
            let hash = document_hash(output.document(document)?, output.width(), 0);
            if hashes.contains(&hash) {
                report.num_same_ids += 1;
                if report.same_ids.len() < MAX_LISTED {
                    report.same_ids.push(document);
                }
            }
        }
        output.release_pages();
        Ok(Some(report))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_numbers_origins_and_hashes_of_texts() {
        let origin = |source: &str, place| Some(Entry::Origin(source.to_owned(), place));
        assert_eq!(Entry::parse("17"), Some(Entry::Number(17)));
        assert_eq!(Entry::parse("a.jsonl:331"), origin("a.jsonl", 331));
        assert_eq!(Entry::parse("a.jsonl: byte 331"), origin("a.jsonl", 331));
        assert_eq!(Entry::parse("s3://b/a:b:7"), origin("s3://b/a:b", 7));
        let digits = "AB".repeat(32);
        let hash = Some(Entry::TextHash("ab".repeat(32)));
        assert_eq!(Entry::parse(&format!("sha256:{digits}")), hash);
        for text in ["", "-1", "a.jsonl", "sha256:12", "a.jsonl:x"] {
            assert_eq!(Entry::parse(text), None, "{text}");
        }
    }
}
