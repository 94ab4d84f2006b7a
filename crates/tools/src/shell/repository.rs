//! Asks git about the repository at hand: where it lies, whether its configuration names programs, and
//! whether something in it leads out of the root.
//!
//! The answers need no trust in the repository: neither question runs anything that it could choose.

use std::path::PathBuf;
use std::time::Duration;

use super::execute::{Bounds, Invocation, run_quietly};
use super::execution_env::ExecutionEnv;
use super::flags::{Argument, FlagSyntax};
use super::git::{ANY_OWNER, READER_ENVIRONMENT, runs_programs, subcommand_position};
use super::git_config_paths::{self, ConfigEntry, Directories};
use super::programs::program;
use llm_do_sandbox::PreparedSandbox;

/// What git says about the repository in which a command runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Repository {
    /// The tree without entries from which git takes attributes instead of the files, where it can. An older
    /// git cannot; there only programs in the configuration matter, and they are a concern of their own.
    pub(crate) empty_tree: Option<&'static str>,
    /// What a person should know before a command runs.
    pub(crate) concerns: Vec<String>,
}

/// How long git may take to answer, and how much it may say.
const BOUNDS: Bounds = Bounds { time: Duration::from_secs(3), output: 1024 * 1024 };

impl Repository {
    /// Asks git, in the directory that the arguments of a command choose. Without git there is nothing to say.
    pub(crate) async fn look_up(
        arguments: &[String],
        env: &ExecutionEnv,
        sandbox: Option<PreparedSandbox>,
    ) -> Self {
        let Some(asked) = Asked::new(arguments, env, sandbox) else { return Self::default() };
        let where_it_is = asked.about(&LOCATION).await;
        let what_it_names = asked.about(&CONFIGURATION).await;
        let version = asked.about(&["version"]).await;
        let Some((((code, location), (listed, names)), (_, version))) =
            where_it_is.zip(what_it_names).zip(version)
        else {
            return Self::unclear("git does not answer about this repository");
        };
        // Without a repository git prints nothing, and its commands fail or compare plain files.
        if code != 0 && location.is_empty() {
            return Self::default();
        }
        let [location, names, version] = [location, names, version].map(lossy);
        let mut repository = Self::read(&location, &names, env);
        repository.empty_tree = repository.empty_tree.filter(|_| takes_attribute_source(&version));
        if listed != 0 {
            repository.concerns.push("git cannot read all of the repository's configuration".to_owned());
        }
        repository
    }

    fn unclear(concern: &str) -> Self {
        Self { concerns: vec![concern.to_owned()], ..Self::default() }
    }

    fn read(location: &str, configuration: &str, env: &ExecutionEnv) -> Self {
        let mut lines = location.lines();
        let empty_tree = match lines.next() {
            Some("sha256") => EMPTY_TREE_SHA256,
            _ => EMPTY_TREE_SHA1,
        };
        let directories = Directories::read(lines);
        let reached = git_config_paths::outside(&directories, &chosen_here(configuration), &env.root);
        let reached =
            reached.iter().map(|path| format!("the repository reaches to `{path}`, outside the root"));
        let programs = named_programs(configuration);
        let programs =
            programs.into_iter().map(|key| format!("the repository's `{key}` may name a program to run"));
        let formats = risky_formats(configuration);
        let formats = formats.into_iter().map(|key| format!("the format `{key}` makes git run programs"));
        Self { empty_tree: Some(empty_tree), concerns: reached.chain(programs).chain(formats).collect() }
    }
}

/// The name of the tree without entries, in the two object formats.
const EMPTY_TREE_SHA1: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns whether git knows `--attr-source`, which came with 2.41.
fn takes_attribute_source(version: &str) -> bool {
    let number = version.split_whitespace().nth(2).unwrap_or_default();
    let mut parts = number.split('.').map_while(|part| part.parse::<u32>().ok());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()) >= (2, 41)
}

const LOCATION: [&str; 6] = [
    "rev-parse",
    "--show-object-format",
    "--path-format=absolute",
    "--git-dir",
    "--git-common-dir",
    "--show-toplevel",
];

const CONFIGURATION: [&str; 5] = ["config", "--list", "--show-scope", "--show-origin", "-z"];

/// git in a directory, to be asked.
pub(crate) struct Asked<'a> {
    git: PathBuf,
    directory: Vec<String>,
    env: &'a ExecutionEnv,
    sandbox: Option<PreparedSandbox>,
}

impl<'a> Asked<'a> {
    /// Finds git, in the directory that the arguments of a command choose; nothing if there is none.
    pub(crate) fn new(
        arguments: &[String],
        env: &'a ExecutionEnv,
        sandbox: Option<PreparedSandbox>,
    ) -> Option<Self> {
        let git = env.find("git").ok()?;
        Some(Self { git, directory: chosen_directories(arguments), env, sandbox })
    }

    /// Returns what kind of object a word names: `blob`, `commit`; nothing if it names none.
    pub(crate) async fn kind_of(&self, word: &str) -> String {
        let answer = if word.starts_with('-') { None } else { self.about(&["cat-file", "-t", word]).await };
        answer.map(|(_, kind)| lossy(kind).trim().to_owned()).unwrap_or_default()
    }

