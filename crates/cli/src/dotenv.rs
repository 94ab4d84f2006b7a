//! Reads the `.env` of a project, and decides what of it counts for whom.
//!
//! The file belongs to whoever wrote the project, so it is read only after the project is trusted, only from the
//! project's own directory, and it chooses neither programs nor addresses. llm-do itself takes provider keys from it;
//! the code of the project gets everything but the variables that change how programs are started.
//!
//! `$` is an ordinary character here: a file that refers to other variables could carry a key of the user to an
//! address of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::command_error::CommandError;
use crate::output;

/// No larger file is read.
const MAX_BYTES: u64 = 1024 * 1024;

/// Variables that decide which programs, libraries, accounts or addresses are used.
const LOADER_NAMES: &[&str] = &[
    "ALL_PROXY",
    "BASH_ENV",
    "CURL_CA_BUNDLE",
    "EDITOR",
    "ENV",
    "HOME",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
    "NODE_OPTIONS",
    "NO_PROXY",
    "PAGER",
    "PATH",
    "REQUESTS_CA_BUNDLE",
    "SHELL",
    "SSLKEYLOGFILE",
    "TMPDIR",
    "USER",
    "VIRTUAL_ENV",
    "VISUAL",
];

/// The beginnings of further such names.
const LOADER_PREFIXES: &[&str] = &[
    "CONDA_",
    "DYLD_",
    "GIT_",
    "LD_",
    "LLM_DO_",
    "PERL5",
    "PIP_",
    "PYTHON",
    "RUBY",
    "SSL_CERT_",
    "UV_",
    "XDG_",
];

/// The variables of a `.env`.
#[derive(Default)]
pub(crate) struct Dotenv(BTreeMap<String, String>);

impl Dotenv {
    /// Reads the `.env` of a directory, if there is one.
    pub(crate) fn read(root: &Path) -> Result<Self, CommandError> {
        let path = root.join(".env");
        let file = match open(&path) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Self::default()),
            Err(reason) => {
                let path = crate::text::visible_line(&path.to_string_lossy());
                output::early_notice(&format!("`{path}` is not read: {reason}"));
                return Ok(Self::default());
            }
        };
        let refuse = |reason: String| {
            let path = path.to_string_lossy();
            let message = format!("`{}` cannot be read: {reason}", crate::text::visible_line(&path));
            CommandError::with_hint(
                message,
                "write lines of the form `NAME=value`, with quotes around spaces",
            )
        };
        let text = contents(file).map_err(refuse)?;
        parse(&text).map(Self).map_err(|line| refuse(line.to_string()))
    }

    /// Returns the variables for the code of the project.
    pub(crate) fn for_code(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .filter(|(name, _)| !is_loader_name(name))
    }

    /// Returns the variables among the given names.
    pub(crate) fn only(&self, names: &[&str]) -> Vec<(String, String)> {
        let named = self.0.iter().filter(|(name, _)| names.contains(&name.as_str()));
        named.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// Returns whether a variable changes how programs are started or whom they talk to.
fn is_loader_name(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    LOADER_NAMES.contains(&upper.as_str()) || LOADER_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
}

/// Opens a regular file of the user or root. A link, a pipe or somebody else's file is refused without waiting.
fn open(path: &Path) -> Result<Option<File>, String> {
    let file = match open_without_links(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => return Err("it is a link".to_owned()),
        Err(error) => return Err(error.to_string()),
    };
    let metadata = file.metadata().map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if !is_own(&metadata) {
        return Err("it belongs to another user".to_owned());
    }
    Ok(Some(file))
}

#[cfg(unix)]
fn open_without_links(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    // A named pipe without a writer would block the opening.
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)
}

#[cfg(not(unix))]
fn open_without_links(path: &Path) -> std::io::Result<File> {
    if path.is_symlink() {
        return Err(std::io::Error::other("it is a link"));
    }
    File::open(path)
}

#[cfg(unix)]
fn is_own(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = metadata.uid();
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

#[cfg(not(unix))]
fn is_own(_: &std::fs::Metadata) -> bool {
    true
}

fn contents(file: File) -> Result<String, String> {
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// A line that cannot be read. It shows at most the name of the variable: the value may be a secret.
#[derive(Debug, PartialEq, Eq)]
struct BadLine {
    number: usize,
    name: Option<String>,
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "line {} is wrong (`{name}`)", self.number),
            None => write!(f, "line {} is wrong", self.number),
        }
    }
}

