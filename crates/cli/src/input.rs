//! What a run is given: `--input-json`, else the prompt followed by stdin, else the project's own arguments.
//!
//! A text is JSON only for an entry with an input schema of its own. Files are attached by whoever writes the command
//! line (`--attach`, `--input-json`), never by a text or by what comes through a pipe.

use std::fs::File;
use std::path::Path;

use llm_do::call::CallKind;
use llm_do::project::{LoadedProject, Outline};
use llm_do::value::{Attachment, Input, InputPart, Schema};
use llm_do_core::parse_strict;
use serde_json::Value;

use crate::arguments::InputArguments;
use crate::command_error::CommandError;
use crate::output;
use crate::stdin::{self, MAX_BYTES};
use crate::typed_input::{TextSource, refuse_text};

/// What stdin is for if there is a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// It follows the prompt.
    FollowsPrompt,
    /// It holds the next messages of a chat.
    HoldsMessages,
}

/// Finds the input of a project's entry; none where there is none.
pub(crate) fn found(
    project: &LoadedProject,
    prompt: Option<&str>,
    arguments: &InputArguments,
    stdin: Stdin,
) -> Result<Option<Input>, CommandError> {
    if !project.allow_cli_input {
        return refuse_any(project, prompt, arguments).map(Some);
    }
    let given = given(project, prompt, arguments, stdin)?;
    let own = || project.args.clone().map(|args| Input::Object(Value::Object(args)));
    let attachments = attachments(&arguments.attach)?;
    let input = given.or_else(own).or_else(|| empty(project, &project.entry));
    Ok(input.map(|input| input.with_attachments(attachments)))
}

/// The error of a run that needs an input and has none.
pub(crate) fn missing() -> CommandError {
    let hint = "give a prompt, `--input-json`, a pipe, or `entry.args` in the manifest";
    CommandError::with_hint("no input was given", hint)
}

/// Finds the input of a call by name, made in the name of an agent or of nobody. What takes nothing needs no input, and
/// stdin is read only for what takes a text: the call may be one of many in a shell loop.
pub(crate) fn for_call(
    project: &LoadedProject,
    name: &str,
    caller: Option<&str>,
    arguments: &InputArguments,
) -> Result<Input, CommandError> {
    let given = match &arguments.input_json {
        Some(text) => {
            let input = from_json(text)?;
            refuse_text(&input, own_schema(project, name).as_ref(), TextSource::CommandLine)?;
            Some(input)
        }
        None if takes_text(project, name, caller) => stdin::read()?.map(Input::from),
        None => None,
    };
    // An agent without a schema would take the empty object for its prompt.
    let is_agent = project.project.agents().any(|agent| *agent == name);
    let input = match given {
        Some(input) => input,
        None if is_agent => empty(project, name).ok_or_else(missing)?,
        None => Input::Object(serde_json::json!({})),
    };
    Ok(input.with_attachments(attachments(&arguments.attach)?))
}

/// Looks at what the command line gives before anything of a project is run.
pub(crate) fn check(arguments: &InputArguments) -> Result<(), CommandError> {
    if let Some(text) = &arguments.input_json {
        let source = JsonSource::open(text)?;
        if !source.is_piped {
            source.read()?;
        }
    }
    attachments(&arguments.attach).map(drop)
}

/// Makes attachments of paths, as seen from the working directory.
pub(crate) fn attachments(paths: &[std::path::PathBuf]) -> Result<Vec<Attachment>, CommandError> {
    paths.iter().map(|path| attachment(path)).collect()
}

fn attachment(path: &Path) -> Result<Attachment, CommandError> {
    let refuse = |reason: String| {
        CommandError::with_hint(
            format!("`{}` cannot be attached: {reason}", path.display()),
            format!("name a regular file of at most {} MiB", MAX_BYTES / 1024 / 1024),
        )
    };
    let metadata = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file".to_owned()));
    }
    if metadata.len() > MAX_BYTES {
        return Err(refuse(format!("it has {} bytes", metadata.len())));
    }
    let whole = std::path::absolute(path).map_err(|error| refuse(error.to_string()))?;
    Ok(Attachment::path(whole))
}

