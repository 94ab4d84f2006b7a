//! The settings of the shell toolset, as written in a manifest or an agent file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use llm_do_core::Approval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The longest time limit, in seconds.
pub(crate) const MAX_TIMEOUT: u64 = 600;

/// What the shell tool may run, where and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ShellSettings {
    /// What programs may run. Among the rules that match a command, the strictest wins.
    pub rules: Vec<ShellRule>,
    /// What happens with programs that no rule names.
    #[serde(rename = "default")]
    pub unlisted: Unlisted,
    /// The directory in which commands run, relative to the project. Reading outside it asks.
    pub root: PathBuf,
    /// How many seconds a call may take that does not say it itself; at most 600.
    #[schemars(range(min = 1, max = 600))]
    pub timeout: u64,
    /// How much of standard output, and of standard error, is kept. Of more, the beginning and the end are.
    pub max_output_bytes: usize,
    /// Directories in which programs are found besides the system's own: absolute, and outside the project.
    pub program_directories: Vec<PathBuf>,
    /// Variables for the programs. They inherit none; names that change what runs are refused.
    pub environment: BTreeMap<String, String>,
    /// A prefix for the name of the tool, so that one agent can have two such toolsets.
    pub prefix: String,
    /// Whether the system confines programs.
    pub sandbox: SandboxMode,
    /// What programs may read that run without a question. One that asks first may read anywhere.
    pub reads: ReadScope,
    /// What programs may write. Default: `root`; for `shell_readonly` always `nowhere`.
    pub writes: Option<WriteScope>,
    /// Whether programs may use the network. Not for `shell_readonly`.
    pub network: bool,
}

impl Default for ShellSettings {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            unlisted: Unlisted::Blocked,
            root: PathBuf::from("."),
            timeout: 30,
            max_output_bytes: 64 * 1024,
            program_directories: Vec::new(),
            environment: BTreeMap::new(),
            prefix: String::new(),
            sandbox: SandboxMode::On,
            reads: ReadScope::Root,
            writes: None,
            network: false,
        }
    }
}

impl ShellSettings {
    /// Puts the settings of one agent over those of the manifest: rules are added, and the strictest of them wins.
    pub(crate) fn over(mut self, section: &Self) -> Self {
        let own = self.rules.into_iter().filter(|rule| !section.rules.contains(rule));
        self.rules = section.rules.iter().cloned().chain(own).collect();
        self
    }

    /// Names a setting by which one agent would allow more than the manifest does.
    pub(crate) fn loosens<'r>(
        &self,
        section: &Self,
        listed: impl Iterator<Item = &'r ShellRule> + Clone,
    ) -> Option<&'static str> {
        let writes = |settings: &Self| match settings.writes {
            Some(WriteScope::Nowhere) => 0,
            None | Some(WriteScope::Root) => 1,
            Some(WriteScope::Anywhere) => 2,
        };
        let confines = |settings: &Self| match settings.sandbox {
            SandboxMode::Off => 0,
            SandboxMode::On => 1,
            SandboxMode::Required => 2,
        };
        let is_new = |directory: &PathBuf| !section.program_directories.contains(directory);
        // A rule for a program that is listed can only make it stricter, unless it brings flags.
        let covers = |listed: &ShellRule, rule: &ShellRule| {
            listed.program == rule.program
                && (listed.subcommand.is_none() || listed.subcommand == rule.subcommand)
        };
        let adds = |rule: &&ShellRule| {
            let is_listed = listed.clone().any(|listed| covers(listed, rule));
            rule.approval != Approval::Blocked && (!is_listed || !rule.allow_flags.is_empty())
        };
        let own = self.rules.iter().filter(|rule| !section.rules.contains(rule));
        let loosened = [
            ("rules", own.clone().any(|rule| adds(&rule))),
            ("timeout", self.timeout > section.timeout),
            ("max_output_bytes", self.max_output_bytes > section.max_output_bytes),
            ("default", self.unlisted == Unlisted::Ask && section.unlisted == Unlisted::Blocked),
            ("program_directories", self.program_directories.iter().any(is_new)),
            ("sandbox", confines(self) < confines(section)),
            ("reads", self.reads == ReadScope::Anywhere && section.reads == ReadScope::Root),
            ("writes", writes(self) > writes(section)),
            ("network", self.network && !section.network),
        ];
        loosened.into_iter().find(|(_, is_looser)| *is_looser).map(|(key, _)| key)
    }
}

/// Whether the system confines programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxMode {
    /// Where the system can; where it cannot, a notice says so.
    #[default]
    On,
    /// Where the system cannot, nothing runs.
    Required,
    /// No. Not for `shell_readonly`.
    Off,
}

/// What programs may read that run without a question.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ReadScope {
    /// The root, the directories of the system and those of programs.
    #[default]
    Root,
    /// Everything. Not for `shell_readonly`.
    Anywhere,
}

/// What programs may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WriteScope {
    /// Nothing.
    Nowhere,
    /// What lies below the root.
    Root,
    /// Everything.
    Anywhere,
}

/// What happens with a program, or a subcommand, that no rule names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unlisted {
    /// It does not run.
    #[default]
    Blocked,
    /// It waits for an approval.
    Ask,
}

/// What holds for one program, or for one of its subcommands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ShellRule {
    /// The bare name of the program, such as `git`.
    pub program: String,
    /// The subcommand, such as `log`. Without one the rule holds for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subcommand: Option<String>,
    /// Flags that may be used besides those that are known to be harmless: `-x`, `--name`; `-n=` and
    /// `--name=` take a value, `-f@` and `--file@` a path; `*` means all flags. Other flags ask.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_flags: Vec<String>,
    /// Flags that are never used: a command with one of them is blocked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refuse_flags: Vec<String>,
    /// What the operands of a program are that is not known itself.
    #[serde(default)]
    pub operands: Operands,
    /// Whether the command runs without a question, asks, or never runs. What is pre-approved still asks
    /// where it uses unknown flags or reads outside the root.
    #[schemars(with = "ApprovalWord")]
    pub approval: Approval,
}

/// What the operands of a program are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Operands {
    /// Paths: those that lead out of the root ask.
    #[default]
    Paths,
    /// Text that names no files.
    Text,
}

/// The words of [`Approval`], for the schema.
#[derive(JsonSchema)]
#[serde(rename_all = "snake_case")]
#[expect(dead_code, reason = "only its schema is used")]
enum ApprovalWord {
    PreApproved,
    Ask,
    Blocked,
}

impl ShellRule {
    /// A rule for a program with all its subcommands and no flags beyond the known ones.
    pub fn new(program: &str, approval: Approval) -> Self {
        Self {
            program: program.to_owned(),
            subcommand: None,
            allow_flags: Vec::new(),
            refuse_flags: Vec::new(),
            operands: Operands::default(),
            approval,
        }
    }

    /// What the rule is about, for a person.
    pub(crate) fn shown(&self) -> String {
        match &self.subcommand {
            Some(subcommand) => format!("`{} {subcommand}`", self.program),
            None => format!("`{}`", self.program),
        }
    }

    /// Narrows the rule to a subcommand.
    #[must_use]
    pub fn subcommand(mut self, subcommand: &str) -> Self {
        self.subcommand = Some(subcommand.to_owned());
        self
    }
}