fn parse(text: &str) -> Result<BTreeMap<String, String>, BadLine> {
    let mut variables = BTreeMap::new();
    let (mut rest, mut number) = (text, 1);
    while !rest.is_empty() {
        let line = rest.lines().next().unwrap_or_default();
        let content = line.trim();
        if content.is_empty() || content.starts_with('#') {
            rest = rest[line.len()..].trim_start_matches('\r').strip_prefix('\n').unwrap_or_default();
            number += 1;
            continue;
        }
        let name = name_of(content).map(str::to_owned);
        let bad = || BadLine { number, name: name.clone() };
        let Some(name) = &name else { return Err(bad()) };
        let written = &rest[line.find('=').map_or(line.len(), |index| index + 1)..];
        let (value, length) = value_of(written).ok_or_else(bad)?;
        let after = &written[length..];
        number += written[..length].matches('\n').count() + 1;
        rest = after.find('\n').map_or("", |end| &after[end + 1..]);
        variables.entry(name.clone()).or_insert(value);
    }
    Ok(variables)
}

/// Returns the name that a line sets.
fn name_of(line: &str) -> Option<&str> {
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, _) = line.split_once('=')?;
    let name = name.trim();
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    (!name.is_empty() && is_name).then_some(name)
}

/// Reads a value, and returns it with the length of what was read. Only a quoted value may have several lines.
fn value_of(written: &str) -> Option<(String, usize)> {
    let line = written.lines().next().unwrap_or_default();
    let indent = line.len() - line.trim_start().len();
    let start = &written[indent..];
    let quote = start.chars().next().filter(|c| matches!(c, '"' | '\'' | '`'));
    let Some(quote) = quote else {
        let value = line.split(" #").next().unwrap_or_default().trim();
        return Some((value.to_owned(), line.len()));
    };
    let (value, length) = quoted(&start[1..], quote)?;
    let end = indent + 1 + length;
    let after = written[end..].lines().next().unwrap_or_default().trim();
    (after.is_empty() || after.starts_with('#')).then_some((value, end))
}

/// Reads up to the closing quote. A backslash escapes within double quotes only.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            c if c == quote => return Some((value, index + c.len_utf8())),
            '\\' if quote == '"' => value.push(match chars.next()?.1 {
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                other => other,
            }),
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().into_iter().collect()
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_read_as_they_are_usually_written() {
        let text = "# comment\r\nA=1\r\nexport B = two words # comment\nC='$x #y'\nD=\"a\\n\\\"b\\$\"  # c\nE=\n\nF=\"two\nlines\"\nG=a#b\n";
        let expected = [
            ("A", "1"),
            ("B", "two words"),
            ("C", "$x #y"),
            ("D", "a\n\"b$"),
            ("E", ""),
            ("F", "two\nlines"),
            ("G", "a#b"),
        ];
        assert_eq!(parsed(text), pairs(&expected));
        assert_eq!(parsed("A=1"), pairs(&[("A", "1")]));
        assert_eq!(parsed("A=1\nA=2\n"), pairs(&[("A", "1")]), "the first one counts");
    }

    #[test]
    fn a_dollar_is_an_ordinary_character() {
        let text = "A=$HOME\nB=${ANTHROPIC_API_KEY}\nC=\"${A}\"\nD=x$\n";
        let expected = [("A", "$HOME"), ("B", "${ANTHROPIC_API_KEY}"), ("C", "${A}"), ("D", "x$")];
        assert_eq!(parsed(text), pairs(&expected));
    }

    #[test]
    fn a_wrong_line_is_named_without_its_value() {
        let wrong = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(wrong("A=1\nSECRET=\"open\n"), "line 2 is wrong (`SECRET`)");
        assert_eq!(wrong("F=\"two\nlines\"\nsecret without a name\n"), "line 3 is wrong");
        assert_eq!(wrong("A='x'y\n"), "line 1 is wrong (`A`)");
        assert_eq!(wrong("A B=1\n"), "line 1 is wrong");
    }

    #[test]
    fn names_that_choose_programs_or_addresses_are_kept_from_code() {
        let text = "PATH=/x\nLD_PRELOAD=x\nhttps_proxy=http://x\nPYTHONSTARTUP=x\nLLM_DO_TRUST=all\nDATABASE_URL=y\n";
        let dotenv = Dotenv(parse(text).unwrap());
        assert_eq!(dotenv.for_code().collect::<Vec<_>>(), [("DATABASE_URL", "y")]);
    }
}
