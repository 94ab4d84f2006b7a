//! Powers: what a project does without a question, as values that can be stored and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;

use llm_do_core::visible_line;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Something that a project does without anybody being asked when it happens.
///
/// The parameters are canonical: two powers are equal exactly if a person who agreed to one agreed to the other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Power {
    /// Runs the project's Python code with an interpreter.
    Code {
        /// The interpreter: a path relative to the project, an absolute path, or a name on the search path.
        interpreter: String,
    },
    /// Starts an MCP server.
    McpCommand {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Its working directory, if it is not that of the project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cwd: Option<String>,
    },
    /// Runs a command without a question.
    Command {
        /// The program.
        program: String,
        /// The subcommand, if only one is allowed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subcommand: Option<String>,
        /// Flags that are allowed beyond the known harmless ones.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        flags: Vec<String>,
    },
    /// Looks for programs in a directory that is not one of the system.
    ProgramDirectory {
        /// The directory.
        path: String,
    },
    /// Sets an environment variable of commands.
    ShellVariable {
        /// The variable.
        name: String,
        /// Its value.
        value: String,
    },
    /// Lets the project's code read a key of a model provider.
    KeyToCode {
        /// The environment variable.
        name: String,
    },
    /// Sends prompts to an address that is not one of a built-in provider.
    Provider {
        /// Scheme, host and port.
        origin: String,
    },
    /// Sends the value of an environment variable to an address.
    KeyTo {
        /// The environment variable.
        name: String,
        /// Scheme, host and port, or the MCP server that gets it.
        origin: String,
    },
    /// Uses a provider key from the project's `.env`: the owner of that account sees the requests.
    DotenvKey {
        /// The environment variable.
        name: String,
    },
    /// Shows the value of an environment variable to the model.
    Variable {
        /// The environment variable.
        name: String,
    },
    /// Sends a request field or header that llm-do does not know.
    RequestField {
        /// The field, or `header NAME`.
        name: String,
    },
    /// Sends data out through a tool that the provider runs.
    Outward {
        /// The tool.
        tool: String,
    },
    /// Connects to an MCP server.
    McpServer {
        /// Scheme, host and port.
        origin: String,
    },
    /// Answers every approval with yes.
    ApproveAll {},
    /// Calls a tool without a question that would ask otherwise.
    PreApproved {
        /// The agent.
        agent: String,
        /// The tool, as `toolset.tool`.
        tool: String,
    },
    /// Reads files without a question that look like secrets.
    SecretFiles {
        /// The glob of the files.
        glob: String,
    },
    /// Writes a file by the ordinary rules that is run later.
    RunLater {
        /// The file, relative to the project.
        path: String,
    },
    /// Loosens the sandbox of commands.
    Sandbox {
        /// What is loosened.
        what: String,
    },
    /// Works in a directory that is wider than a project.
    Root {
        /// Which directory.
        which: String,
    },
}

/// The classes of powers, the severest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PowerClass {
    /// Runs code or commands.
    Runs,
    /// Sends keys, variables or data somewhere.
    Sends,
    /// Makes approvals ask less.
    Allows,
    /// Reaches beyond the project's directory or sandbox.
    Reaches,
}

impl fmt::Display for PowerClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Runs => "RUNS",
            Self::Sends => "SENDS",
            Self::Allows => "ALLOWS",
            Self::Reaches => "REACHES",
        })
    }
}

/// Programs that run whatever their arguments say.
const INTERPRETERS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "fish", "ksh", "env", "xargs", "nohup", "nice", "timeout", "sudo", "doas",
    "python", "python3", "node", "deno", "bun", "ruby", "perl", "php", "lua", "make", "npx", "uvx", "awk",
    "find", "ssh", "docker", "podman",
];

