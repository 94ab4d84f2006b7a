//! What a run is given: `--input-json`, else the prompt, else stdin, else the project's own arguments.

use std::io::{IsTerminal, Read, stdin};
use std::path::Path;
use std::time::Duration;

use llm_do::{Attachment, Input, InputPart, LoadedProject, parse_strict};
use rustix::event::{PollFd, PollFlags, poll};
use serde_json::Value;

use crate::arguments::InputArguments;
use crate::output;
use crate::problem::Problem;

/// The most that is read from stdin or from a file.
const LARGEST: u64 = 32 * 1024 * 1024;
/// How long a project that takes no input looks whether there is some.
const LOOK: Duration = Duration::from_millis(100);

/// Finds the input of a project's entry; none where there is none.
pub(crate) fn found(
    project: &LoadedProject,
    prompt: Option<&str>,
    arguments: &InputArguments,
) -> Result<Option<Input>, Problem> {
    if !project.allow_cli_input {
        return refuse_any(project, prompt, arguments).map(Some);
    }
    let given = given(prompt, arguments)?;
    let own = || project.args.clone().map(|args| Input::Object(Value::Object(args)));
    let attachments = attachments(&arguments.attach)?;
    let input = given.or_else(own).or_else(|| empty(project, &project.entry));
    Ok(input.map(|input| input.with_attachments(attachments)))
}

/// There is no input, and there must be one.
pub(crate) fn none() -> Problem {
    let hint = "give a prompt, `--input-json`, a pipe, or `entry.args` in the manifest";
    Problem::with_hint("there is no input", hint)
}

/// Finds the input of a call by name. What takes nothing needs no input.
pub(crate) fn of_call(
    project: &LoadedProject,
    name: &str,
    arguments: &InputArguments,
) -> Result<Input, Problem> {
    let given = match &arguments.input_json {
        Some(text) => Some(from_json(text)?),
        None => from_stdin()?,
    };
    // An agent without a schema would take the empty object for its prompt.
    let is_agent = project.project.agents().any(|agent| *agent == name);
    let input = match given {
        Some(input) => input,
        None if is_agent => empty(project, name).ok_or_else(none)?,
        None => Input::Object(serde_json::json!({})),
    };
    Ok(input.with_attachments(attachments(&arguments.attach)?))
}

/// Looks at what the command line gives before anything of a project is run.
pub(crate) fn check(arguments: &InputArguments) -> Result<(), Problem> {
    if let Some(text) = arguments.input_json.as_deref().filter(|text| *text != "-") {
        from_json(text)?;
    }
    attachments(&arguments.attach).map(drop)
}

/// Makes attachments of paths, as seen from the working directory.
pub(crate) fn attachments(paths: &[std::path::PathBuf]) -> Result<Vec<Attachment>, Problem> {
    paths.iter().map(|path| attachment(path)).collect()
}

fn attachment(path: &Path) -> Result<Attachment, Problem> {
    let refuse = |reason: String| {
        Problem::with_hint(
            format!("`{}` cannot be attached: {reason}", path.display()),
            format!("name a regular file of at most {} MiB", LARGEST / 1024 / 1024),
        )
    };
    let metadata = std::fs::metadata(path).map_err(|error| refuse(error.to_string()))?;
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file".to_owned()));
    }
    if metadata.len() > LARGEST {
        return Err(refuse(format!("it has {} bytes", metadata.len())));
    }
    let whole = std::path::absolute(path).map_err(|error| refuse(error.to_string()))?;
    Ok(Attachment::path(whole))
}

fn given(prompt: Option<&str>, arguments: &InputArguments) -> Result<Option<Input>, Problem> {
    match (&arguments.input_json, prompt) {
        (Some(text), prompt) => {
            if prompt.is_some() {
                output::to_stderr("notice: the prompt is not used, as `--input-json` goes before it");
            }
            from_json(text).map(Some)
        }
        (None, Some(prompt)) => Ok(Some(prompt.into())),
        (None, None) => from_stdin(),
    }
}

