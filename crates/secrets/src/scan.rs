//! Finds private keys and tokens in a text.

use std::fmt;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::packed::{self, Searcher};
use aho_corasick::{AhoCorasick, Match, MatchKind};

use crate::private_key;
use crate::token::{TOKENS, TokenFormat};

/// What a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SecretKind {
    /// A private key.
    PrivateKey,
    /// A token whose format is known, with the name of who issues it.
    Token(&'static str),
    /// A password or key in a configuration file.
    Password,
    /// A file that is secret by its name, with what it holds.
    Credentials(&'static str),
}

impl fmt::Display for SecretKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PrivateKey => f.write_str("private key"),
            Self::Token(issuer) => write!(f, "{issuer} token"),
            Self::Password => f.write_str("password or key"),
            Self::Credentials(what) => f.write_str(what),
        }
    }
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// What it is.
    pub kind: SecretKind,
    /// Where it is, in bytes.
    pub span: Range<usize>,
}

/// Returns the private keys and tokens in a text, in order and without overlaps.
pub fn secrets_in(text: &[u8]) -> impl Iterator<Item = Secret> + '_ {
    let mut end = 0;
    CANDIDATES.find(text).filter_map(move |found| {
        let marker = found.start()..found.end();
        let secret = CANDIDATES.judge(text, found.pattern().as_usize(), marker, end)?;
        end = secret.span.end;
        Some(secret)
    })
}

/// The beginnings of everything that is looked for: ordinary text has hardly any of them.
struct Candidates {
    /// Vector instructions, if the processor has them. None of the two is there only if the table cannot be compiled,
    /// which a test rules out.
    packed: Option<Searcher>,
    automaton: Option<AhoCorasick>,
    formats: Vec<Option<&'static TokenFormat>>,
}

static CANDIDATES: LazyLock<Candidates> = LazyLock::new(|| {
    let keys = private_key::MARKERS.iter().map(|marker| (*marker, None));
    let tokens =
        TOKENS.iter().flat_map(|format| format.markers.iter().map(move |marker| (*marker, Some(format))));
    let (patterns, formats): (Vec<&str>, _) = keys.chain(tokens).unzip();
    // The limits keep the search fast if much is found; here nearly nothing is.
    let mut config = packed::Config::new();
    config.match_kind(packed::MatchKind::LeftmostLongest).heuristic_pattern_limits(false);
    let packed = config.builder().extend(&patterns).build();
    let automaton = || AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&patterns).ok();
    let automaton = if packed.is_none() { automaton() } else { None };
    Candidates { packed, automaton, formats }
});

impl Candidates {
    fn find<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = Match> + 't {
        let packed = self.packed.iter().flat_map(move |searcher| searcher.find_iter(text));
        packed.chain(self.automaton.iter().flat_map(move |searcher| searcher.find_iter(text)))
    }

    /// Returns the secret at a marker, unless the marker lies in the secret before it.
    fn judge(&self, text: &[u8], pattern: usize, marker: Range<usize>, from: usize) -> Option<Secret> {
        if marker.start < from {
            return None;
        }
        match self.formats.get(pattern)? {
            None => {
                let span = private_key::span(text, marker)?;
                Some(Secret { kind: SecretKind::PrivateKey, span })
            }
            Some(format) => {
                let span = format.span(text, marker)?;
                (span.start >= from).then_some(Secret { kind: SecretKind::Token(format.issuer), span })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_markers_compiles() {
        assert!(CANDIDATES.packed.is_some() || CANDIDATES.automaton.is_some());
    }
}
