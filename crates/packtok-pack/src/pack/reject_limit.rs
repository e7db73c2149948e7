//! `max_rejects`: the number of documents that a successful run may reject.
//!
//! A count is exceeded at a specific line, and the run ends there. A percentage is only known at
//! the end of the corpus. Both are evaluated on the ordered counts, so they do not depend on
//! threads.

use std::fmt;
use std::str::FromStr;

use packtok_pbin::Counts;
use serde::{Deserialize, Serialize};

/// Maximum number of decimals in a percentage.
const DECIMALS: usize = 9;
const UNITS_PER_PERCENT: u64 = 10u64.pow(DECIMALS as u32);
const ALL: u64 = 100 * UNITS_PER_PERCENT;

/// The maximum number of rejected documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum RejectLimit {
    /// A number of documents.
    Count(u64),
    /// A percentage of all documents: all lines that are not blank.
    Percent(Percent),
}

/// A percentage from 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percent {
    /// The percentage in units of 1e-9 %.
    units: u64,
}

/// The error that a text is not a valid limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a number such as 100, or a percentage from 0% to 100% such as 0.5%")]
pub struct NotALimit;

impl FromStr for RejectLimit {
    type Err = NotALimit;

    fn from_str(text: &str) -> std::result::Result<Self, NotALimit> {
        let Some(percent) = text.strip_suffix('%') else {
            return digits(text).map(Self::Count);
        };
        let (whole, decimals) = match percent.split_once('.') {
            Some((_, decimals)) if decimals.is_empty() || decimals.len() > DECIMALS => {
                return Err(NotALimit);
            }
            Some((whole, decimals)) => (whole, format!("{decimals:0<DECIMALS$}")),
            None => (percent, "0".to_owned()),
        };
        let units = digits(whole)?
            .checked_mul(UNITS_PER_PERCENT)
            .and_then(|units| units.checked_add(digits(&decimals).ok()?));
        match units {
            Some(units) if units <= ALL => Ok(Self::Percent(Percent { units })),
            _ => Err(NotALimit),
        }
    }
}

/// Parses a number that consists of digits only.
fn digits(text: &str) -> std::result::Result<u64, NotALimit> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        text.parse().map_err(|_| NotALimit)
    } else {
        Err(NotALimit)
    }
}

impl fmt::Display for RejectLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Percent(Percent { units }) => {
                let decimals = format!("{:0DECIMALS$}", units % UNITS_PER_PERCENT);
                let text = format!("{}.{decimals}", units / UNITS_PER_PERCENT);
                write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

impl From<RejectLimit> for String {
    fn from(limit: RejectLimit) -> Self {
        limit.to_string()
    }
}

impl TryFrom<String> for RejectLimit {
    type Error = NotALimit;

