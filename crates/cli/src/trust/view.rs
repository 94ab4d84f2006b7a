//! Shows the files that declare the powers of a project, with control characters escaped.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use llm_do::project::LoadedProject;

use crate::text::{printable, visible_line};

/// No more of one file is shown.
const MAX_BYTES: u64 = 256 * 1024;

/// Shows the list of powers and then the files, in the pager of the user or on the terminal itself.
pub(super) fn show(list: &str, project: &LoadedProject, terminal: &mut File) {
    let text = format!("{list}\n{}", contents(project));
    if !page(&text, terminal) {
        let _ = writeln!(terminal, "{text}");
    }
}

/// The files of the project that declare a power, and its code.
fn contents(project: &LoadedProject) -> String {
    let declared = project.powers.iter().flat_map(|declared| &declared.locations);
    let declared = declared.map(|location| location.file.clone());
    let code = project.code_files().iter().cloned();
    // A `.env` holds secrets of whoever wrote it, and the list names what it sets.
    let is_shown = |path: &std::path::PathBuf| path.file_name().is_some_and(|name| name != ".env");
    let files: BTreeSet<_> = declared.chain(code).filter(is_shown).collect();
    let mut text = String::new();
    for file in files {
        let shown = visible_line(&file.to_string_lossy());
        let _ = writeln!(text, "\n==> {shown} <==\n{}", read(&file));
    }
    text
}

fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let is_regular = path.metadata().is_ok_and(|metadata| metadata.is_file());
    let file = if is_regular { File::open(path).ok() } else { None };
    match file.map(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes)) {
        Some(Ok(_)) => {
            let is_cut = bytes.len() as u64 > MAX_BYTES;
            bytes.truncate(usize::try_from(MAX_BYTES).unwrap_or(usize::MAX));
            let end = if is_cut { "\n.. the rest is not shown" } else { "" };
            printable(&String::from_utf8_lossy(&bytes)) + end
        }
        _ => "(it cannot be read)".to_owned(),
    }
}

/// Runs the pager; returns whether it showed the text.
fn page(text: &str, terminal: &File) -> bool {
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.unwrap_or_else(|| "less".to_owned());
    let mut parts = pager.split_whitespace();
    let (Some(program), Ok(output)) = (parts.next(), terminal.try_clone()) else { return false };
    let child = Command::new(program)
        .args(parts)
        // A pager that can start programs and editors is more than a look at files of somebody else needs.
        .env("LESSSECURE", "1")
        .stdin(Stdio::piped())
        .stdout(output)
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Whoever leaves the pager early does not read the rest.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|status| status.success())
}
