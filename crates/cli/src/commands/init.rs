//! `llm-do init`: a project to start from, which runs offline at once.

use std::io::Write;
use std::path::Path;

use llm_do_trust::TrustSource;

use crate::arguments::{InitArguments, Template};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::location::ProjectLocation;
use crate::{loading, output, trust};

type Files = &'static [(&'static str, &'static str)];

const MINIMAL: Files = &[("main.agent", include_str!("../../templates/minimal/main.agent"))];

const NESTED: Files = &[
    ("project.yaml", include_str!("../../templates/nested/project.yaml")),
    ("agents/main.agent", include_str!("../../templates/nested/agents/main.agent")),
    ("agents/writer.agent", include_str!("../../templates/nested/agents/writer.agent")),
    ("agents/critic.agent", include_str!("../../templates/nested/agents/critic.agent")),
    ("offline.yaml", include_str!("../../templates/nested/offline.yaml")),
];

const TYPED_INPUT: Files = &[
    ("project.yaml", include_str!("../../templates/typed-input/project.yaml")),
    ("planner.agent", include_str!("../../templates/typed-input/planner.agent")),
    ("offline.yaml", include_str!("../../templates/typed-input/offline.yaml")),
];

const PYTHON: Files = &[
    ("project.yaml", include_str!("../../templates/python/project.yaml")),
    ("main.agent", include_str!("../../templates/python/main.agent")),
    ("writer.agent", include_str!("../../templates/python/writer.agent")),
    ("tools.py", include_str!("../../templates/python/tools.py")),
    ("offline.yaml", include_str!("../../templates/python/offline.yaml")),
];

/// Writes a project. Nothing that exists is overwritten.
pub(crate) fn init(arguments: &InitArguments) -> Result<Exit, CommandError> {
    let directory = &arguments.directory;
    let (files, next) = match arguments.template {
        Template::Minimal => (MINIMAL, "\"Good morning\""),
        Template::Nested => (NESTED, "\"A haiku about rain\""),
        Template::Python => (PYTHON, "\"Ada is here\""),
        Template::TypedInput => (TYPED_INPUT, "--input-json '{\"topic\": \"Rust\", \"days\": 2}'"),
    };
    refuse_existing(directory, files)?;
    let was_empty = std::fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none());
    for (name, content) in files {
        write_new(&directory.join(name), content)?;
        output::to_stderr(&format!("wrote {}", directory.join(name).display()));
    }
    // What else lies in a directory is not the work of this command.
    if was_empty {
        trust_own(directory);
    }
    let shown = if directory == Path::new(".") { ".".to_owned() } else { directory.display().to_string() };
    output::to_stderr(&format!("\nnext: llm-do run {shown} {next}"));
    Ok(Exit::Done)
}

/// Trusts a project that was just written. One that cannot be remembered asks at its first run.
fn trust_own(directory: &Path) {
    if let Ok(project) = loading::load_static(&ProjectLocation::new(directory)) {
        let _ = trust::record(&project, &project.powers, |entry| {
            entry.own = true;
            entry.by = TrustSource::Init;
        });
    }
}

fn refuse_existing(directory: &Path, files: Files) -> Result<(), CommandError> {
    let existing =
        files.iter().map(|(name, _)| directory.join(name)).find(|path| path.symlink_metadata().is_ok());
    match existing {
        Some(path) => Err(CommandError::with_hint(
            format!("`{}` exists already, and nothing is overwritten", path.display()),
            "name another directory, which may be new: `llm-do init DIRECTORY`",
        )),
        None => Ok(()),
    }
}

fn write_new(path: &Path, content: &str) -> Result<(), CommandError> {
    let refuse = |error: std::io::Error| {
        CommandError::usage(format!("`{}` cannot be written: {error}", path.display()))
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(refuse)?;
    }
    let mut file = std::fs::File::create_new(path).map_err(refuse)?;
    file.write_all(content.as_bytes()).map_err(refuse)
}
