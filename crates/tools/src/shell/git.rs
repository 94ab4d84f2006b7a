//! git: finds its subcommand, judges its arguments, and runs it so that a repository cannot choose the programs that
//! run.

use super::concerns::{Concern, flag_concerns, operands, outside};
use super::flags::{Argument, FlagSyntax, FlagTable, Takes};
use super::programs::{GIT_READERS, git_subcommand, program};
use super::root::Root;

/// Returns the index of the subcommand among the arguments: after the global flags.
pub(crate) fn subcommand_position(arguments: &[String]) -> usize {
    program("git").map_or(0, |git| git.flags.count_before_operand(arguments))
}

/// Returns whether a command of git only reads, and is run in a way that keeps it so.
pub(crate) fn is_reader(arguments: &[String]) -> bool {
    let subcommand = arguments.get(subcommand_position(arguments));
    subcommand.is_some_and(|word| GIT_READERS.contains(&word.as_str()))
}

/// Judges the arguments of git.
pub(crate) fn concerns(arguments: &[String], allowed: &FlagTable, root: &Root) -> Vec<Concern> {
    let (global, rest) = arguments.split_at(subcommand_position(arguments));
    let Some((subcommand, rest)) = rest.split_first() else {
        return vec![Concern::Unclear("no subcommand".to_owned())];
    };
    let mut concerns = program("git")
        .map(|git| flag_concerns(&git.flags.parse(global, FlagSyntax::UpToOperand), root))
        .unwrap_or_default();
    let known = git_subcommand(subcommand);
    let mut table = known.cloned().unwrap_or_default();
    table.extend(allowed);
    let arguments = table.parse(rest, FlagSyntax::Exact);
    concerns.extend(flag_concerns(&arguments, root));
    concerns.extend(operand_concerns(&arguments, root));
    concerns.extend(arguments.iter().filter_map(risky_value));
    concerns
}

/// A flag that is harmless, but not with every value.
fn risky_value(argument: &Argument) -> Option<Concern> {
    let Argument::Flag { name, value: Some(value), .. } = argument else { return None };
    let risky = match name.as_str() {
        "--diff-merges" => merges_again(value),
        "--format" | "--pretty" => runs_programs(value),
        _ => false,
    };
    risky.then(|| Concern::RiskyFlag(format!("{name}={value}")))
}

/// Returns whether merges are to be done again, which writes objects and may run merge drivers.
fn merges_again(value: &str) -> bool {
    matches!(value, "r" | "remerge")
}

/// Returns whether a format asks for signatures, which are written to files and checked by programs, or for a
/// description, for which git runs itself.
pub(crate) fn runs_programs(format: &str) -> bool {
    let placeholders = format.split('%').skip(1).map(|rest| rest.trim_start_matches(['+', '-', ' ']));
    placeholders.into_iter().any(|text| text.starts_with('G') || text.starts_with("(describe"))
}

/// Revisions and paths cannot be told apart, so all are judged as paths; also the values that git might take
/// for operands. A word that looks like a flag asks, behind `--` or as a value: git might understand it as one.
fn operand_concerns(arguments: &[Argument], root: &Root) -> Vec<Concern> {
    let values = arguments.iter().filter_map(|argument| match argument {
        Argument::Flag { flag, value: Some(value), separate: true, .. } if flag.takes == Takes::Value => {
            Some(value.as_str())
        }
        _ => None,
    });
    let operands = operands(arguments).into_iter();
    let flags = operands.clone().chain(values.clone()).filter(|word| word.starts_with('-') && word.len() > 1);
    let unclear: Vec<Concern> = flags.map(|word| Concern::Unclear(word.to_owned())).collect();
    operands.chain(values).filter_map(|word| outside(pathspec(word), root)).chain(unclear).collect()
}

/// The path of a pathspec, without its magic.
fn pathspec(word: &str) -> &str {
    let Some(magic) = word.strip_prefix(':') else { return word };
    match magic.strip_prefix('(').and_then(|long| long.split_once(')')) {
        Some((_, path)) => path,
        // `:/text` searches for a commit or begins at the top of the working tree: neither leads out.
        None => magic.trim_start_matches(['!', '^', '/', ':']),
    }
}

/// What a repository may not choose: programs that watch files, hooks, attributes, signature checkers,
/// whether the index is written or merges are done again to show a difference, and work in submodules,
/// whose own configuration nobody has looked at. As nothing of it is trusted, it may belong to anybody.
const FIXED: [&str; 22] = [
    "-c",
    ANY_OWNER,
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.attributesFile=/dev/null",
    "-c",
    "status.submoduleSummary=false",
    "-c",
    "diff.autoRefreshIndex=false",
    "-c",
    "log.diffMerges=separate",
    "-c",
    "gpg.program=false",
    "-c",
    "gpg.openpgp.program=false",
    "-c",
    "gpg.x509.program=false",
    "-c",
    "gpg.ssh.program=false",
];

/// Lets git read a repository of another user, as it is found in containers.
pub(crate) const ANY_OWNER: &str = "safe.directory=*";

/// Variables with which git reads no more than the repository at hand.
pub(crate) const READER_ENVIRONMENT: [(&str, &str); 4] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
];

/// Returns the arguments with which a command of git is run.
///
/// A reader is always run with everything switched off that a repository could choose; what was asked for
/// explicitly, and so approved, comes later and wins. Other subcommands are as the rule or the person who
/// allowed them wants them.
pub(crate) fn hardened(arguments: &[String], empty_tree: Option<&str>) -> Vec<String> {
    let (global, rest) = arguments.split_at(subcommand_position(arguments));
    let mut hardened = vec!["--no-pager".to_owned()];
    let reader = is_reader(arguments);
    if reader {
        hardened.extend(reader_prefix(empty_tree));
    }
    hardened.extend(global.iter().cloned());
    hardened.extend(rest.iter().take(1).cloned());
    if let Some(subcommand) = rest.first().filter(|_| reader) {
        hardened.extend(subcommand_prefix(subcommand).iter().map(|word| (*word).to_owned()));
    }
    hardened.extend(rest.iter().skip(1).cloned());
    hardened
}

fn reader_prefix(empty_tree: Option<&str>) -> Vec<String> {
    let attributes = empty_tree.map(|tree| format!("--attr-source={tree}"));
    let locks = "--no-optional-locks".to_owned();
    std::iter::once(locks).chain(attributes).chain(FIXED.map(str::to_owned)).collect()
}

fn subcommand_prefix(subcommand: &str) -> &'static [&'static str] {
    match subcommand {
        "status" => &["--ignore-submodules=dirty"],
        "diff" => &["--no-ext-diff", "--no-textconv", "--submodule=short", "--ignore-submodules=dirty"],
        "log" | "show" => &[
            "--no-ext-diff",
            "--no-textconv",
            "--submodule=short",
            "--ignore-submodules=dirty",
            "--no-show-signature",
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_that_run_programs_are_found_in_every_spelling() {
        for risky in
            ["%G?", "format:%h %GS", "tformat:%+GG", "%-GK", "% GF", "%h%(describe)", "%+(describe:tags)"]
        {
            assert!(runs_programs(risky), "{risky}");
        }
        for harmless in ["oneline", "%h %an GPG", "%(trailers:key=G)", "%g", "%C(auto)%d", "%(decorate)"] {
            assert!(!runs_programs(harmless), "{harmless}");
        }
    }
}
