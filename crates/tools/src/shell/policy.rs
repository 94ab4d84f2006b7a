//! Decides about a command line: runs at once, asks, or is blocked; and says why.
//!
//! Every command of the line is judged by the rules for its program, and a pre-approved one also by its
//! arguments: flags must be positively known, paths must stay within the root. The strictest judgment holds for
//! the whole line.
//!
//! This module runs nothing. What only git itself can tell about a repository is asked in
//! [`super::repository`].

use std::path::Path;

use llm_do_core::Approval;

use super::concerns::{self, Concern};
use super::execution_env::SYSTEM_DIRECTORIES;
use super::flags::{Argument, FlagSyntax, FlagTable};
use super::git;
use super::parse::{Argv, CommandLine};
use super::programs::{Grammar, KnownProgram, program};
use super::root::Root;
use super::settings::{Operands, ShellRule, ShellSettings, Unlisted};
use crate::toolset_error::ToolsetError;

/// What came out for a command line, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Judgment {
    pub(crate) approval: Approval,
    pub(crate) reasons: Vec<String>,
}

impl Judgment {
    pub(crate) fn new(approval: Approval, reason: impl Into<String>) -> Self {
        Self { approval, reasons: vec![reason.into()] }
    }

    pub(crate) fn harmless() -> Self {
        Self { approval: Approval::PreApproved, reasons: Vec::new() }
    }

    /// Asks, where there are concerns.
    pub(crate) fn from_concerns(concerns: Vec<String>) -> Self {
        let approval = if concerns.is_empty() { Approval::PreApproved } else { Approval::Ask };
        Self { approval, reasons: concerns }
    }

    /// The stricter of two, with the reasons of that level.
    #[must_use]
    pub(crate) fn and(mut self, other: Self) -> Self {
        match self.approval.cmp(&other.approval) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Greater => self,
            std::cmp::Ordering::Equal => {
                let new = other.reasons.into_iter().filter(|reason| !self.reasons.contains(reason));
                let new: Vec<String> = new.collect();
                self.reasons.extend(new);
                self
            }
        }
    }
}

/// The rules of one toolset instance, checked.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    rules: Vec<Rule>,
    unlisted: Unlisted,
}

#[derive(Debug, Clone)]
struct Rule {
    rule: ShellRule,
    allowed: FlagTable,
    all_flags: bool,
}

impl Policy {
    /// Checks the rules, the given ones before those of the settings.
    pub(crate) fn new(given: &[ShellRule], settings: &ShellSettings) -> Result<Self, ToolsetError> {
        let rules = given.iter().chain(&settings.rules).map(Rule::new).collect::<Result<_, _>>()?;
        Ok(Self { rules, unlisted: settings.unlisted })
    }

    /// Judges a command line.
    pub(crate) fn judge(&self, line: &CommandLine, root: &Root) -> Judgment {
        let judgments = line.commands().map(|argv| self.judge_command(argv, root));
        let unseen = Judgment::from_concerns(unseen_repositories(line, root));
        judgments.fold(Judgment::harmless(), Judgment::and).and(unseen)
    }

    fn judge_command(&self, argv: &[String], root: &Root) -> Judgment {
        let Some((first, arguments)) = argv.split_first() else {
            return Judgment::new(Approval::Blocked, "there is a command without a program");
        };
        let Some(name) = bare_name(first) else {
            let reason = format!("`{first}` is a path: name a program by its bare name, such as `ls`");
            return Judgment::new(Approval::Blocked, reason);
        };
        let matching = self.matching(name, arguments);
        if matching.is_empty() {
            return self.unlisted(name, arguments);
        }
        let by_path = (name != first).then(|| format!("`{first}` names the program by its path"));
        let by_rules = matching.iter().map(|rule| rule.judge(argv));
        by_rules
            .fold(Judgment::harmless(), Judgment::and)
            .and(Judgment::from_concerns(by_path.into_iter().collect()))
            .and(Judgment::from_concerns(concerns_of(name, arguments, &matching, root)))
    }

    fn matching(&self, name: &str, arguments: &[String]) -> Vec<&Rule> {
        let subcommand = subcommand(name, arguments);
        let matches = |rule: &&Rule| rule.rule.program == name && rule.is_about(subcommand, arguments);
        self.rules.iter().filter(matches).collect()
    }

