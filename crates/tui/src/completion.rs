//! Offers how a word may go on: commands behind `/`, models behind `/model`, files behind `@`.
//!
//! Directories are read when a word is changed, one level at a time and not beyond a bound. Which commands there are,
//! and which directory is the root of files, is told by the owner.

mod files;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::path::PathBuf;

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use llm_do_core::visible_line;
use ratatui::buffer::{Buffer, CellWidth};
use ratatui::layout::Rect;
use ratatui::style::Style;

pub(crate) use self::files::{attachments, word_before};
use crate::Theme;
use crate::editor::{Edited, Editor};
use crate::protocol::OfferedModel;
use crate::wrap::{fitted, fitted_in_middle};

/// How many choices are shown at once at most.
const MAX_ROWS: usize = 8;

/// The command whose argument is a model.
const MODEL_COMMAND: &str = "/model ";

/// A command as it is typed, with its `/`, and what it does, in one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    pub(crate) description: &'static str,
}

/// What a key did to the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completed {
    /// The key is not for the list; the editor should have it.
    Nothing,
    /// Another choice, or the list was closed.
    Moved,
    /// The choice was inserted.
    Accepted,
    /// The choice was inserted and completes a command, which can be sent.
    Chosen,
}

/// The list of what the word before the cursor may become.
#[derive(Debug, Clone)]
pub(crate) struct Completion {
    commands: &'static [Command],
    models: Vec<OfferedModel>,
    /// The model that answers now.
    current_model: Option<String>,
    root: PathBuf,
    choices: Vec<Choice>,
    chosen: usize,
    /// The word for which the choices were made.
    word: String,
    /// Closed by the person, until another word begins.
    dismissed: bool,
}

/// One row of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Choice {
    /// What the word is replaced by.
    inserted: String,
    label: String,
    description: Cow<'static, str>,
    /// Whether the word is then complete, and another may follow.
    whole: bool,
    /// Whether Enter also sends it.
    sends: bool,
}

impl Completion {
    /// A closed list.
    pub(crate) fn new(commands: &'static [Command], root: impl Into<PathBuf>) -> Self {
        let (choices, word) = (Vec::new(), String::new());
        let (models, current_model) = (Vec::new(), None);
        Self {
            commands,
            models,
            current_model,
            root: root.into(),
            choices,
            chosen: 0,
            word,
            dismissed: false,
        }
    }

    /// Offers these models behind `/model`.
    pub(crate) fn with_models(mut self, models: &[OfferedModel]) -> Self {
        self.models = models.to_vec();
        self
    }

    /// Notes which model answers now.
    pub(crate) fn set_current_model(&mut self, model: Option<String>) {
        self.current_model = model;
    }

    /// Whether there is something to choose.
    pub(crate) fn is_open(&self) -> bool {
        !self.choices.is_empty()
    }

    /// Closes the list.
    pub(crate) fn close(&mut self) {
        self.choices.clear();
        self.chosen = 0;
    }

    /// Looks at the text again, after each change of it or of the cursor.
    pub(crate) fn update(&mut self, editor: &Editor) {
        let word = editor.word();
        if !word.starts_with(['/', '@']) && typed_model(editor).is_none() {
            self.dismissed = false;
        }
        if word == self.word && self.is_open() {
            return;
        }
        word.clone_into(&mut self.word);
        self.close();
        if !self.dismissed {
            self.choices = self.choices_for(editor);
        }
    }

    fn choices_for(&self, editor: &Editor) -> Vec<Choice> {
        let first = editor.cursor() == (0, self.word.chars().count());
        if self.word.starts_with('/') && first {
            return self.matching_commands();
        }
        if let Some(test_support) = typed_model(editor) {
            return self.matching_models(&test_support);
        }
        match self.word.strip_prefix('@') {
            Some(path) => files::matching(&self.root, path),
            None => Vec::new(),
        }
    }

