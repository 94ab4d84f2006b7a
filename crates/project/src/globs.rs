//! Globs in files of a project: which names are globs, and which can be compiled.

use globset::GlobBuilder;

/// The longest glob, in bytes. The library panics at one that is too large or too deep for its regexes, and
/// one of this length cannot be.
pub(crate) const MAX_GLOB_LEN: usize = 256;

/// Returns whether an entry of a list means whatever matches it.
pub(crate) fn is_glob(name: &str) -> bool {
    name.contains(['*', '?', '[', '{'])
}

/// Returns why a glob cannot be used, if it cannot.
pub(crate) fn glob_problem(glob: &str) -> Option<String> {
    if glob.len() > MAX_GLOB_LEN {
        return Some(format!("it has more than {MAX_GLOB_LEN} bytes"));
    }
    GlobBuilder::new(glob).build().err().map(|error| error.kind().to_string())
}
