//! Lays blocks out: quotes and lists around them, blank rows between them.

use ratatui::text::{Line, Span};

use crate::Theme;
use crate::wrap::{columns, hard_wrapped, wrapped};

const QUOTE_BAR: &str = "┃ ";
const BULLETS: [&str; 3] = ["• ", "◦ ", "▪ "];
/// How many quotes and lists within each other are told apart.
const MAX_DEPTH: usize = 12;
/// Columns that quotes and lists leave to their text.
const MIN_TEXT_WIDTH: usize = 6;

/// The rows drawn so far, and the containers of the next block.
pub(super) struct Page {
    width: u16,
    theme: Theme,
    rows: Vec<Line<'static>>,
    containers: Vec<Container>,
    /// How many of the containers have been open since the last block.
    common: usize,
    /// Whether there has been a block, be it in the rows or drawn before.
    begun: bool,
    /// The number of the next item of a list that goes on.
    number: Option<u64>,
}

/// The state at the start of a text that continues another one.
///
/// The text begins with the quotes and the list that it goes on with.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Before {
    begun: bool,
    common: usize,
    number: Option<u64>,
    quotes: usize,
    within: bool,
}

impl Before {
    /// Whether the text goes on within a quote or list.
    pub(super) fn is_within(self) -> bool {
        self.within
    }

    /// Returns how many quotes go on.
    pub(super) fn quotes(self) -> usize {
        self.quotes
    }
}

/// How a block follows those before it.
#[derive(Clone, Copy)]
pub(super) struct BlockContext {
    /// Whether a blank line precedes it.
    pub(super) spaced: bool,
    /// Whether it was drawn before, at least its first rows.
    pub(super) drawn: bool,
}

struct Container {
    context: BlockContext,
    kind: ContainerKind,
}

enum ContainerKind {
    Quote { mark: Mark },
    List { next: Option<u64>, level: usize },
    Item { mark: Mark, marked: bool },
}

/// The prefix of the rows of a quote or item.
#[derive(Clone, Default)]
struct Mark {
    text: String,
    /// Columns of all marks up to this one.
    used: usize,
    /// How many marks there are up to this one.
    depth: usize,
}

/// The prefix of the first and of the other rows of a block.
#[derive(Default)]
struct Prefix {
    first: Vec<Span<'static>>,
    rest: Vec<Span<'static>>,
}

impl Page {
    pub(super) fn new(before: Before, width: u16, theme: Theme) -> Self {
        let Before { begun, common, number, .. } = before;
        Self { width: width.max(1), theme, rows: Vec::new(), containers: Vec::new(), common, begun, number }
    }

    /// Returns the rows, and the state for a text that continues here.
    pub(super) fn finish(self) -> (Vec<Line<'static>>, Before) {
        let next = |container: &Container| match container.kind {
            ContainerKind::List { next, .. } => next,
            _ => None,
        };
        let before = Before {
            begun: self.begun,
            common: self.common,
            number: self.containers.iter().find_map(next),
            quotes: self.quotes(),
            within: !self.containers.is_empty(),
        };
        (self.rows, before)
    }

    /// Returns how many quotes are open.
    pub(super) fn quotes(&self) -> usize {
        self.containers
            .iter()
            .filter(|container| matches!(container.kind, ContainerKind::Quote { .. }))
            .count()
    }

    pub(super) fn open_quote(&mut self, context: BlockContext) {
        let mark = self.mark(QUOTE_BAR.to_owned());
        self.containers.push(Container { context, kind: ContainerKind::Quote { mark } });
    }

    pub(super) fn open_list(&mut self, first: Option<u64>, context: BlockContext) {
        let level = self.containers.iter().rev().find_map(Container::bullet_level).unwrap_or(0);
        let next = self.number.take().or(first);
        self.containers.push(Container { context, kind: ContainerKind::List { next, level } });
    }

    pub(super) fn open_item(&mut self, context: BlockContext) {
        let text = match self.containers.last_mut().map(|container| &mut container.kind) {
            Some(ContainerKind::List { next: Some(number), .. }) => {
                let text = format!("{number}. ");
                *number = number.saturating_add(1);
                text
            }
            Some(ContainerKind::List { level, .. }) => BULLETS[(*level).min(BULLETS.len() - 1)].to_owned(),
            _ => String::new(),
        };
        self.push_item(text, context);
    }

    fn push_item(&mut self, text: String, context: BlockContext) {
        let mark = self.mark(text);
        let kind = ContainerKind::Item { marked: mark.text.is_empty(), mark };
        self.containers.push(Container { context, kind });
    }

    /// Makes the item that was just opened one of a list of tasks.
    pub(super) fn mark_task(&mut self, done: bool) {
        if let Some(Container { kind: ContainerKind::Item { marked: false, .. }, context }) =
            self.containers.last()
        {
            let context = *context;
            self.containers.pop();
            self.push_item(if done { "[x] " } else { "[ ] " }.to_owned(), context);
        }
    }