impl Power {
    /// Returns the class of the power.
    pub fn class(&self) -> PowerClass {
        match self {
            Self::Code { .. }
            | Self::McpCommand { .. }
            | Self::Command { .. }
            | Self::ProgramDirectory { .. }
            | Self::ShellVariable { .. } => PowerClass::Runs,
            Self::KeyToCode { .. }
            | Self::Provider { .. }
            | Self::KeyTo { .. }
            | Self::DotenvKey { .. }
            | Self::Variable { .. }
            | Self::RequestField { .. }
            | Self::Outward { .. }
            | Self::McpServer { .. } => PowerClass::Sends,
            Self::ApproveAll {}
            | Self::PreApproved { .. }
            | Self::SecretFiles { .. }
            | Self::RunLater { .. } => PowerClass::Allows,
            Self::Sandbox { .. } | Self::Root { .. } => PowerClass::Reaches,
        }
    }

    /// Returns whether a directory that is trusted may gain this power without a new question.
    ///
    /// A key in `.env` tells the person nothing new once the code and agents beside it are trusted.
    fn follows_trust(&self) -> bool {
        matches!(self, Self::DotenvKey { .. })
    }

    /// Returns whether another power takes the place of this one, so that a change is shown instead of an addition.
    fn replaces(&self, other: &Self) -> bool {
        matches!((self, other), (Self::Code { .. }, Self::Code { .. }))
    }
}

/// Describes the power in fixed words. Names that come from the project are escaped.
impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |text: &str| visible_line(text);
        match self {
            Self::Code { interpreter } => write!(
                f,
                "its Python code with your rights, in no sandbox; it sees your environment without model keys \
                 (with {})",
                show(interpreter)
            ),
            Self::McpCommand { argv, cwd } => {
                let argv: Vec<String> = argv.iter().map(|word| show(word)).collect();
                write!(f, "the program `{}` as an MCP server, with your rights", argv.join(" "))?;
                if let Some(cwd) = cwd {
                    write!(f, ", in {}", show(cwd))?;
                }
                if is_unpinned(&argv) {
                    write!(f, "; it downloads the newest version at each start")?;
                }
                Ok(())
            }
            Self::Command { program, .. } if INTERPRETERS.contains(&program.as_str()) => {
                write!(f, "any program without a question, through `{}`", show(program))
            }
            Self::Command { program, subcommand, flags } => {
                let subcommand = subcommand.iter().map(|word| format!(" {}", show(word))).collect::<String>();
                write!(f, "the command `{}{subcommand}` without a question", show(program))?;
                match &flags[..] {
                    [] => Ok(()),
                    flags if flags.iter().any(|flag| flag == "*") => write!(f, ", with any flag"),
                    flags => write!(f, ", also with {}", show(&flags.join(" "))),
                }
            }
            Self::ProgramDirectory { path } => write!(f, "programs from the directory {}", show(path)),
            Self::ShellVariable { name, value } => {
                write!(f, "commands with the variable {}={}", show(name), show(value))
            }
            Self::KeyToCode { name } => write!(f, "your key {} to its Python code", show(name)),
            Self::Provider { origin } => write!(f, "your prompts and files to {}", show(origin)),
            Self::KeyTo { name, origin } => write!(f, "your variable {} to {}", show(name), show(origin)),
            Self::DotenvKey { name } => write!(
                f,
                "your prompts to the account of {} in its .env, whose owner can read them",
                show(name)
            ),
            Self::Variable { name } => write!(f, "your variable {} to the model", show(name)),
            Self::RequestField { name } => {
                write!(f, "{} in its requests, which llm-do does not know", show(name))
            }
            Self::Outward { tool } => {
                write!(f, "data to other servers through `{}` of the model provider", show(tool))
            }
            Self::McpServer { origin } => write!(f, "arguments of calls to the MCP server {}", show(origin)),
            Self::ApproveAll {} => write!(f, "every call without a question (approve_all)"),
            Self::PreApproved { agent, tool } => {
                write!(f, "{} without a question, for the agent {}", show(tool), show(agent))
            }
            Self::SecretFiles { glob } => {
                write!(f, "reading files that look like secrets, without a question: {}", show(glob))
            }
            Self::RunLater { path } => {
                write!(f, "writes to {} like any other file, although it is run later", show(path))
            }
            Self::Sandbox { what } => write!(f, "{}", show(what)),
            Self::Root { which } => write!(f, "{}", show(which)),
        }
    }
}

