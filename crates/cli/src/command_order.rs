//! Puts the command first: flags may come before it, and a path without a command is run.
//!
//! Which flags take a value is read from the definitions of all commands, so that a value is not taken for a command.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Command;

use crate::command_error::CommandError;
use crate::path_syntax::is_like_path;
use crate::text::visible_line;

/// Arguments of the program itself.
const PROGRAM_FLAGS: [&str; 5] = ["help", "-h", "--help", "-V", "--version"];

/// Puts the command behind the name of the program; `run` if there is none.
pub(crate) fn command_first(
    mut arguments: Vec<OsString>,
    program: &mut Command,
) -> Result<Vec<OsString>, CommandError> {
    program.build();
    let is_program_flag = |first: &OsString| PROGRAM_FLAGS.iter().any(|known| first == *known);
    if arguments.get(1).is_none_or(is_program_flag) {
        return Ok(arguments);
    }
    let index = first_positional(&arguments, program);
    // What follows an unknown flag may be its value, so the parser says what is wrong.
    let before = &arguments[1..index.unwrap_or(1)];
    let is_clear = before.iter().all(|argument| is_known(argument, program));
    match index.filter(|index| is_command(&arguments[*index], program)) {
        Some(index) => arguments[1..=index].rotate_right(1),
        None => {
            if let Some(index) = index.filter(|_| is_clear) {
                refuse_misspelled(&arguments[index..], program)?;
            }
            arguments.insert(1, "run".into());
        }
    }
    Ok(arguments)
}

fn is_command(argument: &OsStr, program: &Command) -> bool {
    program.get_subcommands().any(|command| argument == command.get_name())
}

/// Finds the first argument that is neither a flag nor the value of one. Behind `--` there is no command.
fn first_positional(arguments: &[OsString], program: &Command) -> Option<usize> {
    let mut index = 1;
    while let Some(argument) = arguments.get(index) {
        match argument.to_str() {
            Some("--") => return None,
            Some(flag) if flag.starts_with('-') && flag.len() > 1 => {
                index += if takes_next(flag, program) { 2 } else { 1 };
            }
            _ => return Some(index),
        }
    }
    None
}

/// Returns whether the argument after a flag is its value.
fn takes_next(flag: &str, program: &Command) -> bool {
    if let Some(long) = flag.strip_prefix("--") {
        return !long.contains('=') && takes_value(program, |other| other.get_long() == Some(long));
    }
    // Of several flags in one argument, the first that takes a value takes the rest of the argument.
    let mut letters = flag.chars().skip(1);
    let is_valued = |letter: char| takes_value(program, |other| other.get_short() == Some(letter));
    letters.any(is_valued) && letters.next().is_none()
}

/// Returns whether an argument before the command is a flag of some command, or the value of one.
fn is_known(argument: &OsStr, program: &Command) -> bool {
    let Some(long) = argument.to_str().and_then(|argument| argument.strip_prefix("--")) else { return true };
    let name = long.split('=').next();
    let mut flags = program.get_subcommands().flat_map(Command::get_arguments);
    long.is_empty() || flags.any(|flag| flag.get_long() == name)
}

fn takes_value(program: &Command, is_meant: impl Fn(&clap::Arg) -> bool) -> bool {
    let mut flags = program.get_subcommands().flat_map(Command::get_arguments);
    flags.any(|flag| {
        let needs_one = flag.get_num_args().is_some_and(|count| count.min_values() > 0);
        is_meant(flag) && flag.get_action().takes_values() && needs_one && !flag.is_require_equals_set()
    })
}

