//! The reasons in the arguments of a command to ask before it runs.

use super::flags::{Argument, Flag, Takes};
use super::programs::{Grammar, find_flags};
use super::root::Root;

/// One thing that a person should look at first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Concern {
    /// A flag that is not known to be harmless.
    UnknownFlag(String),
    /// A flag that is known to do more than look.
    RiskyFlag(String),
    /// A path that leads out of the root.
    Outside(String),
    /// Links are followed, and one of them leads out of the root.
    LinksOut(String),
    /// An operand that is written, or changes something.
    Effect(String),
    /// Something that this program does not understand.
    Unclear(String),
}

impl Concern {
    /// Returns whether an `allow_flags: ["*"]` answers it.
    pub(crate) fn is_about_flag(&self) -> bool {
        matches!(self, Self::UnknownFlag(_) | Self::RiskyFlag(_))
    }

    /// Returns whether more than a look may come of it.
    pub(crate) fn is_about_effect(&self) -> bool {
        !matches!(self, Self::Outside(_) | Self::LinksOut(_))
    }

    /// Says it for a person.
    pub(crate) fn shown(&self, program: &str) -> String {
        match self {
            Self::UnknownFlag(flag) => format!("`{program} {flag}` is not known to be harmless"),
            Self::RiskyFlag(flag) => {
                format!("`{program} {flag}` can write, run a program or read outside the root")
            }
            Self::Outside(path) => format!("`{path}` lies outside the root"),
            Self::LinksOut(path) => {
                format!("`{program}` follows links, and one below `{path}` leads out of the root")
            }
            Self::Effect(word) => format!("`{program}` would change something through `{word}`"),
            Self::Unclear(word) => format!("`{word}` is not a word that `{program}` is known to take here"),
        }
    }
}

/// Judges the arguments of a program that takes flags and operands.
pub(crate) fn argument_concerns(grammar: Grammar, arguments: &[Argument], root: &Root) -> Vec<Concern> {
    if grammar == Grammar::AllText {
        return Vec::new();
    }
    let mut concerns = flag_concerns(arguments, root);
    let operands = operands(arguments);
    let paths = paths_among(grammar, arguments, &operands);
    concerns.extend(paths.iter().filter_map(|path| outside(path, root)));
    concerns.extend(effects_among(grammar, &operands));
    if grammar == Grammar::Format {
        concerns.extend(arguments.iter().filter_map(time_zone_file));
    }
    if grammar == Grammar::Unknown {
        let values = arguments.iter().flat_map(possible_paths);
        concerns.extend(values.filter(|path| root.is_outside(path)).map(Concern::Outside));
    }
    if arguments.iter().any(|argument| matches!(argument, Argument::Flag { flag, .. } if flag.follows_links))
    {
        concerns.extend(links_below(paths, root));
    }
    concerns
}

/// Judges the flags and the paths that they take.
pub(crate) fn flag_concerns(arguments: &[Argument], root: &Root) -> Vec<Concern> {
    let concern = |argument: &Argument| match argument {
        Argument::Unknown(word) => Some(Concern::UnknownFlag(word.clone())),
        Argument::Flag { name, flag: Flag { asks: true, .. }, .. } => Some(Concern::RiskyFlag(name.clone())),
        // Some programs take `-f=path` for `-f path`, others for a path that begins so.
        Argument::Flag { flag: Flag { takes: Takes::Path, .. }, value: Some(path), .. } => {
            outside(path, root).or_else(|| outside(path.strip_prefix('=')?, root))
        }
        Argument::Flag { .. } | Argument::Operand(_) => None,
    };
    arguments.iter().filter_map(concern).collect()
}

/// The operands that are paths to be read.
pub(crate) fn paths_among<'o, 'w>(
    grammar: Grammar,
    arguments: &[Argument],
    operands: &'o [&'w str],
) -> &'o [&'w str] {
    match grammar {
        Grammar::Paths | Grammar::Unknown => operands,
        Grammar::Pattern { unless } if has_any(arguments, unless) => operands,
        Grammar::Pattern { .. } => operands.get(1..).unwrap_or_default(),
        Grammar::OneInput => operands.get(..1).unwrap_or_default(),
        // The last two have readers of their own.
        Grammar::Text | Grammar::AllText | Grammar::Format | Grammar::Find | Grammar::Git => &[],
    }
}

/// The operands through which something would change.
fn effects_among(grammar: Grammar, operands: &[&str]) -> Vec<Concern> {
    let effect = |word: &&str| Concern::Effect((*word).to_owned());
    match grammar {
        Grammar::OneInput => operands.iter().skip(1).map(effect).collect(),
        Grammar::Format => operands.iter().filter(|word| !word.starts_with('+')).map(effect).collect(),
        _ => Vec::new(),
    }
}