    fn unlisted(&self, name: &str, arguments: &[String]) -> Judgment {
        let listed: Vec<&str> = self.rules.iter().map(|rule| rule.rule.program.as_str()).collect();
        let shown = match subcommand(name, arguments) {
            Some(word) if listed.contains(&name) => format!("{name} {word}"),
            _ => name.to_owned(),
        };
        match self.unlisted {
            Unlisted::Ask => Judgment::new(Approval::Ask, format!("no rule names `{shown}`")),
            Unlisted::Blocked if name == "cd" => {
                let reason = "commands run in the project's directory; name paths instead, such as `ls sub`";
                Judgment::new(Approval::Blocked, format!("`cd` is not listed: {reason}"))
            }
            Unlisted::Blocked => {
                let reason = format!("`{shown}` is not listed; listed are: {}", self.listed());
                Judgment::new(Approval::Blocked, reason)
            }
        }
    }

    /// Lists what rules permit, for people and models.
    pub(crate) fn listed(&self) -> String {
        let mut listed: Vec<String> = Vec::new();
        for rule in self.rules.iter().filter(|rule| rule.rule.approval != Approval::Blocked) {
            let shown = rule.shown();
            if !listed.contains(&shown) {
                listed.push(shown);
            }
        }
        if listed.is_empty() { "no programs".to_owned() } else { listed.join(", ") }
    }
}

impl Rule {
    fn new(rule: &ShellRule) -> Result<Self, ToolsetError> {
        let plain = !rule.program.is_empty()
            && !rule.program.contains(|c: char| c == '/' || c.is_whitespace() || c.is_control());
        if !plain {
            let message =
                format!("rule for `{}`: `program` must be the bare name of a program", rule.program);
            return Err(ToolsetError::Setting(message));
        }
        let mut allowed = FlagTable::default();
        let all_flags = rule.allow_flags.iter().any(|flag| flag == "*");
        for flag in rule.allow_flags.iter().filter(|flag| *flag != "*") {
            let named = |error| ToolsetError::Setting(format!("rule for `{}`: {error}", rule.program));
            allowed.add(flag).map_err(named)?;
        }
        if let Some(flag) = rule.refuse_flags.iter().find(|flag| !flag.starts_with('-') || flag.len() < 2) {
            return Err(ToolsetError::Setting(format!(
                "rule for `{}`: `{flag}` is not a flag: write `-x` or `--name`",
                rule.program
            )));
        }
        let mut rule = rule.clone();
        rule.refuse_flags.iter_mut().for_each(|flag| *flag = without_value(flag).to_owned());
        Ok(Self { rule, allowed, all_flags })
    }

    /// Returns whether the rule is about a command of its program. One that allows needs its subcommand where the
    /// program takes it; a stricter one holds at any position, because it is unknown which flags of the
    /// program take a value: `cargo +nightly -q publish`.
    fn is_about(&self, subcommand: Option<&str>, arguments: &[String]) -> bool {
        let Some(word) = self.rule.subcommand.as_deref() else { return true };
        let anywhere = self.rule.approval != Approval::PreApproved;
        subcommand == Some(word) || (anywhere && arguments.iter().any(|argument| argument == word))
    }

    /// The program, with the subcommand where the rule has one.
    fn shown(&self) -> String {
        match &self.rule.subcommand {
            Some(word) => format!("{} {word}", self.rule.program),
            None => self.rule.program.clone(),
        }
    }

    fn judge(&self, argv: &[String]) -> Judgment {
        let name = self.shown();
        let refused = self.rule.refuse_flags.iter().find(|flag| argv.iter().any(|word| uses(word, flag)));
        match (refused, self.rule.approval) {
            (Some(flag), _) => Judgment::new(Approval::Blocked, format!("a rule refuses `{name} {flag}`")),
            (None, Approval::PreApproved) => Judgment::harmless(),
            (None, Approval::Ask) => Judgment::new(Approval::Ask, format!("a rule says that `{name}` asks")),
            (None, Approval::Blocked) => {
                Judgment::new(Approval::Blocked, format!("a rule says that `{name}` is blocked"))
            }
        }
    }
}

/// A flag in the notation of `allow_flags`, without the character that says what it takes.
fn without_value(flag: &str) -> &str {
    flag.strip_suffix(['=', '@', '?']).filter(|name| !name.trim_start_matches('-').is_empty()).unwrap_or(flag)
}

/// Returns whether a word is a flag, or could be: as part of a cluster, or abbreviated.
fn uses(word: &str, flag: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    match flag.strip_prefix("--") {
        Some(_) => name.len() > 2 && flag.starts_with(name),
        None if flag.chars().count() == 2 => {
            let letters = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
            letters.is_some_and(|letters| letters.contains(&flag[1..]))
        }
        None => name == flag,
    }
}

/// The bare name of a program that is named by it, or by its path in a directory of the system.
fn bare_name(word: &str) -> Option<&str> {
    match word.rsplit_once('/') {
        None => Some(word),
        Some((directory, name)) => SYSTEM_DIRECTORIES.contains(&directory).then_some(name),
    }
}