/// Returns whether a runner of packages is not told which version to run.
fn is_unpinned(argv: &[String]) -> bool {
    let Some((program, arguments)) = argv.split_first() else { return false };
    let name = program.rsplit('/').next().unwrap_or_default();
    let package = arguments.iter().find(|argument| !argument.starts_with('-'));
    let is_pinned = |package: &String| package.trim_start_matches('@').contains(['@', '=']);
    matches!(name, "npx" | "uvx" | "pipx" | "bunx" | "pnpx") && !package.is_some_and(is_pinned)
}

/// Where a project declares a power.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Location {
    /// The file, as a person would write it.
    pub file: PathBuf,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The key that declares it.
    pub key: String,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", visible_line(&self.file.to_string_lossy()))?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, "  {}", visible_line(&self.key))
    }
}

/// A power and every location that declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DeclaredPower {
    /// The power.
    #[serde(flatten)]
    pub power: Power,
    /// Its class.
    pub class: PowerClass,
    /// Where it is declared.
    pub locations: Vec<Location>,
}

/// The powers of a project: each once, the severest class first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Powers(Vec<DeclaredPower>);

impl Powers {
    /// Returns the powers, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &DeclaredPower> {
        self.0.iter()
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of powers.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the powers without their locations, as they are stored.
    pub fn to_vec(&self) -> Vec<Power> {
        self.0.iter().map(|declared| declared.power.clone()).collect()
    }

    /// Returns the powers of some classes of locations only.
    #[must_use]
    pub fn filter(&self, keep: impl Fn(&Power) -> bool) -> Self {
        Self(self.0.iter().filter(|declared| keep(&declared.power)).cloned().collect())
    }

    /// Returns the digest of the set of powers, in hexadecimal. Locations do not count.
    pub fn digest(&self) -> String {
        digest_of(&self.to_vec())
    }

    /// Returns what goes beyond the powers that were agreed to.
    pub fn beyond(&self, agreed: &[Power]) -> Changes {
        let agreed: BTreeSet<&Power> = agreed.iter().collect();
        let added = self
            .0
            .iter()
            .filter(|declared| !agreed.contains(&declared.power) && !declared.power.follows_trust());
        let mut changes = Changes::default();
        for declared in added {
            let gone = |power: &&&Power| {
                declared.power.replaces(power) && !self.0.iter().any(|now| now.power == ***power)
            };
            match agreed.iter().find(gone) {
                Some(was) => changes.changed.push(((*was).clone(), declared.clone())),
                None => changes.new.push(declared.clone()),
            }
        }
        changes.kept = self.len() - changes.new.len() - changes.changed.len();
        changes
    }
}

impl FromIterator<(Power, Location)> for Powers {
    fn from_iter<T: IntoIterator<Item = (Power, Location)>>(found: T) -> Self {
        let mut powers: BTreeMap<(PowerClass, Power), BTreeSet<Location>> = BTreeMap::new();
        for (power, location) in found {
            powers.entry((power.class(), power)).or_default().insert(location);
        }
        let declared = powers.into_iter().map(|((class, power), locations)| DeclaredPower {
            power,
            class,
            locations: locations.into_iter().collect(),
        });
        Self(declared.collect())
    }
}

