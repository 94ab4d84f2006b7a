//! Formats of tokens: how they begin, how long they are, and how they are checked.
//!
//! The formats are those that the issuers publish or that their tokens were seen to have. A format without a checksum
//! needs a marker that ordinary text does not have, and a length.

use std::ops::{Range, RangeInclusive};

use memchr::memmem::find;

use crate::placeholder::is_placeholder;

/// One format of tokens.
pub(crate) struct TokenFormat {
    /// Who issues them.
    pub(crate) issuer: &'static str,
    /// What they begin with, or contain.
    pub(crate) markers: &'static [&'static str],
    alphabet: Alphabet,
    /// How many characters follow the marker.
    len: RangeInclusive<usize>,
    check: Check,
}

/// The characters of a token.
#[derive(Clone, Copy)]
enum Alphabet {
    Hex,
    /// Letters and digits.
    Alphanumeric,
    /// Letters, digits, `-` and `_`.
    UrlSafe,
    /// Letters, digits, `-`, `_` and `.`.
    Dotted,
    /// Letters, digits, `+`, `/` and `=`.
    Base64,
    /// Upper-case letters and digits.
    Upper,
    /// Upper-case letters and the digits 2 to 7.
    Base32,
}

/// What else must hold.
#[derive(Clone, Copy)]
enum Check {
    Nothing,
    /// The last six characters are the CRC-32 of the others, in base 62.
    Crc32,
    /// The text ends with this.
    EndsWith(&'static str),
    /// The marker lies in the middle: so many characters are before it at least.
    Middle(usize),
    /// The first groups between separators have these lengths.
    Groups(u8, &'static [RangeInclusive<usize>]),
}

const fn format(
    issuer: &'static str,
    markers: &'static [&'static str],
    alphabet: Alphabet,
    len: RangeInclusive<usize>,
) -> TokenFormat {
    TokenFormat { issuer, markers, alphabet, len, check: Check::Nothing }
}

impl TokenFormat {
    const fn checked(self, check: Check) -> Self {
        Self { check, ..self }
    }
}

use Alphabet::{Alphanumeric, Base32, Base64, Dotted, Hex, Upper, UrlSafe};

/// All known formats.
pub(crate) const TOKENS: &[TokenFormat] = &[
    format("GitHub", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], Alphanumeric, 36..=36).checked(Check::Crc32),
    format("GitHub", &["github_pat_"], UrlSafe, 82..=82).checked(Check::Groups(b'_', &[22..=22, 59..=59])),
    format("npm", &["npm_"], Alphanumeric, 36..=36).checked(Check::Crc32),
    format("GitLab", &["glpat-", "gldt-", "glrt-", "glptt-", "glcbt-", "glsoat-"], Dotted, 20..=64),
    format("Anthropic", &["sk-ant-api03-", "sk-ant-admin01-"], UrlSafe, 95..=95)
        .checked(Check::EndsWith("AA")),
    format("Anthropic", &["sk-ant-oat01-", "sk-ant-ort01-"], UrlSafe, 80..=120),
    format("OpenAI", &["T3BlbkFJ"], UrlSafe, 20..=120).checked(Check::Middle(20)),
    format("OpenRouter", &["sk-or-v1-"], Hex, 64..=64),
    format("Google", &["AIza"], UrlSafe, 35..=35),
    format("Google", &["GOCSPX-"], UrlSafe, 28..=28),
    format("Google", &["ya29."], UrlSafe, 60..=2000),
    format("AWS", &["AKIA", "ASIA"], Base32, 16..=16),
    format("Hugging Face", &["hf_"], Alphanumeric, 34..=34),
    format("Groq", &["gsk_"], Alphanumeric, 52..=52),
    format("xAI", &["xai-"], Alphanumeric, 80..=80),
    format("Replicate", &["r8_"], Alphanumeric, 37..=37),
    format("Perplexity", &["pplx-"], Alphanumeric, 48..=48),
    format("Slack", &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxe-"], UrlSafe, 30..=250)
        .checked(Check::Groups(b'-', &[10..=14, 10..=14])),
    format("Slack", &["hooks.slack.com/services/"], Base64, 40..=60)
        .checked(Check::Groups(b'/', &[9..=12, 9..=12, 24..=24])),
    format("Stripe", &["sk_live_", "rk_live_", "whsec_"], Alphanumeric, 24..=250),
    format("PyPI", &["pypi-AgEIcHlwaS5vcmc", "pypi-AgENdGVzdC5weXBpLm9yZw"], UrlSafe, 50..=1000),
    format("SendGrid", &["SG."], Dotted, 66..=66).checked(Check::Groups(b'.', &[22..=22, 43..=43])),
    format("DigitalOcean", &["dop_v1_", "doo_v1_", "dor_v1_"], Hex, 64..=64),
    format("Databricks", &["dapi"], Hex, 32..=32),
    format("Shopify", &["shpat_", "shpca_", "shppa_", "shpss_"], Hex, 32..=32),
    format("Linear", &["lin_api_", "lin_oauth_"], Alphanumeric, 40..=64),
    format("Vault", &["hvs.", "hvb."], UrlSafe, 24..=300),
    format("Doppler", &["dp.pt.", "dp.st.", "dp.sa.", "dp.ct."], Dotted, 40..=64),
    format("Supabase", &["sbp_"], Hex, 40..=40),
    format("Grafana", &["glsa_"], UrlSafe, 41..=41).checked(Check::Groups(b'_', &[32..=32, 8..=8])),
    format("Atlassian", &["ATATT3xFfGF0"], UrlSafe, 150..=250),
    format("Postman", &["PMAK-"], UrlSafe, 59..=59).checked(Check::Groups(b'-', &[24..=24, 34..=34])),
    format("New Relic", &["NRAK-"], Upper, 27..=27),
    format("Azure Storage", &["AccountKey="], Base64, 88..=88).checked(Check::EndsWith("==")),
    format("age", &["AGE-SECRET-KEY-1"], Upper, 58..=58),
];

impl TokenFormat {
    /// Returns where a token is that has a marker at some position.
    pub(crate) fn span(&self, text: &[u8], marker: Range<usize>) -> Option<Range<usize>> {
        let rest = text.get(marker.end..)?;
        let len = rest.iter().take_while(|byte| self.alphabet.contains(**byte)).count();
        // A longer word that begins like a token is another word.
        if rest.get(len).is_some_and(u8::is_ascii_alphanumeric) {
            return None;
        }
        let body = str_of(&rest[..len])?;
        // A full stop behind a token ends the sentence.
        let body = body.trim_end_matches('.');
        let start = self.start(text, marker.start)?;
        let fits = self.len.contains(&body.len()) && self.check(body) && !is_placeholder(body);
        fits.then_some(start..marker.end + body.len())
    }