fn subcommand<'w>(name: &str, arguments: &'w [String]) -> Option<&'w str> {
    let position = if name == "git" { git::subcommand_position(arguments) } else { 0 };
    arguments.get(position).map(String::as_str).filter(|word| !word.starts_with('-'))
}

/// What speaks against running a command without a question.
fn concerns_of(name: &str, arguments: &[String], rules: &[&Rule], root: &Root) -> Vec<String> {
    let mut concerns = seen_in(name, arguments, rules, root);
    if rules.iter().any(|rule| rule.all_flags) {
        concerns.retain(|concern| !concern.is_about_flag());
    }
    concerns.into_iter().map(|concern| concern.shown(name)).collect()
}

fn seen_in(name: &str, arguments: &[String], rules: &[&Rule], root: &Root) -> Vec<Concern> {
    let allowed = merged(rules);
    let known = program(name);
    match known.map(|program| program.grammar) {
        Some(Grammar::Git) => git::concerns(arguments, &allowed, root),
        Some(Grammar::Find) => concerns::find_concerns(arguments, root),
        _ => {
            let (grammar, arguments) = understood(known, allowed, arguments, rules);
            concerns::argument_concerns(grammar, &arguments, root)
        }
    }
}

impl ShellRule {
    /// Returns whether a command that this rule lets run asks nevertheless if it has an argument, whatever other
    /// arguments follow.
    pub fn asks_for(&self, argument: &str, project: &Path) -> bool {
        let (Ok(root), Ok(checked)) = (Root::new(project), Rule::new(self)) else { return false };
        let followed_by = |rest: &[&str]| {
            let subcommand = self.subcommand.as_deref();
            let arguments = subcommand.into_iter().chain([argument]).chain(rest.iter().copied());
            let arguments: Vec<String> = arguments.map(str::to_owned).collect();
            let concerns = seen_in(&self.program, &arguments, &[&checked], &root);
            concerns.iter().any(|concern| concern.is_about_flag() || concern.is_about_effect())
        };
        [&[][..], &["1"], &["x"], &["x", "y"]].into_iter().all(followed_by)
    }
}

/// Returns whether a command is known to leave all files as they are, whatever rules allow. What git records of
/// them changes none that anybody acts on.
pub(crate) fn keeps_files(argv: &[String], root: &Root) -> bool {
    let Some((name, arguments)) = argv.split_first() else { return true };
    let Some(name) = bare_name(name).filter(|name| program(name).is_some()) else { return false };
    let first = arguments.first().map(String::as_str);
    if name == "git" && !git::is_reader(arguments) {
        return matches!(first, Some("add" | "commit" | "tag"));
    }
    !seen_in(name, arguments, &[], root).iter().any(Concern::is_about_effect)
}

/// A repository is looked at before a line runs, so nobody has seen what an earlier command of the line, or one
/// beside it in a pipeline, makes of it.
fn unseen_repositories(line: &CommandLine, root: &Root) -> Vec<String> {
    let commands = || {
        let steps = line.steps.iter().enumerate();
        steps.flat_map(|(step, commands)| commands.pipeline.iter().map(move |argv| (step, argv)))
    };
    let is_git = |argv: &Argv| argv.first().and_then(|name| bare_name(name)) == Some("git");
    if !commands().any(|(_, argv)| is_git(argv)) {
        return Vec::new();
    }
    let writers: Vec<_> = commands().filter(|(_, argv)| !keeps_files(argv, root)).collect();
    let unseen = commands().filter(|(_, argv)| is_git(argv)).filter_map(|(step, git)| {
        let comes_first = |(other, argv): &&(usize, &Argv)| *other <= step && !std::ptr::eq(*argv, git);
        let (_, writer) = writers.iter().find(comes_first)?;
        let name = writer.first()?;
        Some(format!("`{name}` may change the repository before `git` uses it in the same line"))
    });
    unseen.collect()
}

fn merged(rules: &[&Rule]) -> FlagTable {
    let mut allowed = FlagTable::default();
    rules.iter().for_each(|rule| allowed.extend(&rule.allowed));
    allowed
}

fn understood(
    known: Option<&'static KnownProgram>,
    allowed: FlagTable,
    arguments: &[String],
    rules: &[&Rule],
) -> (Grammar, Vec<Argument>) {
    let Some(program) = known else {
        let text = rules.iter().all(|rule| rule.rule.operands == Operands::Text);
        let grammar = if text { Grammar::Text } else { Grammar::Unknown };
        return (grammar, allowed.parse(arguments, FlagSyntax::Exact));
    };
    let mut table = program.flags.clone();
    table.extend(&allowed);
    (program.grammar, table.parse(arguments, program.flag_syntax))
}
