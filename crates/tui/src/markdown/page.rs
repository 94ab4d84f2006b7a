//! Lays blocks out: quotes and lists around them, blank rows between them.

use ratatui::text::{Line, Span};

use crate::Theme;
use crate::wrap::{columns, hard_wrapped, wrapped};

const QUOTE_BAR: &str = "┃ ";
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];
/// How many quotes and lists within each other are told apart.
const DEEPEST: usize = 12;
/// Columns that quotes and lists leave to their text.
const LEAST_ROOM: usize = 6;

/// The rows drawn so far, and what the next block stands in.
pub(super) struct Page {
    width: u16,
    theme: Theme,
    rows: Vec<Line<'static>>,
    containers: Vec<Container>,
    /// How many of the containers have been open since the last block.
    common: usize,
}

enum Container {
    Quote { mark: Mark },
    List { next: Option<u64>, loose: bool, level: usize },
    Item { mark: Mark, marked: bool },
}

/// What stands before the rows of a quote or item.
#[derive(Clone, Default)]
struct Mark {
    text: String,
    /// Columns of all marks up to this one.
    used: usize,
    /// How many marks there are up to this one.
    depth: usize,
}

/// What stands before the first and before further rows of a block.
#[derive(Default)]
struct Prefix {
    first: Vec<Span<'static>>,
    rest: Vec<Span<'static>>,
}

impl Page {
    pub(super) fn new(width: u16, theme: Theme) -> Self {
        Self { width: width.max(1), theme, rows: Vec::new(), containers: Vec::new(), common: 0 }
    }