    fn matching_models(&self, test_support: &str) -> Vec<Choice> {
        if test_support.is_empty() {
            return self.all_models();
        }
        let rank = |model: &OfferedModel| {
            let bare = model.name.split_once(':').map_or("", |(_, bare)| bare);
            // `gpt-5` means the model of that name before all others that contain it.
            if bare == test_support || model.name == test_support {
                Some(0)
            } else {
                rank(&model.name, test_support).map(|rank| rank + 1)
            }
        };
        let ranked = self.models.iter().filter_map(|model| Some((rank(model)?, model)));
        let mut ranked: Vec<(u8, &OfferedModel)> = ranked.collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, model)| choice_of_model(model)).collect()
    }

    /// All models, and first of all the one that answers now: who presses Enter at once changes nothing.
    fn all_models(&self) -> Vec<Choice> {
        let description = "answers now".to_owned();
        let current = self.current_model.clone().map(|name| OfferedModel { name, description });
        let others = self.models.iter().filter(|model| Some(&model.name) != self.current_model.as_ref());
        current.iter().chain(others).map(choice_of_model).collect()
    }

    fn matching_commands(&self) -> Vec<Choice> {
        let test_support = self.word.trim_start_matches('/');
        let mut ranked: Vec<_> = self
            .commands
            .iter()
            .filter_map(|command| Some((rank(command.name.trim_start_matches('/'), test_support)?, command)))
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, command)| choice_of(*command)).collect()
    }

    /// Takes a key while the list is open: Up and Down choose, Tab and Enter accept, Esc closes.
    ///
    /// Enter on a word that is already what is chosen is left to the editor, which sends it.
    pub(crate) fn key(&mut self, key: KeyEvent, editor: &mut Editor) -> Completed {
        if !self.is_open() || key.kind == KeyEventKind::Release {
            return Completed::Nothing;
        }
        let control = key.modifiers == KeyModifiers::CONTROL;
        match key.code {
            KeyCode::Up => self.choose(self.chosen + self.choices.len() - 1),
            KeyCode::Char('p') if control => self.choose(self.chosen + self.choices.len() - 1),
            KeyCode::Down => self.choose(self.chosen + 1),
            KeyCode::Char('n') if control => self.choose(self.chosen + 1),
            KeyCode::Esc => self.dismiss(),
            KeyCode::Tab => self.accept(editor),
            KeyCode::Enter if key.modifiers.is_empty() && !self.is_written() => {
                let sends = self.choices.get(self.chosen).is_some_and(|choice| choice.sends);
                match self.accept(editor) {
                    Completed::Accepted if sends => Completed::Chosen,
                    completed => completed,
                }
            }
            _ => Completed::Nothing,
        }
    }

    /// Chooses round the ends of the list.
    fn choose(&mut self, choice: usize) -> Completed {
        self.chosen = choice % self.choices.len();
        Completed::Moved
    }

    fn dismiss(&mut self) -> Completed {
        self.dismissed = true;
        self.close();
        Completed::Moved
    }

    fn is_written(&self) -> bool {
        self.choices.get(self.chosen).is_some_and(|choice| choice.whole && choice.inserted == self.word)
    }

    /// Puts the choice into the text. A directory opens the list of its entries.
    fn accept(&mut self, editor: &mut Editor) -> Completed {
        let Some(choice) = self.choices.get(self.chosen).cloned() else { return Completed::Nothing };
        let space = if choice.whole { " " } else { "" };
        let edited = editor.replace_word(&format!("{}{space}", choice.inserted));
        self.close();
        self.update(editor);
        if edited == Edited::Changed { Completed::Accepted } else { Completed::Moved }
    }

    /// Returns how many rows the list needs; none while it is closed. One more says that there are more choices.
    pub(crate) fn height(&self) -> u16 {
        u16::try_from(self.choices.len().min(MAX_ROWS + 1)).unwrap_or_default()
    }

    /// Draws the choices around the chosen one, and below them how many are not shown.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer, theme: Theme) {
        let area = area.intersection(buffer.area);
        let room = usize::from(area.height);
        let is_cut = self.choices.len() > room.min(MAX_ROWS);
        let rows = if is_cut && room > 1 { (room - 1).min(MAX_ROWS) } else { room.min(MAX_ROWS) };
        let top = (self.chosen + 1).saturating_sub(rows);
        let labels = self.label_width(usize::from(area.width));
        let shown = self.choices.iter().enumerate().skip(top).take(rows);
        for (y, (index, choice)) in (area.y..area.bottom()).zip(shown) {
            let row = Rect { y, height: 1, ..area };
            draw_choice(choice, row, labels, buffer, theme);
            if index == self.chosen {
                buffer.set_style(row, theme.selected());
            }
        }
        if is_cut && room > rows {
            let y = area.y + u16::try_from(rows).unwrap_or_default();
            let note = format!("  {} of {}; ↑ ↓ for more", self.chosen + 1, self.choices.len());
            let row = Rect { y, height: 1, ..area };
            clear(row, buffer);
            buffer.set_stringn(row.x, y, fitted(&note, row.width.into()), row.width.into(), theme.dim());
        }
    }

    /// Descriptions are in one column, as far right as the longest label that leaves them half of the width.
    fn label_width(&self, width: usize) -> usize {
        let longest = self.choices.iter().map(|choice| usize::from(choice.label.cell_width())).max();
        longest.unwrap_or_default().min(if self.choices.iter().any(|choice| !choice.description.is_empty()) {
            width / 2
        } else {
            width
        })
    }
}