/// Refuses a word in the place of a command that is neither a command nor a path: it would be sent to a model.
fn refuse_misspelled(arguments: &[OsString], program: &Command) -> Result<(), CommandError> {
    let Some(word) = arguments.first().and_then(|word| word.to_str()) else { return Ok(()) };
    if word.contains(char::is_whitespace) || Path::new(word).exists() || is_like_path(word) {
        return Ok(());
    }
    let shown = visible_line(word);
    let names: Vec<&str> = program.get_subcommands().map(Command::get_name).collect();
    let hint = match llm_do_core::misspelled(word, names.iter().copied()) {
        Some(meant) => format!("did you mean the command `{meant}`?"),
        None => format!("`llm-do --help` lists the commands; `llm-do run {shown}` takes it as a prompt"),
    };
    Err(CommandError::with_hint(format!("`{shown}` is neither a command nor a project"), hint))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;
    use crate::arguments::Cli;

    fn ordered(written: &str) -> String {
        let arguments = shlex::split(&format!("llm-do {written}")).unwrap().into_iter().map(OsString::from);
        match command_first(arguments.collect(), &mut Cli::command()) {
            Ok(ordered) => {
                let words: Vec<&str> = ordered[1..].iter().map(|word| word.to_str().unwrap()).collect();
                words.join(" ")
            }
            Err(problem) => problem.to_string(),
        }
    }

    #[test]
    fn flags_may_stand_before_the_command() {
        for (written, ordered_as) in [
            ("run m2 hi", "run m2 hi"),
            ("-v run m2 hi", "run -v m2 hi"),
            ("--model test:echo run m2 hi", "run --model test:echo m2 hi"),
            ("--model=test:echo -vv chat m2", "chat --model=test:echo -vv m2"),
            ("-vm test:echo run m2", "run -vm test:echo m2"),
            ("-mtest:echo run m2", "run -mtest:echo m2"),
            ("--trust run m2", "run --trust m2"),
            ("-p run call", "call -p run"),
            ("--nonsense run m2", "run --nonsense m2"),
            ("--output json list", "list --output json"),
            ("--help", "--help"),
            ("help run", "help run"),
            ("", ""),
        ] {
            assert_eq!(ordered(written), ordered_as, "{written}");
        }
    }

    #[test]
    fn flags_mean_the_same_before_and_behind_the_command() {
        const FLAGS: [&[&str]; 10] = [
            &["-v"],
            &["-vvm", "test"],
            &["--model", "run"],
            &["--model=chat"],
            &["-mtest:echo"],
            &["--trust"],
            &["--trust=0123456789ab"],
            &["-a", "all"],
            &["-p", "-1 is what"],
            &["--set", "model=test"],
        ];
        let parsed = |words: Vec<&str>| {
            let words = ["llm-do"].into_iter().chain(words).map(OsString::from).collect();
            let ordered = command_first(words, &mut Cli::command()).map_err(|problem| problem.to_string())?;
            Cli::try_parse_from(ordered).map(|cli| format!("{cli:?}")).map_err(|error| error.to_string())
        };
        for (first, second) in FLAGS.iter().flat_map(|first| FLAGS.iter().map(move |second| (first, second)))
        {
            for command in ["run", "chat"] {
                let behind = parsed([&[command], *first, *second, &["src"]].concat());
                assert_eq!(
                    parsed([*first, *second, &[command], &["src"]].concat()),
                    behind,
                    "{first:?} {second:?}"
                );
                assert_eq!(
                    parsed([*first, &[command], *second, &["src"]].concat()),
                    behind,
                    "{first:?} {second:?}"
                );
                let is_twice = |error: &String| error.contains("cannot be used multiple times");
                assert!(behind.as_ref().err().is_none_or(is_twice), "{behind:?}");
            }
        }
    }

    #[test]
    fn a_path_without_a_command_is_run() {
        for (written, ordered_as) in [
            ("src hi", "run src hi"),
            ("-v src hi", "run -v src hi"),
            ("./missing hi", "run ./missing hi"),
            ("'Good morning'", "run Good morning"),
            ("-- run", "run -- run"),
            ("-v", "run -v"),
        ] {
            assert_eq!(ordered(written), ordered_as, "{written}");
        }
    }

    #[test]
    fn a_misspelled_command_is_not_a_prompt() {
        for written in ["rnu m2 hi", "rnu", "-v rnu m2 hi", "--model test:echo rnu"] {
            assert!(ordered(written).contains("did you mean the command `run`?"), "{written}");
        }
        let unrelated = ordered("test tk");
        assert!(unrelated.contains("`test` is neither a command nor a project"), "{unrelated}");
        assert!(!unrelated.contains("did you mean"), "{unrelated}");
    }
}