/// A typed input that may be empty.
fn empty(project: &LoadedProject, agent: &str) -> Option<Input> {
    let outlines = project.project.outline();
    let specs = outlines.into_iter().filter_map(|outline| outline.agent);
    let schema = specs.filter(|spec| spec.name == agent).find_map(|spec| spec.input.clone())?;
    let nothing = serde_json::json!({});
    schema.accept(nothing.clone()).is_ok().then_some(Input::Object(nothing))
}

/// A project that takes no input from outside is given none.
fn refuse_any(
    project: &LoadedProject,
    prompt: Option<&str>,
    arguments: &InputArguments,
) -> Result<Input, Problem> {
    let what = match (&arguments.input_json, prompt, arguments.attach.is_empty()) {
        (Some(_), ..) => Some("`--input-json`"),
        (_, Some(_), _) => Some("a prompt"),
        (_, _, false) => Some("`--attach`"),
        _ if stdin_has_bytes() => Some("stdin"),
        _ => None,
    };
    match what {
        Some(what) => Err(Problem::with_hint(
            format!("this project takes no input from the command line, and {what} gives some"),
            "its manifest says `allow_cli_input: false`; run it without",
        )),
        None => {
            let own = project.args.clone().map(|args| Input::Object(Value::Object(args)));
            own.or_else(|| empty(project, &project.entry))
                .ok_or_else(|| Problem::with_hint("there is no input", "write `entry.args` in the manifest"))
        }
    }
}

fn stdin_has_bytes() -> bool {
    if stdin().is_terminal() {
        return false;
    }
    let stream = stdin();
    let mut waiting = [PollFd::new(&stream, PollFlags::IN)];
    let limit = rustix::time::Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
    let ready = poll(&mut waiting, Some(&limit)).is_ok_and(|ready| ready > 0);
    ready && stdin().lock().read(&mut [0]).is_ok_and(|read| read > 0)
}

fn from_stdin() -> Result<Option<Input>, Problem> {
    if stdin().is_terminal() {
        return Ok(None);
    }
    let text = read_text(stdin().lock(), "stdin")?;
    let text = text.strip_suffix('\n').map(|text| text.strip_suffix('\r').unwrap_or(text)).unwrap_or(&text);
    Ok((!text.is_empty()).then(|| text.into()))
}

fn from_json(argument: &str) -> Result<Input, Problem> {
    let (text, source) = match argument.strip_prefix('@') {
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Problem::usage(format!("`{path}` cannot be read: {error}")))?;
            (read_text(file, path)?, format!("`{path}`"))
        }
        None if argument == "-" => (read_text(stdin().lock(), "stdin")?, "stdin".to_owned()),
        None => (argument.to_owned(), "`--input-json`".to_owned()),
    };
    let refuse = |reason: String| {
        Problem::with_hint(
            format!("{source} is no JSON input: {reason}"),
            "give an object such as '{\"input\": \"hello\"}', `@FILE`, or `-` for stdin",
        )
    };
    match parse_strict(&text).map_err(|error| refuse(error.to_string()))? {
        Value::String(text) => Ok(Input::Text(text)),
        Value::Array(parts) => {
            parts.into_iter().map(part).collect::<Result<_, _>>().map(Input::Parts).map_err(refuse)
        }
        object @ Value::Object(_) => Ok(Input::Object(object)),
        _ => Err(refuse("expected an object, a text or a list".to_owned())),
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
            read.map(InputPart::Attachment).map_err(|error| format!("a piece is no attachment: {error}"))
        }
        other => Err(format!("a piece of the list is {other}, expected a text or an attachment")),
    }
}

fn read_text(stream: impl Read, name: &str) -> Result<String, Problem> {
    let mut bytes = Vec::new();
    let read = stream.take(LARGEST + 1).read_to_end(&mut bytes);
    read.map_err(|error| Problem::usage(format!("{name} cannot be read: {error}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(Problem::usage(format!("{name} gives more than {} MiB", LARGEST / 1024 / 1024)));
    }
    String::from_utf8(bytes).map_err(|_| {
        Problem::with_hint(format!("{name} is not UTF-8 text"), "attach the file with `--attach`")
    })
}
