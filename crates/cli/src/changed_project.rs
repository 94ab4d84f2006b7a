//! A run is continued, and its project is not what it was: names what changed, and lets the user choose how to go on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use llm_do::event::RunId;
use llm_do::project::RecordedFiles;
use llm_do::record::{BundledFile, ChangeKind, ProjectBundle, ProjectChanges, ProjectState};
use llm_do_project::read_bundle;
use llm_do_record::short_id;
use similar::TextDiff;

use crate::arguments::ChangedChoice;
use crate::command_error::CommandError;
use crate::environment::machine_name;
use crate::location::ProjectLocation;
use crate::output;
use crate::terminal_question;
use crate::text::{printable, visible_line};

/// How long to look for a short diff before a longer one will do.
const DIFF_LIMIT: Duration = Duration::from_secs(2);

/// Where the project of a run is today, and its files then and now.
pub(crate) struct ChangedProject {
    run: RunId,
    changes: ProjectChanges,
    root: PathBuf,
    /// The files with which the run was last started or continued, if the record has them.
    recorded: Option<ProjectBundle>,
    today: ProjectBundle,
}

impl ChangedProject {
    /// Compares the files, the directory and the machine of a recorded run with those of today.
    pub(crate) fn find(
        run: RunId,
        state: &ProjectState,
        recorded: Option<ProjectBundle>,
        location: &ProjectLocation,
    ) -> Self {
        let root = root_of(state, location);
        let today = match &recorded {
            Some(earlier) => read_bundle(&location.path, &location.set, &root, earlier),
            None => ProjectBundle::default(),
        };
        let now = ProjectState {
            project: Some(root.clone()),
            source: Some(location.to_source()),
            ..ProjectState::default()
        };
        let mut changes = ProjectChanges::between(state, &now);
        // Nothing is linked yet.
        changes.unnamed = false;
        if let Some(earlier) = &recorded {
            changes.files = today.changes_since(earlier);
        }
        Self { run, changes, root, recorded, today }
    }

    /// Returns how to go on: as the flag says, or as the user answers at the terminal. `None` if nothing changed.
    pub(crate) fn choose(
        &self,
        flag: Option<ChangedChoice>,
        shows_diff: bool,
    ) -> Result<Option<ChangedChoice>, CommandError> {
        if flag == Some(ChangedChoice::Recorded) && self.recorded.is_none() {
            return Err(CommandError::with_hint(
                format!("the record does not have the files of run {}", short_id(self.run)),
                "go on with the files of today: `--changed go-on`",
            ));
        }
        if !self.changes.need_decision() {
            return Ok(None);
        }
        if shows_diff {
            output::to_stderr(self.diff().trim_end());
        }
        match flag {
            Some(choice) => Ok(Some(choice)),
            None => self.ask().map(Some),
        }
    }

    /// Returns the recorded files in place of those on disk.
    pub(crate) fn recorded_files(&self) -> RecordedFiles {
        let none = ProjectBundle::default();
        RecordedFiles::new(&self.root, self.recorded.as_ref().unwrap_or(&none))
    }

    fn ask(&self) -> Result<ChangedChoice, CommandError> {
        let described = self.describe();
        let has_files = !self.changes.files.is_empty();
        let choices = match has_files {
            true => {
                "[g] go on with the files of today  [r] go on with the recorded files  [d] show the changes  [s] stop"
            }
            false => "[g] go on  [s] stop",
        };
        let mut question = format!("{described}\n\n{choices} > ");
        loop {
            let answer = terminal_question::ask(&question);
            match answer.as_deref() {
                None => return Err(CommandError::with_hint(described, self.hint())),
                Some("g" | "G") => return Ok(ChangedChoice::GoOn),
                Some("r" | "R") if has_files => return Ok(ChangedChoice::Recorded),
                Some("d" | "D") if has_files => question = format!("{}\n{choices} > ", self.diff()),
                Some(_) => return Err(stopped()),
            }
        }
    }

    fn describe(&self) -> String {
        let mut text = format!("the project of run {} is not what it was:", short_id(self.run));
        text.push_str(&table(&self.changes.files));
        if let Some(earlier) = &self.changes.earlier_directory {
            let shown = |path: &Path| visible_line(&path.display().to_string());
            let _ = write!(text, "\n  it was in {}, and is in {}", shown(earlier), shown(&self.root));
        }
        if let Some(earlier) = &self.changes.earlier_machine {
            let here = machine_name();
            let directory = visible_line(&self.root.display().to_string());
            let _ = write!(
                text,
                "\n  it was on the machine {}, and is on {} in {directory}",
                visible_line(earlier),
                visible_line(&here)
            );
        }
        text
    }

    fn hint(&self) -> String {
        let go_on = "to go on with it as it is today, use `--changed go-on`";
        if self.changes.files.is_empty() {
            return go_on.to_owned();
        }
        format!(
            "`--diff` shows the changes; {go_on}; to go on with the recorded manifest, agent files and prompts, use `--changed recorded`"
        )
    }