/// Returns the SHA-256 of the sorted powers as JSON, in hexadecimal.
pub(crate) fn digest_of(powers: &[Power]) -> String {
    let sorted: BTreeSet<&Power> = powers.iter().collect();
    let mut hasher = Sha256::new();
    for power in sorted {
        hasher.update(serde_json::to_vec(power).unwrap_or_default());
        hasher.update(b"\n");
    }
    hex(&hasher.finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What a project wants beyond the powers that were agreed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Powers that were not agreed to.
    pub new: Vec<DeclaredPower>,
    /// Powers that take the place of one that was agreed to, with that one first.
    pub changed: Vec<(Power, DeclaredPower)>,
    /// How many powers are as before.
    pub kept: usize,
}

impl Changes {
    /// Returns whether nothing goes beyond the agreement.
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.changed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(line: usize) -> Location {
        Location { file: "project.yaml".into(), line: Some(line), key: "x".to_owned() }
    }

    fn powers(list: &[Power]) -> Powers {
        list.iter().cloned().zip((1..).map(location)).collect()
    }

    fn code(interpreter: &str) -> Power {
        Power::Code { interpreter: interpreter.to_owned() }
    }

    fn variable(name: &str) -> Power {
        Power::Variable { name: name.to_owned() }
    }

    #[test]
    fn a_subset_of_the_agreement_is_no_change() {
        let agreed = [code("python3"), variable("EDITOR")];
        assert!(powers(&agreed).beyond(&agreed).is_empty());
        assert!(powers(&agreed[..1]).beyond(&agreed).is_empty());
        assert!(powers(&[]).beyond(&[]).is_empty());
    }

    #[test]
    fn exactly_the_difference_is_named() {
        let changes = powers(&[code("./bin/python"), variable("A"), variable("B")]).beyond(&[
            code("python3"),
            variable("A"),
            Power::ApproveAll {},
        ]);
        assert_eq!(changes.new.iter().map(|new| &new.power).collect::<Vec<_>>(), [&variable("B")]);
        let (was, now) = &changes.changed[0];
        assert_eq!((was, &now.power), (&code("python3"), &code("./bin/python")));
        assert_eq!(changes.kept, 1);
    }

    #[test]
    fn a_dotenv_key_is_a_power_only_of_a_directory_that_is_not_trusted() {
        let key = Power::DotenvKey { name: "OPENAI_API_KEY".to_owned() };
        assert_eq!(powers(std::slice::from_ref(&key)).len(), 1);
        assert!(powers(&[key]).beyond(&[variable("A")]).is_empty());
    }

    #[test]
    fn the_digest_depends_on_the_set_alone() {
        let one = powers(&[code("python3"), variable("A")]);
        let other: Powers =
            [(variable("A"), location(9)), (code("python3"), location(8)), (code("python3"), location(3))]
                .into_iter()
                .collect();
        assert_eq!(one.digest(), other.digest());
        assert_ne!(one.digest(), powers(&[code("python3")]).digest());
        assert_eq!(one.digest().len(), 64);
        assert_eq!(other.len(), 2);
    }

    #[test]
    fn the_severest_class_comes_first_and_names_are_escaped() {
        let list = powers(&[Power::ApproveAll {}, variable("\u{202e}A\n"), code("python3")]);
        let classes: Vec<PowerClass> = list.iter().map(|declared| declared.class).collect();
        assert_eq!(classes, [PowerClass::Runs, PowerClass::Sends, PowerClass::Allows]);
        let text = list.iter().map(|declared| declared.power.to_string()).collect::<String>();
        assert!(!text.contains(['\n', '\u{202e}']), "{text}");
    }

    #[test]
    fn interpreters_and_unpinned_packages_are_said() {
        let command =
            |program: &str| Power::Command { program: program.into(), subcommand: None, flags: vec![] };
        assert!(command("sh").to_string().starts_with("any program"));
        assert!(command("git").to_string().starts_with("the command `git`"));
        let server = |argv: &[&str]| {
            Power::McpCommand { argv: argv.iter().map(|word| (*word).to_owned()).collect(), cwd: None }
                .to_string()
        };
        assert!(server(&["npx", "-y", "@scope/server"]).contains("newest version"));
        assert!(!server(&["npx", "-y", "@scope/server@1.2.3"]).contains("newest version"));
        assert!(!server(&["./server"]).contains("newest version"));
    }

    #[test]
    fn powers_are_stored_as_json_and_an_unknown_key_is_refused() {
        let power = Power::KeyTo { name: "TOKEN".into(), origin: "https://llm.example.com".into() };
        let text = serde_json::to_string(&power).unwrap();
        assert_eq!(text, r#"{"kind":"key_to","name":"TOKEN","origin":"https://llm.example.com"}"#);
        assert_eq!(serde_json::from_str::<Power>(&text).unwrap(), power);
        assert!(serde_json::from_str::<Power>(r#"{"kind":"variable","name":"A","more":1}"#).is_err());
        assert!(serde_json::from_str::<Power>(r#"{"kind":"unheard_of"}"#).is_err());
        assert_eq!(serde_json::to_string(&Power::ApproveAll {}).unwrap(), r#"{"kind":"approve_all"}"#);
    }
}