    pub(super) fn finish(self) -> Vec<Line<'static>> {
        self.rows
    }

    pub(super) fn open_quote(&mut self) {
        let mark = self.mark(QUOTE_BAR.to_owned());
        self.containers.push(Container::Quote { mark });
    }

    pub(super) fn open_list(&mut self, first: Option<u64>) {
        let level = self.containers.iter().rev().find_map(Container::bullet_level).unwrap_or(0);
        self.containers.push(Container::List { next: first, loose: false, level });
    }

    pub(super) fn open_item(&mut self) {
        let text = match self.containers.last_mut() {
            Some(Container::List { next: Some(number), .. }) => {
                let text = format!("{number}. ");
                *number = number.saturating_add(1);
                text
            }
            Some(Container::List { level, .. }) => BULLETS[(*level).min(BULLETS.len() - 1)].to_owned(),
            _ => String::new(),
        };
        let mark = self.mark(text);
        self.containers.push(Container::Item { marked: mark.text.is_empty(), mark });
    }

    /// Makes the item that was just opened one of a list of tasks.
    pub(super) fn mark_task(&mut self, done: bool) {
        if let Some(Container::Item { marked: false, .. }) = self.containers.last() {
            self.containers.pop();
            let mark = self.mark(if done { "[x] " } else { "[ ] " }.to_owned());
            self.containers.push(Container::Item { marked: mark.text.is_empty(), mark });
        }
    }

    /// Notes that an item has a paragraph: its list has blank rows between its items.
    pub(super) fn loosen(&mut self) {
        if let [.., Container::List { loose, .. }, Container::Item { .. }] = &mut self.containers[..] {
            *loose = true;
        }
    }

    /// Closes the innermost quote, list or item. An item without anything in it still shows its mark.
    pub(super) fn close(&mut self) {
        if let Some(Container::Item { marked: false, .. }) = self.containers.last() {
            self.write([Line::default()]);
        }
        self.containers.pop();
        self.common = self.common.min(self.containers.len());
    }

    /// Writes a block of prose.
    pub(super) fn write(&mut self, lines: impl IntoIterator<Item = Line<'static>>) {
        self.write_rows(lines, wrapped, &[]);
    }

    /// Writes a block whose lines are kept as they are, with a bar before each row.
    pub(super) fn write_literal(
        &mut self,
        lines: impl IntoIterator<Item = Line<'static>>,
        bar: &[Span<'static>],
    ) {
        self.write_rows(lines, hard_wrapped, bar);
    }

    /// Returns how many columns a block has here.
    pub(super) fn room(&self) -> u16 {
        let used = self.innermost().map_or(0, |mark| mark.used);
        self.width - u16::try_from(used).unwrap_or(self.width).min(self.width - 1)
    }

    fn write_rows(
        &mut self,
        lines: impl IntoIterator<Item = Line<'static>>,
        wrap: fn(&Line<'static>, u16, &[Span<'static>], &[Span<'static>]) -> Vec<Line<'static>>,
        bar: &[Span<'static>],
    ) {
        self.separate();
        let mut prefix = self.prefix();
        prefix.first.extend_from_slice(bar);
        prefix.rest.extend_from_slice(bar);
        let mut first = &prefix.first;
        for line in lines {
            let is_empty = line.spans.is_empty();
            self.rows.extend(wrap(&line, self.width, first, &prefix.rest));
            if is_empty && let Some(row) = self.rows.last_mut() {
                trim_end(row);
            }
            first = &prefix.rest;
        }
    }

    /// Writes the blank row before a block, if there is one.
    fn separate(&mut self) {
        let is_first = self.rows.is_empty();
        let common = std::mem::replace(&mut self.common, self.containers.len());
        if is_first || self.is_tight(common) {
            return;
        }
        let mut blank = Line::from(self.marks(common).map(|mark| self.bar(mark)).collect::<Vec<_>>());
        trim_end(&mut blank);
        self.rows.push(blank);
    }

    /// Whether blocks that share so many containers follow each other without a blank row.
    fn is_tight(&self, common: usize) -> bool {
        match &self.containers[..common] {
            [.., Container::List { loose, .. }] => !loose,
            [.., Container::List { loose, .. }, Container::Item { .. }] => !loose,
            _ => false,
        }
    }

    /// Composes what stands before a block. The marks of items are shown once.
    fn prefix(&mut self) -> Prefix {
        let rest = self.marks(self.containers.len()).map(|mark| self.bar(mark)).collect();
        let mut first = Vec::new();
        let dim = self.theme.dim();
        for container in &mut self.containers {
            match container {
                Container::Item { mark, marked: false } => first.push(Span::styled(mark.text.clone(), dim)),
                Container::Item { mark, .. } if !mark.text.is_empty() => first.push(spaces(mark)),
                Container::Quote { mark } if !mark.text.is_empty() => {
                    first.push(Span::styled(mark.text.clone(), dim));
                }
                _ => {}
            }
            if let Container::Item { marked, .. } = container {
                *marked = true;
            }
        }
        Prefix { first, rest }
    }

    /// Returns the mark of a new container: none where it is too deep or too narrow for one.
    fn mark(&self, text: String) -> Mark {
        let outer = self.innermost().cloned().unwrap_or_default();
        let used = outer.used + columns(&text);
        let fits = outer.depth < DEEPEST && used + LEAST_ROOM <= usize::from(self.width);
        if fits { Mark { text, used, depth: outer.depth + 1 } } else { Mark { text: String::new(), ..outer } }
    }

    fn innermost(&self) -> Option<&Mark> {
        self.containers.iter().rev().find_map(Container::mark)
    }

    /// Lists the marks of the outer containers that have one.
    fn marks(&self, count: usize) -> impl Iterator<Item = (&Container, &Mark)> {
        let containers = self.containers[..count].iter();
        containers
            .filter_map(|container| Some((container, container.mark()?)))
            .filter(|(_, mark)| !mark.text.is_empty())
    }

    fn bar(&self, (container, mark): (&Container, &Mark)) -> Span<'static> {
        match container {
            Container::Quote { .. } => Span::styled(mark.text.clone(), self.theme.dim()),
            _ => spaces(mark),
        }
    }
}

impl Container {
    fn mark(&self) -> Option<&Mark> {
        match self {
            Self::Quote { mark } | Self::Item { mark, .. } => Some(mark),
            Self::List { .. } => None,
        }
    }

    /// Returns which bullets a list within this one has.
    fn bullet_level(&self) -> Option<usize> {
        match self {
            Self::List { level, next, .. } => Some(level + usize::from(next.is_none())),
            _ => None,
        }
    }
}

fn spaces(mark: &Mark) -> Span<'static> {
    Span::raw(" ".repeat(columns(&mark.text)))
}

/// Drops the spaces at the end of a row without text.
fn trim_end(row: &mut Line<'static>) {
    while let Some(last) = row.spans.last_mut() {
        let kept = last.content.trim_end().len();
        if kept > 0 {
            last.content.to_mut().truncate(kept);
            return;
        }
        row.spans.pop();
    }
}
