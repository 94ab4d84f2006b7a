//! The look: a style for each role that text has on the screen.
//!
//! Colors are the sixteen of the terminal, which its owner chose for light or dark; without colors the roles differ
//! by weight and underline alone.

use ratatui::style::{Color, Modifier, Style};

/// Whether and how colors are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Theme {
    /// Whether there are colors at all.
    pub colors: bool,
    /// Whether the background is light.
    pub light: bool,
}

impl Theme {
    /// Text that matters less: thinking, units, hints.
    pub(crate) fn dim(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Text that is emphasized.
    pub(crate) fn strong(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// Headings of answers.
    pub(crate) fn heading(self) -> Style {
        self.colored(Color::Magenta).add_modifier(Modifier::BOLD)
    }

    /// Code between words.
    pub(crate) fn code(self) -> Style {
        self.colored(Color::Cyan)
    }

    /// Links.
    pub(crate) fn link(self) -> Style {
        self.colored(Color::Blue).add_modifier(Modifier::UNDERLINED)
    }

    /// Names of agents and tools, the mark of the input.
    pub(crate) fn accent(self) -> Style {
        self.colored(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// What was done well, and lines that a diff adds.
    pub(crate) fn good(self) -> Style {
        self.colored(Color::Green)
    }

    /// What failed, and lines that a diff removes.
    pub(crate) fn bad(self) -> Style {
        self.colored(Color::Red)
    }

    /// What waits for a person.
    pub(crate) fn waiting(self) -> Style {
        self.colored(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// The selected row of a list: one bar, whatever colors its parts have.
    pub(crate) fn selected(self) -> Style {
        Style::new().fg(Color::Reset).remove_modifier(Modifier::DIM).add_modifier(Modifier::REVERSED)
    }

    fn colored(self, color: Color) -> Style {
        if self.colors { Style::new().fg(color) } else { Style::new() }
    }
}
