//! Patterns of personal data and of secrets.
//!
//! The patterns prefer misses to false alarms: a number without separators or a leading `+` is not a phone
//! number, and a key has the prefix of its issuer.

use std::sync::LazyLock;

use regex::bytes::Regex;

/// `name@host.tld`.
pub(super) static EMAIL: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\b[A-Za-z0-9._%+-]+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,24}\b"));

// Two patterns, because each of them has characters that a vectorized search finds, and both together do not.
static INTERNATIONAL: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"\+[1-9](?:[0-9]{8,14}\b|[0-9]{0,2}(?:[ .-]\(?[0-9]{2,8}\)?){2,5}\b)",
        r"|\([0-9]{3}\) ?[0-9]{3}[ .-][0-9]{4}\b",
    ))
});
static AMERICAN: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\b[0-9]{3}(?:-[0-9]{3}-|\.[0-9]{3}\.)[0-9]{4}\b"));

/// The number of phone numbers: international ones with a `+`, and American ones with separators.
pub(super) fn num_phones(text: &[u8]) -> u64 {
    let mut num_phones = INTERNATIONAL.find_iter(text).count() as u64;
    let mut international = INTERNATIONAL.find_iter(text).peekable();
    for american in AMERICAN.find_iter(text) {
        while international
            .next_if(|number| number.end() <= american.start())
            .is_some()
        {}
        // The end of an international number may look like an American one.
        let is_part = international
            .peek()
            .is_some_and(|number| number.start() < american.end());
        num_phones += u64::from(!is_part);
    }
    num_phones
}

/// Private keys in PEM, and tokens of AWS, GitHub, GitLab, Google, Hugging Face, OpenAI, Anthropic, Slack and
/// Stripe.
pub(super) static KEY: LazyLock<Regex> = LazyLock::new(|| {
    compiled(concat!(
        r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----",
        r"|\bA(?:KIA|SIA)[0-9A-Z]{16}\b",
        r"|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bgithub_pat_[A-Za-z0-9_]{60,}|\bglpat-[A-Za-z0-9_-]{20}",
        r"|\bAIza[0-9A-Za-z_-]{35}|\bhf_[A-Za-z0-9]{34}\b",
        r"|\bsk-(?:proj|ant-[a-z0-9]{2,8})-[A-Za-z0-9_-]{32,}|\bsk-[A-Za-z0-9]{40,}",
        r"|\bxox[abprs]-[0-9A-Za-z-]{10,}|\b[rs]k_live_[0-9A-Za-z]{16,}",
    ))
});

#[expect(clippy::unwrap_used, reason = "the patterns are constants")]
fn compiled(pattern: &str) -> Regex {
    // Letters and word boundaries are those of ASCII.
    Regex::new(&format!("(?-u:{pattern})")).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched<'a>(pattern: &Regex, texts: &[&'a str]) -> Vec<&'a str> {
        let matches = |text: &&str| pattern.is_match(text.as_bytes());
        texts.iter().copied().filter(matches).collect()
    }

    fn assert_only(pattern: &Regex, expected: &[&str], others: &[&str]) {
        assert_eq!(matched(pattern, expected), expected);
        assert_eq!(matched(pattern, others), [""; 0]);
    }

    #[test]
    fn patterns_match_addresses_numbers_and_keys_and_little_else() {
        let others = ["a @ b.c", "@user", "x@localhost", "a@b", "user@10.0.0.1"];
        assert_only(
            &EMAIL,
            &["to a.b+c@mail.example.org.", "Ünal:x@y.de"],
            &others,
        );
        let phones = [
            "+49 89 123456",
            "+4989123456",
            "+1 (555) 123-4567",
            "(555) 123-4567",
            "555-123-4567",
        ];
        let others = [
            "1234567890",
            "2024-10-11",
            "1 + 2 = 3",
            "x+1000",
            "10.1.2.3",
            "978-3-16-148410-0",
        ];
        assert_eq!(phones.map(|text| num_phones(text.as_bytes())), [1; 5]);
        assert_eq!(others.map(|text| num_phones(text.as_bytes())), [0; 6]);
        let letters = "abcdefghijklmnopqrstuvwxyz0123456789";
        let keys = [
            "id AKIAABCDEFGHIJKLMNOP".to_owned(),
            "-----BEGIN RSA PRIVATE KEY-----".to_owned(),
            "-----BEGIN PRIVATE KEY-----".to_owned(),
            format!("ghp_{letters}"),
            format!("hf_{}", &letters[..34]),
            format!("sk-ant-api03-{letters}"),
            "sk_live_abcdefghijklmnop".to_owned(),
        ];
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let others = [
            "task-force",
            "-----BEGIN PUBLIC KEY-----",
            "sk-learn",
            "AKIA",
            "ghp_short",
            "xoxo",
        ];
        assert_only(&KEY, &keys, &others);
    }
}
