//! Finds syntax errors of Python files without running them.
//!
//! The files are parsed by the interpreter of the user, never by one that the project brings, in isolated mode and
//! without site packages. It gets the texts over its standard input and only makes syntax trees of them.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use llm_do_project::{CodeLocation, CodeProblem};
use serde::Deserialize;
use serde_json::json;

use crate::interpreter::on_path;
use crate::settings::PythonSettings;

/// No larger file is parsed.
const MAX_BYTES: u64 = 4 * 1024 * 1024;
/// How long parsing may take.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Makes a syntax tree of each text and prints what is wrong, as `[[index, line, message], ..]`.
const PARSER: &str = "
import ast, json, sys
problems = []
for index, text in enumerate(json.load(sys.stdin)):
    try:
        ast.parse(text)
    except SyntaxError as error:
        problems.append([index, error.lineno, error.msg])
    except (ValueError, RecursionError, MemoryError) as error:
        problems.append([index, None, str(error) or type(error).__name__])
json.dump(problems, sys.stdout)
";

/// One problem: the number of the file, the line and the message.
#[derive(Deserialize)]
struct SyntaxProblem(usize, Option<u32>, String);

/// Returns the syntax errors of Python files. Nothing is found if there is no Python outside of the project, or if it
/// does not answer: what a run would find is then not known.
pub fn python_syntax_problems(files: &[PathBuf], root: &Path, settings: &PythonSettings) -> Vec<CodeProblem> {
    let Some(interpreter) = interpreter_of_user(root, settings) else { return Vec::new() };
    let texts: Vec<(&PathBuf, String)> =
        files.iter().filter_map(|file| Some((file, text_of(file)?))).collect();
    let input = json!(texts.iter().map(|(_, text)| text).collect::<Vec<_>>()).to_string();
    let found = parse(&interpreter, input).unwrap_or_default();
    let problem = |SyntaxProblem(index, line, message): SyntaxProblem| {
        let (file, _) = texts.get(index)?;
        let location = Some(CodeLocation { file: (*file).clone(), line });
        Some(CodeProblem { location, message: format!("syntax error: {message}"), hint: None })
    };
    found.into_iter().filter_map(problem).collect()
}

/// The first Python on the search path that does not belong to the project.
fn interpreter_of_user(root: &Path, settings: &PythonSettings) -> Option<PathBuf> {
    let root = root.canonicalize().ok()?;
    let search_path = settings.variable("PATH")?;
    let outside: Vec<PathBuf> = std::env::split_paths(search_path)
        .filter(|directory| directory.is_absolute())
        .filter(|directory| directory.canonicalize().is_ok_and(|real| !real.starts_with(&root)))
        .collect();
    let search_path = std::env::join_paths(outside).ok()?;
    on_path("python3", Path::new("/"), Some(&search_path))
}

fn text_of(file: &Path) -> Option<String> {
    let metadata = file.metadata().ok()?;
    (metadata.is_file() && metadata.len() <= MAX_BYTES).then(|| std::fs::read_to_string(file).ok())?
}

fn parse(interpreter: &Path, input: String) -> Option<Vec<SyntaxProblem>> {
    let mut child = Command::new(interpreter)
        .args(["-I", "-S", "-B", "-c", PARSER])
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let mut stdin = child.stdin.take()?;
    // The parser reads everything before it answers; a thread keeps a full pipe from blocking both sides.
    std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let mut stdout = child.stdout.take()?;
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    wait(&mut child);
    serde_json::from_str(&reader.join().ok()?.ok()?).ok()
}

/// Waits for the parser, and ends it after the time limit.
fn wait(child: &mut Child) {
    let began = Instant::now();
    while matches!(child.try_wait(), Ok(None)) {
        if began.elapsed() > TIME_LIMIT {
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