fn draw_choice(choice: &Choice, row: Rect, labels: usize, buffer: &mut Buffer, theme: Theme) {
    clear(row, buffer);
    let mark = 2.min(usize::from(row.width));
    let x = row.x + 2.min(row.width);
    let room = usize::from(row.width) - mark;
    let label = fitted_in_middle(&choice.label, room.min(labels));
    let end = buffer.set_stringn(x, row.y, label, room.min(labels), Style::new()).0;
    let at = end.max(x + u16::try_from(labels).unwrap_or_default()) + 2;
    if !choice.description.is_empty() && at < row.right() {
        let room = usize::from(row.right() - at);
        buffer.set_stringn(at, row.y, fitted(&choice.description, room), room, theme.dim());
    }
}

fn clear(row: Rect, buffer: &mut Buffer) {
    for x in row.x..row.right() {
        buffer[(x, row.y)].reset();
    }
}

/// Returns the text behind `/model`, if there is nothing else.
fn typed_model(editor: &Editor) -> Option<String> {
    let text = editor.text();
    let test_support = text.strip_prefix(MODEL_COMMAND)?;
    let is_at_end = editor.cursor() == (0, text.chars().count());
    (is_at_end && !test_support.contains(char::is_whitespace)).then(|| test_support.to_owned())
}

fn choice_of_model(model: &OfferedModel) -> Choice {
    Choice {
        inserted: model.name.clone(),
        label: visible_line(&model.name),
        description: visible_line(&model.description).into(),
        whole: true,
        sends: true,
    }
}

fn choice_of(command: Command) -> Choice {
    Choice {
        inserted: command.name.to_owned(),
        label: visible_line(command.name),
        description: command.description.into(),
        whole: true,
        sends: false,
    }
}

/// How well a name matches what was typed, whatever its case; less is better and `None` is not at all.
fn rank(name: &str, test_support: &str) -> Option<u8> {
    let (name, test_support) = (name.to_lowercase(), test_support.to_lowercase());
    if name.starts_with(&test_support) {
        return Some(0);
    }
    if name.contains(&test_support) {
        return Some(1);
    }
    let mut rest = name.chars();
    test_support.chars().all(|wanted| rest.any(|c| c == wanted)).then_some(2)
}
