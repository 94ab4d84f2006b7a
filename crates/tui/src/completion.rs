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
    /// The choice that Enter takes. None while what is typed fits several models, and the person has chosen none.
    chosen: Option<usize>,
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
            chosen: None,
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
        self.chosen = None;
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
            (self.choices, self.chosen) = self.choices_for(editor);
        }
    }

    /// Returns the choices, and the one that Enter takes.
    fn choices_for(&self, editor: &Editor) -> (Vec<Choice>, Option<usize>) {
        let first = editor.cursor() == (0, self.word.chars().count());
        if self.word.starts_with('/') && first {
            return (self.matching_commands(), Some(0));
        }
        if let Some(typed) = typed_model(editor) {
            return self.matching_models(&typed);
        }
        match self.word.strip_prefix('@') {
            Some(path) => (files::matching(&self.root, path), Some(0)),
            None => (Vec::new(), None),
        }
    }

    /// The best matches first; of equal ones in the order in which models are offered.
    fn matching_models(&self, typed: &str) -> (Vec<Choice>, Option<usize>) {
        if typed.is_empty() {
            return (self.all_models(), Some(0));
        }
        let ranked = self.models.iter().filter_map(|model| Some((rank_model(&model.name, typed)?, model)));
        let mut ranked: Vec<(ModelMatch, &OfferedModel)> = ranked.collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let ranks: Vec<ModelMatch> = ranked.iter().map(|(rank, _)| *rank).collect();
        let choices = ranked.into_iter().map(|(_, model)| choice_of_model(model)).collect();
        (choices, is_decisive(&ranks).then_some(0))
    }

    /// All models, and first of all the one that answers now: who presses Enter at once changes nothing.
    fn all_models(&self) -> Vec<Choice> {
        let description = "answers now".to_owned();
        let current = self.current_model.clone().map(|name| OfferedModel { name, description });
        let others = self.models.iter().filter(|model| Some(&model.name) != self.current_model.as_ref());
        current.iter().chain(others).map(choice_of_model).collect()
    }

    fn matching_commands(&self) -> Vec<Choice> {
        let typed = self.word.trim_start_matches('/');
        let mut ranked: Vec<_> = self
            .commands
            .iter()
            .filter_map(|command| Some((rank(command.name.trim_start_matches('/'), typed)?, command)))
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.into_iter().map(|(_, command)| choice_of(*command)).collect()
    }

    /// Takes a key while the list is open: Up and Down choose, Tab and Enter accept, Esc closes.
    ///
    /// Enter on a word that is already what is chosen, or while nothing is, is left to the editor, which sends it.
    pub(crate) fn key(&mut self, key: KeyEvent, editor: &mut Editor) -> Completed {
        if !self.is_open() || key.kind == KeyEventKind::Release {
            return Completed::Nothing;
        }
        let control = key.modifiers == KeyModifiers::CONTROL;
        match key.code {
            KeyCode::Up => self.choose_previous(),
            KeyCode::Char('p') if control => self.choose_previous(),
            KeyCode::Down => self.choose_next(),
            KeyCode::Char('n') if control => self.choose_next(),
            KeyCode::Esc => self.dismiss(),
            KeyCode::Tab => self.accept(editor),
            KeyCode::Enter if key.modifiers.is_empty() && self.chosen.is_some() && !self.is_written() => {
                let sends = self.chosen_one().is_some_and(|choice| choice.sends);
                match self.accept(editor) {
                    Completed::Accepted if sends => Completed::Chosen,
                    completed => completed,
                }
            }
            _ => Completed::Nothing,
        }
    }

    fn chosen_one(&self) -> Option<&Choice> {
        self.choices.get(self.chosen?)
    }

    /// Goes on to the first choice after the last one.
    fn choose_next(&mut self) -> Completed {
        self.chosen = Some(self.chosen.map_or(0, |chosen| (chosen + 1) % self.choices.len()));
        Completed::Moved
    }

    fn choose_previous(&mut self) -> Completed {
        let last = self.choices.len() - 1;
        self.chosen = Some(self.chosen.and_then(|chosen| chosen.checked_sub(1)).unwrap_or(last));
        Completed::Moved
    }

    fn dismiss(&mut self) -> Completed {
        self.dismissed = true;
        self.close();
        Completed::Moved
    }

    fn is_written(&self) -> bool {
        self.chosen_one().is_some_and(|choice| choice.whole && choice.inserted == self.word)
    }

    /// Puts the choice, or the first one, into the text. A directory opens the list of its entries.
    fn accept(&mut self, editor: &mut Editor) -> Completed {
        let Some(choice) = self.choices.get(self.chosen.unwrap_or_default()).cloned() else {
            return Completed::Nothing;
        };
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
        let top = self.chosen.map_or(0, |chosen| (chosen + 1).saturating_sub(rows));
        let labels = self.label_width(usize::from(area.width));
        let shown = self.choices.iter().enumerate().skip(top).take(rows);
        for (y, (index, choice)) in (area.y..area.bottom()).zip(shown) {
            let row = Rect { y, height: 1, ..area };
            draw_choice(choice, row, labels, buffer, theme);
            if Some(index) == self.chosen {
                buffer.set_style(row, theme.selected());
            }
        }
        if is_cut && room > rows {
            let y = area.y + u16::try_from(rows).unwrap_or_default();
            let note = match self.chosen {
                Some(chosen) => format!("  {} of {}; ↑ ↓ for more", chosen + 1, self.choices.len()),
                None => format!("  {} match; ↑ ↓ choose one", self.choices.len()),
            };
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
    let typed = text.strip_prefix(MODEL_COMMAND)?;
    let is_at_end = editor.cursor() == (0, text.chars().count());
    (is_at_end && !typed.contains(char::is_whitespace)).then(|| typed.to_owned())
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

/// How a model matches what was typed, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ModelMatch {
    FullName,
    /// The name without its provider.
    BareName,
    Prefix,
    /// The beginning of a word of the name, as `opus` in `claude-opus-5`.
    Word,
    /// Its letters, in that order, with others between them.
    Letters,
}

fn rank_model(name: &str, typed: &str) -> Option<ModelMatch> {
    let (name, typed) = (name.to_lowercase(), typed.to_lowercase());
    let bare = name.split_once(':').map_or("", |(_, bare)| bare);
    let mut words = name.match_indices(&typed).map(|(start, _)| &name[..start]);
    if name == typed {
        Some(ModelMatch::FullName)
    } else if bare == typed {
        Some(ModelMatch::BareName)
    } else if name.starts_with(&typed) || bare.starts_with(&typed) {
        Some(ModelMatch::Prefix)
    } else if words.any(|before| !before.ends_with(char::is_alphanumeric)) {
        Some(ModelMatch::Word)
    } else {
        rank(&name, &typed).map(|_| ModelMatch::Letters)
    }
}

/// Returns whether the first of these matches is what the person means: it is a name or part of one, and the only such.
fn is_decisive(ranks: &[ModelMatch]) -> bool {
    match ranks {
        [ModelMatch::Letters, ..] | [] => false,
        [first, rest @ ..] => rest.first() != Some(first),
    }
}

/// How well a name matches what was typed, whatever its case; less is better and `None` is not at all.
fn rank(name: &str, typed: &str) -> Option<u8> {
    let (name, typed) = (name.to_lowercase(), typed.to_lowercase());
    if name.starts_with(&typed) {
        return Some(0);
    }
    if name.contains(&typed) {
        return Some(1);
    }
    let mut rest = name.chars();
    typed.chars().all(|wanted| rest.any(|c| c == wanted)).then_some(2)
}