    /// Returns the content of the file that a word names, if it names one; the beginning of a long one is enough.
    pub(crate) async fn content_of(&self, word: &str) -> Option<Vec<u8>> {
        if word.starts_with('-') {
            return None;
        }
        let (code, content) = self.about(&["cat-file", "blob", word]).await?;
        (code == 0).then_some(content)
    }

    pub(crate) async fn about(&self, question: &[&str]) -> Option<(i32, Vec<u8>)> {
        let fixed = ["--no-pager", "-c", "core.fsmonitor=false", "-c", ANY_OWNER].map(str::to_owned);
        let question = question.iter().map(|word| (*word).to_owned());
        let invocation = Invocation {
            name: "git".to_owned(),
            program: self.git.clone(),
            arguments: fixed.into_iter().chain(self.directory.iter().cloned()).chain(question).collect(),
            environment: READER_ENVIRONMENT.to_vec(),
        };
        run_quietly(invocation, self.env, self.sandbox.clone(), BOUNDS).await
    }
}

/// The `-C` flags of a command, which say where its repository is.
fn chosen_directories(arguments: &[String]) -> Vec<String> {
    let global = arguments.get(..subcommand_position(arguments)).unwrap_or_default();
    let understood = program("git").map(|git| git.flags.parse(global, FlagSyntax::UpToOperand));
    let chosen = |argument| match argument {
        Argument::Flag { name, value: Some(value), .. } if name == "-C" => Some(["-C".to_owned(), value]),
        _ => None,
    };
    understood.into_iter().flatten().filter_map(chosen).flatten().collect()
}

/// The keys and values of the configuration, but for those of the user and of the system, which are trusted.
fn chosen_here(list: &str) -> Vec<ConfigEntry<'_>> {
    let is_trusted = |scope: &str| matches!(scope, "system" | "global" | "command");
    entries(list).into_iter().filter(|(scope, _)| !is_trusted(scope)).map(|(_, entry)| entry).collect()
}

/// All entries of the configuration, each with its scope.
fn entries(list: &str) -> Vec<(&str, ConfigEntry<'_>)> {
    let fields: Vec<&str> = list.split('\0').collect();
    fields.chunks_exact(3).map(|fields| (fields[0], entry(fields[1], fields[2]))).collect()
}

fn entry<'l>(origin: &'l str, text: &'l str) -> ConfigEntry<'l> {
    let (key, value) = text.split_once('\n').unwrap_or((text, ""));
    ConfigEntry { origin: origin.strip_prefix("file:"), key, value }
}

/// The formats, also those of the user and of the system, with which git runs programs.
fn risky_formats(list: &str) -> Vec<String> {
    let is_format = |key: &str| key == "format.pretty" || key.starts_with("pretty.");
    let risky = |entry: &ConfigEntry<'_>| is_format(&entry.key.to_lowercase()) && runs_programs(entry.value);
    let formats = entries(list).into_iter().map(|(_, entry)| entry).filter(risky);
    formats.map(|entry| entry.key.to_owned()).collect()
}

fn named_programs(list: &str) -> Vec<String> {
    let keys = chosen_here(list).into_iter().map(|entry| entry.key);
    let mut keys: Vec<String> = keys.filter(|key| names_program(key)).map(str::to_owned).collect();
    keys.dedup();
    keys
}

fn names_program(key: &str) -> bool {
    let key = key.to_lowercase();
    let last = key.rsplit('.').next().unwrap_or_default();
    match key.split('.').next().unwrap_or_default() {
        "filter" => matches!(last, "clean" | "smudge" | "process"),
        "diff" => matches!(last, "command" | "textconv" | "external"),
        "gpg" => last == "program",
        "merge" => last == "driver",
        "trailer" => matches!(last, "command" | "cmd"),
        "core" => matches!(last, "fsmonitor" | "alternaterefscommand"),
        _ => last == "fsmonitor",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, expected) in [
            ("git version 2.47.3\n", true),
            ("git version 2.41.0.windows.1", true),
            ("git version 3.0", true),
            ("git version 2.39.5 (Apple Git-154)", false),
            ("git version 2.9.1", false),
            ("", false),
        ] {
            assert_eq!(takes_attribute_source(version), expected, "{version}");
        }
    }

    #[test]
    fn formats_that_run_programs_are_found_wherever_they_stand() {
        let list = "system\0file:/etc/gitconfig\0pretty.signed\n%h %G?\0local\0file:.git/config\0format.pretty\n%GS\0\
                    local\0file:.git/config\0pretty.short\n%h\0local\0file:.git/config\0user.name\n%G?\0";
        assert_eq!(risky_formats(list), ["pretty.signed", "format.pretty"]);
    }

    #[test]
    fn keys_that_name_programs_are_found_in_the_repository_only() {
        let list: String = [
            "local\0file:.git/config\0filter.X.clean\nx\0",
            "global\0file:/home/a/.gitconfig\0filter.lfs.clean\0",
            "command\0command line:\0core.fsmonitor\0",
            "local\0file:.git/config\0diff.a.b.textConv\0",
            "worktree\0file:.git/config.worktree\0core.fsmonitor\0",
            "local\0file:.git/config\0user.name\nfilter.x.clean\0",
            "local\0file:.git/config\0diff.external\nx\0",
            "local\0file:.git/config\0merge.y.driver\0",
        ]
        .concat();
        assert_eq!(
            named_programs(&list),
            ["filter.X.clean", "diff.a.b.textConv", "core.fsmonitor", "diff.external", "merge.y.driver"]
        );
    }
}