fn given(
    project: &LoadedProject,
    prompt: Option<&str>,
    arguments: &InputArguments,
    stdin: Stdin,
) -> Result<Option<Input>, CommandError> {
    if let Some(json) = &arguments.input_json {
        if prompt.is_some() {
            output::early_notice("the prompt is ignored because `--input-json` is given");
        }
        let input = from_json(json)?;
        refuse_text(&input, own_schema(project, &project.entry).as_ref(), TextSource::CommandLine)?;
        return Ok(Some(input));
    }
    let text = match (prompt, stdin) {
        (Some(prompt), Stdin::FollowsPrompt) => Some(with_stdin(prompt)?),
        (Some(prompt), Stdin::HoldsMessages) => Some(prompt.to_owned()),
        (None, Stdin::HoldsMessages) => None,
        (None, Stdin::FollowsPrompt) => stdin::read()?,
    };
    let schema = own_schema(project, &project.entry);
    text.map(|text| from_text(&text, schema.as_ref(), TextSource::CommandLine)).transpose()
}

/// The prompt, a blank line and stdin; the prompt alone if stdin gives nothing.
fn with_stdin(prompt: &str) -> Result<String, CommandError> {
    Ok(match stdin::read_after_prompt()? {
        Some(text) => format!("{prompt}\n\n{text}"),
        None => prompt.to_owned(),
    })
}

/// Reads a text that somebody wrote: a JSON object is the input of an entry with a schema of its own, and text for all
/// others.
pub(crate) fn from_text(
    text: &str,
    schema: Option<&Schema>,
    source: TextSource,
) -> Result<Input, CommandError> {
    let object = schema.and_then(|_| parse_strict(text).ok()).filter(Value::is_object);
    let input = object.map_or_else(|| text.into(), Input::Object);
    if input.names_files() {
        return Err(attaching("the input", "attach them with `--attach FILE`"));
    }
    refuse_text(&input, schema, source)?;
    Ok(input)
}

/// Refuses an input that would attach files though nobody attached them.
pub(crate) fn attaching(source: &str, hint: &str) -> CommandError {
    CommandError::with_hint(format!("{source} names files to attach, which a text or a pipe cannot do"), hint)
}

/// The schema of an agent's or entry's own input; none for what takes a text.
pub(crate) fn own_schema(project: &LoadedProject, name: &str) -> Option<Schema> {
    let mut specs = project.project.outline().into_iter().filter_map(|outline| outline.agent);
    if let Some(spec) = specs.find(|spec| spec.name == name) {
        return spec.input.clone();
    }
    let callables = project.project.root_outline().callables;
    let mut entries = callables.into_iter().filter(|callable| callable.kind == CallKind::Entry);
    let schema = entries.find(|entry| entry.name == name)?.definition.input.clone();
    (!is_prompt(&schema)).then_some(schema)
}

/// Returns whether a schema asks for no more than a text and its attachments.
fn is_prompt(schema: &Schema) -> bool {
    let properties = schema.source()["properties"].as_object();
    properties.is_some_and(|properties| {
        properties.contains_key("input")
            && properties.keys().all(|key| ["input", "attachments"].contains(&key.as_str()))
    })
}

/// Returns whether a callable can be given a text alone.
fn takes_text(project: &LoadedProject, name: &str, caller: Option<&str>) -> bool {
    let outlines = project.project.outline();
    let agent = |outline: &&Outline, name: &str| outline.agent.as_ref().is_some_and(|spec| spec.name == name);
    if let Some(spec) =
        outlines.iter().find(|outline| agent(outline, name)).and_then(|outline| outline.agent.as_ref())
    {
        return spec.input.as_ref().is_none_or(is_text);
    }
    let root = project.project.root_outline();
    let outline = match caller {
        Some(caller) => outlines.iter().find(|outline| agent(outline, caller)),
        None => Some(&root),
    };
    let mut callables = outline.into_iter().flat_map(|outline| &outline.callables);
    callables.any(|callable| callable.name == name && is_text(&callable.definition.input))
}

/// Returns whether an object with nothing but a text in `input` may fit.
fn is_text(schema: &Schema) -> bool {
    let source = schema.source();
    let others_required =
        source["required"].as_array().is_some_and(|keys| keys.iter().any(|key| key != "input"));
    source["properties"]["input"]["type"] == "string" && !others_required
}