    /// The changed files as a unified diff.
    fn diff(&self) -> String {
        let earlier = self.recorded.iter();
        let file = |bundle: &ProjectBundle, path: &str| bundle.get(path).cloned();
        let diff_of = |(path, kind): (&String, &ChangeKind)| {
            let earlier = earlier.clone().find_map(|bundle| file(bundle, path));
            diff(path, *kind, earlier.as_ref(), file(&self.today, path).as_ref())
        };
        self.changes.files.iter().map(diff_of).collect()
    }
}

/// Lets the user decide about tools that the run has used, that must not be repeated, and that are others today.
pub(crate) fn check_tools(run: RunId, changes: &ProjectChanges) -> Result<(), CommandError> {
    if changes.used_once.is_empty() {
        return Ok(());
    }
    let used = changes.tools.iter().filter(|(name, _)| changes.used_once.contains(*name));
    let described = format!(
        "run {} has used tools that must not be repeated, and that have another definition today:{}",
        short_id(run),
        table(used)
    );
    match terminal_question::ask(&format!("{described}\n\n[g] go on  [s] stop > ")).as_deref() {
        None => Err(CommandError::with_hint(described, "to go on, use `--changed go-on`")),
        Some("g" | "G") => Ok(()),
        Some(_) => Err(stopped()),
    }
}

fn stopped() -> CommandError {
    CommandError::usage("the run was not continued")
}

/// The directory of the project today: where it was, unless the user named another place.
fn root_of(state: &ProjectState, location: &ProjectLocation) -> PathBuf {
    let absolute = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let source = location.to_source().path;
    let recorded = state.project.as_ref().zip(state.source.as_ref());
    let below = recorded.and_then(|(root, source)| source.path.strip_prefix(root).ok());
    let moved = below
        .filter(|below| source.ends_with(below))
        .and_then(|below| source.ancestors().nth(below.components().count()));
    moved.map_or_else(|| absolute(location.root()), Path::to_path_buf)
}

/// Names and kinds of change, below each other.
fn table<'a, K: AsRef<str> + 'a>(changes: impl IntoIterator<Item = (&'a K, &'a ChangeKind)>) -> String {
    let rows: Vec<(String, ChangeKind)> =
        changes.into_iter().map(|(name, kind)| (visible_line(name.as_ref()), *kind)).collect();
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or_default();
    rows.iter().map(|(name, kind)| format!("\n  {name:width$}  {kind}")).collect()
}

fn diff(path: &str, kind: ChangeKind, earlier: Option<&BundledFile>, now: Option<&BundledFile>) -> String {
    let path = visible_line(path);
    let text = |file: Option<&BundledFile>| match file {
        Some(file) => file.text.clone(),
        None => Some("".into()),
    };
    let (Some(old), Some(new)) = (text(earlier), text(now)) else {
        return format!("{path} was {kind}; it is too large, or not text, to be shown\n");
    };
    let (before, after) = (format!("a/{path}"), format!("b/{path}"));
    let missing = "/dev/null".to_owned();
    let (before, after) = match kind {
        ChangeKind::Added => (missing, after),
        ChangeKind::Removed => (before, missing),
        ChangeKind::Modified => (before, after),
    };
    let diff = TextDiff::configure().timeout(DIFF_LIMIT).diff_lines(&*old, &*new);
    printable(&diff.unified_diff().context_radius(3).header(&before, &after).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> BundledFile {
        BundledFile::new(text)
    }

    #[test]
    fn changes_are_shown_as_a_unified_diff_that_no_terminal_obeys() {
        let (old, new) = (file("one\ntwo\n"), file("one\nthree\u{1b}[2J\n"));
        let shown = diff("main.agent", ChangeKind::Modified, Some(&old), Some(&new));
        assert!(
            shown.starts_with("--- a/main.agent\n+++ b/main.agent\n@@ -1,2 +1,2 @@\n one\n-two\n+three"),
            "{shown}"
        );
        assert!(!shown.contains('\u{1b}'), "{shown}");
        let removed = diff("main.agent", ChangeKind::Removed, Some(&old), None);
        assert!(removed.contains("+++ /dev/null") && removed.contains("-one\n-two"), "{removed}");
        let large = BundledFile { text: None, ..file("x") };
        assert!(diff("a", ChangeKind::Modified, Some(&large), Some(&old)).contains("too large"));
    }

    #[test]
    fn the_root_is_where_the_named_manifest_is() {
        let source =
            |path: &str| llm_do::record::ProjectSource { path: path.into(), set: Vec::new(), machine: None };
        let state = ProjectState {
            project: Some("/was".into()),
            source: Some(source("/was/sub/project.yaml")),
            ..ProjectState::default()
        };
        let root = |path: &str| root_of(&state, &ProjectLocation::new(path));
        assert_eq!(root("/was/sub/project.yaml"), Path::new("/was"));
        assert_eq!(root("/moved/sub/project.yaml"), Path::new("/moved"));
        assert_eq!(root("/other/manifest.yaml"), Path::new("/other"));
    }
}