    /// Returns where the token begins. What is checked by a checksum may begin anywhere.
    fn start(&self, text: &[u8], marker: usize) -> Option<usize> {
        let before = &text[..marker];
        match self.check {
            Check::Crc32 => Some(marker),
            Check::Middle(least) => {
                let part = before.iter().rev().take(200);
                let len = part.take_while(|byte| self.alphabet.contains(**byte)).count();
                let start = find(&before[marker - len..], b"sk-")?;
                (len - start >= least).then_some(marker - len + start)
            }
            _ => is_boundary(before).then_some(marker),
        }
    }

    fn check(&self, body: &str) -> bool {
        match self.check {
            Check::Nothing | Check::Middle(_) => true,
            Check::Crc32 => has_checksum(body),
            Check::EndsWith(end) => body.ends_with(end),
            Check::Groups(separator, lengths) => {
                let mut groups = body.split(char::from(separator));
                lengths.iter().all(|length| groups.next().is_some_and(|group| length.contains(&group.len())))
            }
        }
    }
}

impl Alphabet {
    fn contains(self, byte: u8) -> bool {
        match self {
            Self::Hex => byte.is_ascii_hexdigit(),
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::UrlSafe => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Base32 => byte.is_ascii_uppercase() || matches!(byte, b'2'..=b'7'),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
        }
    }
}

/// Returns whether a token may begin behind this text: not in the middle of a word. `\n` and `%3D` are not letters.
fn is_boundary(before: &[u8]) -> bool {
    match before {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', high, low] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => true,
        [.., last] => !last.is_ascii_alphanumeric() && !matches!(last, b'_' | b'-'),
        [] => true,
    }
}

fn str_of(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The digits of base 62, as GitHub and npm write them.
const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn has_checksum(body: &str) -> bool {
    let Some((random, checksum)) = body.split_at_checked(body.len().saturating_sub(6)) else { return false };
    let mut number = crc32fast::hash(random.as_bytes());
    let mut expected = [DIGITS[0]; 6];
    for digit in expected.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    checksum.as_bytes() == expected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_that_does_not_fit_is_not_a_token() {
        assert!(has_checksum("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq17"));
        assert!(!has_checksum("zQWBuTSOoRi4A9spHcVY5ncnsDkxkJ0mLq18"));
        assert!(!has_checksum("short"));
    }
}