/// A typed input that may be empty.
fn empty(project: &LoadedProject, agent: &str) -> Option<Input> {
    let schema = own_schema(project, agent)?;
    let nothing = serde_json::json!({});
    schema.accept(nothing.clone()).is_ok().then_some(Input::Object(nothing))
}

/// A project that takes no input from outside is given none.
fn refuse_any(
    project: &LoadedProject,
    prompt: Option<&str>,
    arguments: &InputArguments,
) -> Result<Input, CommandError> {
    let what = match (&arguments.input_json, prompt, arguments.attach.is_empty()) {
        (Some(_), ..) => Some("`--input-json`"),
        (_, Some(_), _) => Some("a prompt"),
        (_, _, false) => Some("`--attach`"),
        _ if stdin::has_bytes() => Some("stdin"),
        _ => None,
    };
    match what {
        Some(what) => Err(CommandError::with_hint(
            format!("this project takes no input from the command line, and {what} gives some"),
            "its manifest sets `allow_cli_input: false`; run it without",
        )),
        None => {
            let own = project.args.clone().map(|args| Input::Object(Value::Object(args)));
            own.or_else(|| empty(project, &project.entry)).ok_or_else(|| {
                CommandError::with_hint("no input was given", "write `entry.args` in the manifest")
            })
        }
    }
}

/// Where the JSON of `--input-json` comes from.
struct JsonSource<'a> {
    argument: &'a str,
    file: Option<File>,
    /// Whether it can be read only once, and was written by a program instead of the person.
    is_piped: bool,
}

impl<'a> JsonSource<'a> {
    fn open(argument: &'a str) -> Result<Self, CommandError> {
        let Some(path) = argument.strip_prefix('@') else {
            return Ok(Self { argument, file: None, is_piped: argument == "-" });
        };
        let refuse = |error| CommandError::usage(format!("`{path}` cannot be read: {error}"));
        let file = File::open(path).map_err(refuse)?;
        let is_piped = !file.metadata().map_err(refuse)?.is_file();
        Ok(Self { argument, file: Some(file), is_piped })
    }

    fn name(&self) -> String {
        match (self.argument.strip_prefix('@'), self.argument) {
            (Some(path), _) => format!("`{path}`"),
            (None, "-") => "stdin".to_owned(),
            (None, _) => "`--input-json`".to_owned(),
        }
    }

    fn read(self) -> Result<Input, CommandError> {
        let (name, is_piped) = (self.name(), self.is_piped);
        let text = match self.file {
            Some(file) => stdin::read_text(file, name.trim_matches('`'))?,
            None if is_piped => stdin::read_text(std::io::stdin().lock(), "stdin")?,
            None => self.argument.to_owned(),
        };
        let input = parse_input(&text).map_err(|reason| {
            CommandError::with_hint(
                format!("{name} is not valid JSON input: {reason}"),
                "give an object such as '{\"input\": \"hello\"}', `@FILE`, or `-` for stdin",
            )
        })?;
        if is_piped && input.names_files() {
            return Err(attaching(&name, "attach them with `--attach FILE`"));
        }
        Ok(input)
    }
}

fn from_json(argument: &str) -> Result<Input, CommandError> {
    JsonSource::open(argument)?.read()
}

fn parse_input(text: &str) -> Result<Input, String> {
    match parse_strict(text).map_err(|error| error.to_string())? {
        Value::String(text) => Ok(Input::Text(text)),
        Value::Array(parts) => parts.into_iter().map(part).collect::<Result<_, _>>().map(Input::Parts),
        object @ Value::Object(_) => Ok(Input::Object(object)),
        _ => Err("expected an object, a text or a list".to_owned()),
    }
}

/// A piece of a list: a text, or an attachment as `{"path": ..}` or `{"name": .., "data": ..}`.
fn part(value: Value) -> Result<InputPart, String> {
    match value {
        Value::String(text) => Ok(InputPart::Text(text)),
        Value::Object(mut map) => {
            if let (Some(path), None) = (map.get("path").and_then(Value::as_str), map.get("name")) {
                let name = Attachment::path(path).name;
                map.insert("name".to_owned(), name.into());
            }
            let read = serde_json::from_value(Value::Object(map));
            read.map(InputPart::Attachment).map_err(|error| format!("a piece is not an attachment: {error}"))
        }
        other => Err(format!("a piece of the list is {other}, expected a text or an attachment")),
    }
}