    /// Closes the innermost quote, list or item. An item without anything in it still shows its mark.
    pub(super) fn close(&mut self) {
        if let Some(Container { kind: ContainerKind::Item { marked: false, .. }, context }) =
            self.containers.last()
        {
            self.write([Line::default()], *context);
        }
        self.containers.pop();
        self.common = self.common.min(self.containers.len());
    }

    /// Writes a block of prose, unless it was drawn before.
    pub(super) fn write(&mut self, lines: impl IntoIterator<Item = Line<'static>>, context: BlockContext) {
        if context.drawn {
            self.go_on();
        } else {
            self.write_rows(lines, context, wrapped, &[]);
        }
    }

    /// Writes a block whose lines are kept as they are, with a bar before each row.
    ///
    /// Of a block that was drawn before these are the lines that were added to it.
    pub(super) fn write_literal(
        &mut self,
        lines: impl IntoIterator<Item = Line<'static>>,
        context: BlockContext,
        bar: &[Span<'static>],
    ) {
        self.write_rows(lines, context, hard_wrapped, bar);
    }

    /// Returns how many columns a block has here.
    pub(super) fn room(&self) -> u16 {
        let used = self.innermost().map_or(0, |mark| mark.used);
        self.width - u16::try_from(used).unwrap_or(self.width).min(self.width - 1)
    }

    fn write_rows(
        &mut self,
        lines: impl IntoIterator<Item = Line<'static>>,
        context: BlockContext,
        wrap: fn(&Line<'static>, u16, &[Span<'static>], &[Span<'static>]) -> Vec<Line<'static>>,
        bar: &[Span<'static>],
    ) {
        if context.drawn {
            self.go_on();
        } else {
            self.separate(context);
        }
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

    /// Passes a block that was drawn before.
    fn go_on(&mut self) {
        self.common = self.containers.len();
        self.begun = true;
        for container in &mut self.containers {
            if let ContainerKind::Item { marked, .. } = &mut container.kind {
                *marked = true;
            }
        }
    }

    /// Writes the blank row before a block, if there is one.
    fn separate(&mut self, context: BlockContext) {
        let open = self.containers.len();
        let common = std::mem::replace(&mut self.common, open).min(open);
        let is_first = !std::mem::replace(&mut self.begun, true);
        if is_first || self.is_tight(common, context) {
            return;
        }
        let mut blank = Line::from(self.marks(common).map(|mark| self.bar(mark)).collect::<Vec<_>>());
        trim_end(&mut blank);
        self.rows.push(blank);
    }

    /// Whether a block follows one that shares so many containers with it without a blank row.
    ///
    /// That is so in lists, if no blank line precedes the block or the first container that it does not share.
    fn is_tight(&self, common: usize, context: BlockContext) -> bool {
        let is_list = matches!(
            self.containers[..common].last().map(|container| &container.kind),
            Some(ContainerKind::List { .. } | ContainerKind::Item { .. })
        );
        is_list && !self.containers.get(common).map_or(context, |container| container.context).spaced
    }

    /// Composes the prefix of a block. The marks of items are shown once.
    fn prefix(&mut self) -> Prefix {
        let rest = self.marks(self.containers.len()).map(|mark| self.bar(mark)).collect();
        let mut first = Vec::new();
        let dim = self.theme.dim();
        for container in &mut self.containers {
            match &mut container.kind {
                ContainerKind::Item { mark, marked } if !mark.text.is_empty() => {
                    let is_shown = std::mem::replace(marked, true);
                    first.push(if is_shown { spaces(mark) } else { Span::styled(mark.text.clone(), dim) });
                }
                ContainerKind::Quote { mark } if !mark.text.is_empty() => {
                    first.push(Span::styled(mark.text.clone(), dim));
                }
                _ => {}
            }
        }
        Prefix { first, rest }
    }

    /// Returns the mark of a new container: none where it is too deep or too narrow for one.
    fn mark(&self, text: String) -> Mark {
        let outer = self.innermost().cloned().unwrap_or_default();
        let used = outer.used + columns(&text);
        let fits = outer.depth < MAX_DEPTH && used + MIN_TEXT_WIDTH <= usize::from(self.width);
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
        match container.kind {
            ContainerKind::Quote { .. } => Span::styled(mark.text.clone(), self.theme.dim()),
            _ => spaces(mark),
        }
    }
}

impl Container {
    fn mark(&self) -> Option<&Mark> {
        match &self.kind {
            ContainerKind::Quote { mark } | ContainerKind::Item { mark, .. } => Some(mark),
            ContainerKind::List { .. } => None,
        }
    }

    /// Returns which bullets a list within this one has.
    fn bullet_level(&self) -> Option<usize> {
        match &self.kind {
            ContainerKind::List { level, next } => Some(level + usize::from(next.is_none())),
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