/// A date may choose the file of its time zone: `TZ="/path" now`, relative to those of the system.
fn time_zone_file(argument: &Argument) -> Option<Concern> {
    let Argument::Flag { value: Some(value), .. } = argument else { return None };
    let zones = value.split("TZ=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let is_path = |zone: &str| zone.starts_with(['/', ':']) || zone.contains("..");
    zones.into_iter().any(is_path).then(|| Concern::Outside(value.clone()))
}

/// Finds the paths, or the root itself, below which links lead out.
fn links_below(paths: &[&str], root: &Root) -> Vec<Concern> {
    let all = if paths.is_empty() { &["."][..] } else { paths };
    let inside = all.iter().filter(|path| !root.is_outside(path));
    inside.filter(|path| root.has_links_out(path)).map(|path| Concern::LinksOut((*path).to_owned())).collect()
}

pub(crate) fn outside(path: &str, root: &Root) -> Option<Concern> {
    root.is_outside(path).then(|| Concern::Outside(path.to_owned()))
}

pub(crate) fn operands<'a>(arguments: &'a [Argument]) -> Vec<&'a str> {
    let operand = |argument: &'a Argument| match argument {
        Argument::Operand(word) => Some(word.as_str()),
        Argument::Flag { .. } | Argument::Unknown(_) => None,
    };
    arguments.iter().filter_map(operand).collect()
}

fn has_any(arguments: &[Argument], names: &[&str]) -> bool {
    arguments
        .iter()
        .any(|argument| matches!(argument, Argument::Flag { name, .. } if names.contains(&name.as_str())))
}

/// The paths that a word of a program that is not known itself may hold.
fn possible_paths(argument: &Argument) -> Vec<String> {
    match argument {
        Argument::Flag { value, .. } => value.iter().cloned().collect(),
        Argument::Unknown(word) | Argument::Operand(word) => {
            values_in(word).into_iter().map(str::to_owned).collect()
        }
    }
}

/// What a word may hold besides itself: a value behind `=`, or behind any letter of a cluster of flags.
pub(crate) fn values_in(word: &str) -> Vec<&str> {
    let joined = word.split_once('=').map(|(_, value)| value);
    let cluster = word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).unwrap_or_default();
    joined.into_iter().chain(values_in_cluster(cluster)).filter(|value| !value.is_empty()).collect()
}

/// No letter is a slash, and no system opens a longer name or a longer path.
fn values_in_cluster(cluster: &str) -> impl Iterator<Item = &str> {
    const MAX_NAME_LEN: usize = 255;
    const MAX_PATH_LEN: usize = 4096;
    let end = cluster.find('/').unwrap_or(cluster.len());
    let starts = cluster.char_indices().map(|(at, _)| at).skip(1);
    let possible = starts.filter(move |at| *at <= end && at + MAX_NAME_LEN >= end);
    possible.map(|at| &cluster[at..]).filter(|value| value.len() <= MAX_PATH_LEN)
}

/// Judges the words of `find`: where it starts, then its expression.
pub(crate) fn find_concerns(arguments: &[String], root: &Root) -> Vec<Concern> {
    let mut arguments = arguments.iter().peekable();
    let mut concerns = Vec::new();
    let mut follows_links = false;
    while let Some(word) = arguments.next_if(|word| is_find_option(word)) {
        follows_links |= *word == "-L";
    }
    let mut starts = Vec::new();
    while let Some(word) = arguments.next_if(|word| !begins_expression(word)) {
        starts.push(word.as_str());
    }
    while let Some(word) = arguments.next() {
        follows_links |= word == "-follow";
        concerns.extend(find_argument_concern(word, &mut arguments, root));
    }
    concerns.extend(starts.iter().filter_map(|path| outside(path, root)));
    if follows_links {
        concerns.extend(links_below(&starts, root));
    }
    concerns
}

fn is_find_option(word: &str) -> bool {
    matches!(word, "-H" | "-L" | "-P") || word.starts_with("-O")
}

fn begins_expression(word: &str) -> bool {
    matches!(word, "(" | ")" | "!" | ",") || (word.starts_with('-') && word.len() > 1)
}

fn find_argument_concern<'w>(
    word: &str,
    rest: &mut impl Iterator<Item = &'w String>,
    root: &Root,
) -> Option<Concern> {
    if matches!(word, "(" | ")" | "!" | ",") {
        return None;
    }
    let name = if word.starts_with("--") { word.to_owned() } else { format!("-{word}") };
    match find_flags().exact(&name).filter(|_| word.starts_with('-')) {
        None if word.starts_with('-') => Some(Concern::UnknownFlag(word.to_owned())),
        None => Some(Concern::Unclear(word.to_owned())),
        Some(flag) if flag.takes == Takes::Path => rest.next().and_then(|path| outside(path, root)),
        Some(flag) => {
            if flag.takes == Takes::Value {
                rest.next();
            }
            None
        }
    }
}