    fn try_from(text: String) -> std::result::Result<Self, NotALimit> {
        text.parse()
    }
}

/// The limit that was exceeded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages describe variants and fields")]
pub enum RejectFault {
    #[error("nothing was packed: {} rejected", share(*.rejected, *.documents))]
    NothingPacked { rejected: u64, documents: u64 },
    #[error("more documents were rejected than max_rejects allows ({allowed})")]
    Count { allowed: u64 },
    #[error("{} rejected, but max_rejects allows {allowed}", share(*.rejected, *.documents))]
    Percent {
        rejected: u64,
        documents: u64,
        allowed: RejectLimit,
    },
}

fn share(rejected: u64, documents: u64) -> String {
    match (rejected, documents) {
        (1, 1) => "the only document was".to_owned(),
        (rejected, documents) if rejected == documents => format!("all {documents} documents were"),
        (1, documents) => format!("1 of {documents} documents was"),
        (rejected, documents) => format!("{rejected} of {documents} documents were"),
    }
}

impl RejectFault {
    /// The remedy, in addition to reading the rejects.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::NothingPacked { .. } => {
                "or allow an empty output with --max-rejects 100% (max_rejects: 100%)"
            }
            Self::Count { .. } | Self::Percent { .. } => "or raise --max-rejects (max_rejects)",
        }
    }

    /// The fault of the counts of a complete corpus under `limit`.
    pub(crate) fn of_complete(
        limit: Option<RejectLimit>,
        counts: &Counts,
        stopped_early: bool,
    ) -> Option<Self> {
        let rejected = counts.rejected;
        let documents = counts.lines - counts.blank;
        // With a limit on documents or tokens, packing no document may be correct.
        let is_nothing = counts.packed == 0 && rejected > 0 && !stopped_early;
        let allows_all = limit == Some(RejectLimit::Percent(Percent { units: ALL }));
        Self::of_part(limit, rejected)
            .or_else(|| match limit {
                Some(allowed @ RejectLimit::Percent(Percent { units })) => {
                    let is_over = u128::from(rejected) * u128::from(ALL)
                        > u128::from(units) * u128::from(documents);
                    // `NothingPacked` is the more informative error.
                    (is_over && !is_nothing).then_some(Self::Percent {
                        rejected,
                        documents,
                        allowed,
                    })
                }
                Some(RejectLimit::Count(_)) | None => None,
            })
            .or_else(|| {
                (is_nothing && !allows_all).then_some(Self::NothingPacked {
                    rejected,
                    documents,
                })
            })
    }

    /// The fault of partial counts, if the rest of the corpus cannot undo it.
    pub(crate) fn of_part(limit: Option<RejectLimit>, rejected: u64) -> Option<Self> {
        match limit {
            Some(RejectLimit::Count(allowed)) if rejected > allowed => {
                Some(Self::Count { allowed })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(packed: u64, rejected: u64, blank: u64, empty: u64) -> Counts {
        Counts {
            documents: packed,
            packed,
            rejected,
            blank,
            empty,
            lines: packed + rejected + blank + empty,
            ..Counts::default()
        }
    }

    #[test]
    fn a_limit_is_a_number_or_a_percentage() {
        for (text, expected) in [
            ("0", "0"),
            ("007", "7"),
            ("18446744073709551615", "18446744073709551615"),
            ("0%", "0%"),
            ("1%", "1%"),
            ("0.50%", "0.5%"),
            ("33.333333333%", "33.333333333%"),
            ("100%", "100%"),
            ("100.000%", "100%"),
        ] {
            assert_eq!(
                text.parse::<RejectLimit>().map(|limit| limit.to_string()),
                Ok(expected.to_owned())
            );
        }
        for text in [
            "",
            "%",
            "-1",
            "+1",
            "1.5",
            "1 %",
            " 1",
            "101%",
            "100.000000001%",
            "-1%",
            ".5%",
            "1.%",
            "1%%",
            "0.0000000001%",
            "18446744073709551616",
            "many",
            "1e3",
            "١",
            "nan%",
        ] {
            assert_eq!(text.parse::<RejectLimit>(), Err(NotALimit), "{text:?}");
        }
    }

    #[test]
    fn a_percentage_counts_lines_that_are_not_blank_and_is_inclusive() {
        let fault = |limit: &str, counts| {
            RejectFault::of_complete(Some(limit.parse().unwrap()), &counts, false)
        };
        assert_eq!(fault("25%", counts(2, 1, 90, 1)), None);
        let message = fault("24.999999999%", counts(2, 1, 90, 1))
            .unwrap()
            .to_string();
        assert_eq!(
            message,
            "1 of 4 documents was rejected, but max_rejects allows 24.999999999%"
        );
        assert_eq!(fault("1", counts(1, 1, 0, 0)), None);
        assert_eq!(
            fault("0", counts(1, 1, 0, 0)),
            Some(RejectFault::Count { allowed: 0 })
        );
        // The multiplication does not overflow.
        assert_eq!(fault("100%", counts(0, u64::MAX, 0, 0)), None);
    }

    #[test]
    fn nothing_packed_is_a_fault_unless_all_may_be_rejected() {
        let fault = |limit: Option<&str>, counts, stopped_early| {
            let limit = limit.map(|limit| limit.parse().unwrap());
            RejectFault::of_complete(limit, &counts, stopped_early).map(|fault| fault.to_string())
        };
        let all = Some("nothing was packed: all 2 documents were rejected".to_owned());
        assert_eq!(fault(None, counts(0, 2, 1, 0), false), all);
        assert_eq!(fault(Some("5%"), counts(0, 2, 1, 0), false), all);
        assert_eq!(fault(Some("2"), counts(0, 2, 1, 0), false), all);
        assert_eq!(fault(Some("100%"), counts(0, 2, 1, 0), false), None);
        let some = "nothing was packed: 1 of 3 documents was rejected";
        assert_eq!(
            fault(None, counts(0, 1, 0, 2), false),
            Some(some.to_owned())
        );
        assert_eq!(fault(None, counts(0, 0, 5, 2), false), None);
        assert_eq!(fault(None, counts(0, 0, 0, 0), false), None);
        assert_eq!(fault(None, counts(1, 9, 0, 0), false), None);
        assert_eq!(fault(None, counts(0, 1, 0, 0), true), None);
    }
}
