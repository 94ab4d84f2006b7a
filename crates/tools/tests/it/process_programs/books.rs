//! The oracle's own books: what every call was sent, has and must be sent next.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use llm_do_core::{Head, Message, ModelRequest, Part, Role, ToolResult};
use serde_json::{Value, json};

use crate::process_programs::Counts;
use crate::process_programs::decisions::{Answer, Call, decide, tag};
use crate::process_programs::plan::{Kind, LIMIT, MAX_TOKENS, PAGE, Plan, TEMPERATURE, text};

/// A descriptor. A text that the oracle cannot foretell is not known to it.
#[derive(Debug, Clone, PartialEq)]
struct Fd {
    name: String,
    text: Option<String>,
}

/// The descriptors of a call, in the order in which they were made.
#[derive(Debug, Clone, Default)]
struct Table {
    fds: Vec<Fd>,
    /// Whether there may be more: results that the oracle cannot foretell, and that a jump kept from being shown.
    may_have_more: bool,
}

impl Table {
    fn get(&self, name: &str) -> Option<&Fd> {
        self.fds.iter().find(|fd| fd.name == name)
    }

    /// Puts a text under a name; what had it before is gone.
    fn put(&mut self, name: String, text: Option<String>) {
        self.fds.retain(|fd| fd.name != name);
        self.fds.push(Fd { name, text });
    }

    /// Puts a text under a name, or under the next one that no other text has.
    fn put_beside(&mut self, name: &str, text: Option<String>) -> String {
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let is_free = |name: &String| self.get(name).is_none_or(|fd| text.is_some() && fd.text == text);
        let free = std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap();
        self.put(free.clone(), text);
        free
    }
}

/// What was tuned.
#[derive(Debug, Clone, Default, PartialEq)]
struct Tuned {
    temperature: Option<f64>,
    max_tokens: Option<u64>,
}

/// What is known of one call of an agent.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    kind: Kind,
    depth: u32,
    /// The conversation of its last request, and what the model answered.
    sent: Vec<Arc<Message>>,
    answer: Answer,
    turns: u32,
    table: Table,
    tuned: Tuned,
    pub(crate) tokens: u64,
    is_fork: bool,
}

/// What a result must be.
enum Foretold {
    /// This text, as it is or as the first page of a descriptor.
    Text(String),
    /// A failure that holds these words.
    Failure(&'static str),
    /// Something of which only parts are known.
    Value(Box<dyn Fn(&str) -> bool>),
    /// A text of which the descriptor tools themselves say how it is shown.
    Shown(Box<dyn Fn(&str) -> bool>),
    /// A text or a failure about a descriptor of which nothing is known.
    Unknown,
}

impl Foretold {
    fn words(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Failure(words) => words,
            Self::Value(_) | Self::Shown(_) | Self::Unknown => "of another form",
        }
    }
}

/// What the calls of a turn lead to.
struct Turn {
    table: Table,
    tuned: Tuned,
}

/// The books of a run.
pub(crate) struct Books {
    plan: Plan,
    /// Whether every request is foretold; a run entered again is only compared with the first one.
    strict: bool,
    pub(crate) entries: HashMap<String, Entry>,
    pub(crate) problems: Vec<String>,
    pub(crate) counts: Counts,
    /// The histories that were sent.
    pub(crate) heads: HashSet<Head>,
    pub(crate) ended: bool,
}

impl Books {
    pub(crate) fn new(plan: Plan, strict: bool) -> Self {
        Self {
            plan,
            strict,
            entries: HashMap::new(),
            problems: Vec::new(),
            counts: Counts::new(),
            heads: HashSet::new(),
            ended: false,
        }
    }

    fn count(&mut self, name: &'static str) {
        *self.counts.entry(name).or_default() += 1;
    }

    fn problem(&mut self, tag: &str, words: impl Into<String>) {
        self.problems.push(format!("{tag}: {}", words.into()));
    }

    /// Takes a request down, and says what the model answers.
    pub(crate) fn asked(&mut self, request: &ModelRequest<'_>) -> Answer {
        let messages = request.conversation.messages();
        if self.ended {
            self.problem("", "a model was asked after the run had ended");
        }
        if let Err(words) = valid(messages) {
            self.problem("", format!("an invalid conversation: {words}\n{messages:#?}"));
            return Answer::Says("stopped".to_owned());
        }
        let Some(tag) = tag(messages) else {
            self.problem("", format!("a conversation without a name: {messages:#?}"));
            return Answer::Says("stopped".to_owned());
        };
        self.heads.insert(request.conversation.head());
        let kind = Kind::of(request.instructions);
        let answer = decide(&self.plan, kind, &tag, messages);
        if !self.strict {
            return answer;
        }
        let entry = match self.entries.remove(&tag) {
            Some(entry) => self.goes_on(&tag, entry, messages),
            None => self.begins(&tag, kind, messages),
        };
        let Some(mut entry) = entry else { return Answer::Says("stopped".to_owned()) };
        self.check_settings(&tag, &entry, request);
        entry.turns += 1;
        if entry.turns > self.plan.turns {
            self.problem(&tag, "more turns than are permitted");
        }
        entry.sent = messages.to_vec();
        entry.answer = answer.clone();
        self.count_answer(&entry);
        if let Answer::Calls { text, .. } = &answer
            && kind.has_descriptors()
            && let Some((_, rest)) = text.split_once("<ref id=\"")
            && let Some((name, rest)) = rest.split_once("\">")
        {
            entry.table.put(format!("ref:{name}"), rest.strip_suffix("</ref>").map(str::to_owned));
            self.count("references");
        }
        self.entries.insert(tag, entry);
        answer
    }

    fn count_answer(&mut self, entry: &Entry) {
        if matches!(entry.answer, Answer::Fails) {
            self.count("children that failed");
        }
        for call in entry.answer.calls() {
            match call {
                Call::Spawn { .. } => self.count("spawned"),
                Call::Fork { .. } if entry.is_fork => self.count("forked within a fork"),
                Call::Fork { .. } => self.count("forked"),
                _ => {}
            }
        }
    }

    fn check_settings(&mut self, tag: &str, entry: &Entry, request: &ModelRequest<'_>) {
        let settings = request.settings;
        let tuned = Tuned { temperature: settings.temperature, max_tokens: settings.max_tokens };
        if tuned != entry.tuned {
            self.problem(tag, format!("the settings are {tuned:?}, and must be {:?}", entry.tuned));
        }
        let most = entry.tuned.max_tokens;
        let fits = match self.plan.has_budget() {
            true => most.is_none_or(|most| request.max_output.is_some_and(|output| output <= most)),
            false => request.max_output == most,
        };
        if !fits {
            self.problem(tag, format!("{:?} output tokens are asked for, not {most:?}", request.max_output));
        }
    }

    /// The first request of a call.
    fn begins(&mut self, tag: &str, kind: Kind, messages: &[Arc<Message>]) -> Option<Entry> {
        let fresh = |depth: u32, is_fork: bool, table: Table, tuned: Tuned| Entry {
            kind,
            depth,
            sent: Vec::new(),
            answer: Answer::Fails,
            turns: 0,
            table,
            tuned,
            tokens: 0,
            is_fork,
        };
        let Some((parent, _)) = tag.rsplit_once('.') else {
            return Some(fresh(1, false, Table::default(), Tuned::default()));
        };
        let Some(parent) = self.entries.get(parent).cloned() else {
            self.problem(tag, "nobody has made this call");
            return None;
        };
        if parent.depth + 1 > self.plan.depth {
            self.problem(tag, "deeper than is permitted");
        }
        let place = parent.answer.calls().iter().position(|call| match call {
            Call::Spawn { tag: child, .. } => child == tag,
            Call::Fork { children } => children.iter().any(|(child, _)| child == tag),
            _ => false,
        });
        let Some(place) = place else {
            self.problem(tag, "its parent has not made this call now");
            return None;
        };
        if let Call::Spawn { attach, prompt, kind: expected, .. } = &parent.answer.calls()[place] {
            if *expected != kind {
                self.problem(tag, "another agent was started");
            }
            // What calls of the same turn have made is there, unless they run side by side with this one.
            let alone = parent.answer.calls()[..place].iter().rposition(Call::is_alone);
            let (turn, _) = self.turn(&parent, &[], alone.map_or(0, |index| index + 1), 0);
            let table = self.spawned(tag, &turn.table, kind, prompt, attach, messages);
            return Some(fresh(parent.depth + 1, false, table, Tuned::default()));
        }
        let turn = self.forked(tag, &parent, place, messages)?;
        Some(fresh(parent.depth + 1, true, turn.table, turn.tuned))
    }

    /// A program starts with its prompt and the texts that it was passed, and knows nothing else.
    fn spawned(
        &mut self,
        tag: &str,
        parents: &Table,
        kind: Kind,
        prompt: &str,
        attach: &[String],
        messages: &[Arc<Message>],
    ) -> Table {
        let (mut table, mut parts) = (Table::default(), Vec::new());
        let is_long = kind.has_descriptors() && prompt.chars().count() > LIMIT;
        if is_long {
            table.put("fd:input".to_owned(), Some(prompt.to_owned()));
        }
        parts.push((is_long.then_some("fd:input".to_owned()), Some(prompt.to_owned())));
        let mut number = 0;
        for name in attach {
            let Some(fd) = parents.get(name) else {
                if parents.may_have_more {
                    number += usize::from(!name.starts_with("ref:"));
                    table.may_have_more = true;
                    parts.push((None, None));
                    continue;
                }
                self.problem(tag, format!("started with `{name}`, which its caller does not have"));
                continue;
            };
            self.count("descriptors passed");
            let own = if name.starts_with("ref:") {
                name.clone()
            } else {
                number += 1;
                format!("fd:a{number}")
            };
            if kind.has_descriptors() {
                table.put(own.clone(), fd.text.clone());
            }
            parts.push((kind.has_descriptors().then_some(own), fd.text.clone()));
        }
        let shown = match messages {
            [only] => only.parts.clone(),
            _ => Vec::new(),
        };
        let mut fits = shown.len() == parts.len();
        for (index, (part, (name, text))) in shown.iter().zip(&parts).enumerate() {
            let Part::Text { text: shown, .. } = part else {
                fits = false;
                continue;
            };
            let is_marked = index == 0 && kind.is_process();
            let shown = if is_marked { shown.strip_prefix("[msg_0] ").unwrap_or("") } else { shown };
            fits &= text.as_ref().is_none_or(|text| match name {
                Some(name) => is_first_page(shown, name, text),
                None if index > 0 => *shown == beginning(text),
                None => shown == text,
            });
        }
        if !fits {
            self.problem(tag, format!("started with {messages:#?} instead of {parts:#?}"));
        }
        table
    }

    /// A child goes on from the turn of its parent: answers to the calls before the fork are there, others are not.
    fn forked(&mut self, tag: &str, parent: &Entry, place: usize, messages: &[Arc<Message>]) -> Option<Turn> {
        let history = parent.sent.len();
        let (Some(asked), Some(answers), true) =
            (messages.get(history), messages.get(history + 1), messages.len() == history + 2)
        else {
            self.problem(tag, format!("forked with {} messages from {history}", messages.len()));
            return None;
        };
        if !parent.sent.iter().zip(messages).all(|(parents, own)| Arc::ptr_eq(parents, own)) {
            self.problem(tag, "the messages of its parent are not shared");
        }
        self.check_asked(tag, parent, asked);
        let results: Vec<&ToolResult> = answers.tool_results().collect();
        if results.len() != parent.answer.calls().len() {
            self.problem(tag, "not every call is answered");
            return None;
        }
        for (index, result) in results.iter().enumerate().skip(place) {
            let words = if index == place { "you are a child" } else { "left to the parent" };
            if !result.text.contains(words) || result.is_error {
                self.problem(tag, format!("the answer {index} to its parent is {}", result.text));
            }
        }
        let prompt = match &parent.answer.calls()[place] {
            Call::Fork { children } => {
                children.iter().find(|(child, _)| child == tag).map(|(_, prompt)| prompt)
            }
            _ => None,
        };
        if Some(&answers.text()) != prompt {
            self.problem(tag, format!("the prompt is {:?}", answers.text()));
        }
        let (turn, problems) = self.turn(parent, &results, place, history + 1);
        problems.into_iter().for_each(|words| self.problem(tag, words));
        Some(turn)
    }

    fn check_asked(&mut self, tag: &str, entry: &Entry, message: &Message) {
        let (asked, calls) = (message.tool_calls().count(), entry.answer.calls().len());
        let text = match &entry.answer {
            Answer::Calls { text, .. } | Answer::Says(text) => text.as_str(),
            Answer::Fails => "",
        };
        if asked != calls || message.text() != text || message.role != Role::Assistant {
            self.problem(tag, "the message of the model is not the one that it sent");
        }
    }

    /// A later request of a call: what was sent before, and then what its calls led to.
    fn goes_on(&mut self, tag: &str, mut entry: Entry, messages: &[Arc<Message>]) -> Option<Entry> {
        let history = entry.sent.len();
        let results: Vec<&ToolResult> = match messages.get(history + 1) {
            Some(message) => message.tool_results().collect(),
            None => Vec::new(),
        };
        let calls = entry.answer.calls().len();
        let jumps = self.jumps(&entry);
        if jumps.is_none() && (results.len() != calls || messages.len() != history + 2) {
            self.problem(
                tag,
                format!(
                    "{} results for {calls} calls in {} messages after {history}",
                    results.len(),
                    messages.len()
                ),
            );
            return None;
        }
        let end = jumps.as_ref().map_or(calls, |(place, _, _)| *place);
        let results = if jumps.is_some() { Vec::new() } else { results };
        let (turn, problems) = self.turn(&entry, &results, end, history + 1);
        problems.into_iter().for_each(|words| self.problem(tag, words));
        (entry.table, entry.tuned) = (turn.table, turn.tuned);
        let kept = jumps.as_ref().map_or(history, |(_, position, _)| *position);
        if !entry.sent[..kept].iter().zip(messages).all(|(before, now)| Arc::ptr_eq(before, now)) {
            self.problem(tag, "the messages before are not those that were sent");
        }
        match jumps {
            None => self.check_asked(tag, &entry, &messages[history]),
            Some((_, position, message)) => self.check_jump(tag, &entry, position, &message, messages),
        }
        Some(entry)
    }

    /// The first jump of a turn that is possible: its place among the calls, the position, the message.
    fn jumps(&self, entry: &Entry) -> Option<(usize, usize, String)> {
        entry.answer.calls().iter().enumerate().find_map(|(place, call)| {
            let Call::Goto { position, message } = call else { return None };
            let number = position.strip_prefix("msg_")?.parse::<usize>().ok()?;
            let is_given = entry.sent.get(number)?.role == Role::User && !message.trim().is_empty();
            is_given.then(|| (place, number, message.clone()))
        })
    }

    fn check_jump(
        &mut self,
        tag: &str,
        entry: &Entry,
        position: usize,
        message: &str,
        messages: &[Arc<Message>],
    ) {
        let dropped = entry.sent.len() - position;
        let noun = if dropped == 1 { "message was" } else { "messages were" };
        let target = &entry.sent[position];
        let mark = format!("[msg_{position}] ");
        let original = target.text();
        let original = original.strip_prefix(&mark).unwrap_or(&original);
        // A place to which the agent went back before keeps what stood there first.
        let original = match original.starts_with("<system_message>You went back") {
            true => between(original, "\">\n", "\n</original_message>"),
            false => original,
        };
        let Some(last) = messages.last().filter(|_| messages.len() == position + 1) else {
            return self.problem(tag, format!("{} messages after a jump to {position}", messages.len()));
        };
        let text = last.text();
        let said = [format!("{dropped} {noun} dropped"), message.to_owned(), original.to_owned()];
        if let Some(missing) = said.iter().find(|words| !text.contains(*words)) {
            self.problem(tag, format!("after a jump, {missing:?} is missing in {text:?}"));
        }
        if text.matches("You went back to this point").count() != 1 {
            self.problem(tag, format!("an older note is left after a jump: {text:?}"));
        }
        let results = |message: &Message| message.tool_results().cloned().collect::<Vec<_>>();
        if results(target) != results(last) {
            self.problem(tag, "a jump changed the answers to calls that are still there");
        }
        self.count("went back");
        if target.tool_results().next().is_some() {
            self.count("went back to results");
        }
    }

    /// What the calls of a turn lead to up to one of them, and in what the results differ from that.
    fn turn(
        &mut self,
        entry: &Entry,
        results: &[&ToolResult],
        end: usize,
        position: usize,
    ) -> (Turn, Vec<String>) {
        let mut turn = Turn { table: entry.table.clone(), tuned: entry.tuned.clone() };
        let mut problems = Vec::new();
        let calls = &entry.answer.calls()[..end];
        let mut from = 0;
        while from < calls.len() {
            let alone = calls[from].is_alone();
            let length =
                if alone { 1 } else { calls[from..].iter().take_while(|call| !call.is_alone()).count() };
            let batch = from..from + length;
            // All of them run before the first of their results is kept.
            let foretold: Vec<Foretold> =
                batch.clone().map(|index| self.foretell(entry, &mut turn, index, &calls[index])).collect();
            for (index, foretold) in batch.zip(foretold) {
                let name = format!("fd:{}.{index}", entry.turns);
                let shown = results.get(index).map(|result| {
                    let mark = format!("[msg_{position}] ");
                    let is_marked = index == 0 && entry.kind.is_process();
                    let text = &*result.text;
                    (
                        if is_marked { text.strip_prefix(&*mark).unwrap_or("no mark") } else { text },
                        result.is_error,
                    )
                });
                if let Some(words) = self.check_result(entry, &mut turn, &name, &foretold, shown) {
                    problems.push(format!("result {index} of {:?}: {words}: {shown:?}", calls[index]));
                }
            }
            from += length;
        }
        (turn, problems)
    }

    /// Checks a result, and puts it into the table where it is long.
    fn check_result(
        &mut self,
        entry: &Entry,
        turn: &mut Turn,
        name: &str,
        foretold: &Foretold,
        shown: Option<(&str, bool)>,
    ) -> Option<String> {
        let pages = entry.kind.has_descriptors();
        let (is_error, expected) = match foretold {
            Foretold::Text(text) if pages && text.chars().count() > LIMIT => {
                self.count("long results");
                // One that the oracle does not know of may have the name already.
                let taken = shown
                    .filter(|_| turn.table.may_have_more)
                    .and_then(|(shown, _)| shown.strip_prefix("<fd_result fd=\"")?.split_once('"'))
                    .filter(|(taken, _)| taken.strip_prefix(name).is_some_and(|rest| rest.starts_with('-')));
                let own = match taken {
                    Some((taken, _)) => {
                        turn.table.put(taken.to_owned(), Some(text.clone()));
                        taken.to_owned()
                    }
                    None => turn.table.put_beside(name, Some(text.clone())),
                };
                let (shown, is_error) = shown?;
                let fits = is_first_page(shown, &own, text) && !is_error;
                return (!fits).then(|| format!("expected the first page of `{own}`"));
            }
            Foretold::Text(text) => (false, shown.is_none_or(|(shown, _)| shown == text)),
            Foretold::Failure(_) | Foretold::Value(_) => {
                turn.table.may_have_more |= pages && shown.is_none();
                let (text, _) = shown?;
                let is_error = matches!(foretold, Foretold::Failure(_));
                let is_paged = pages && text.starts_with("<fd_result ");
                if is_paged {
                    turn.table.put_beside(name, None);
                }
                let holds = match foretold {
                    Foretold::Failure(words) => text.contains(words),
                    Foretold::Value(fits) => fits(text),
                    _ => false,
                };
                (is_error, is_paged || holds)
            }
            Foretold::Shown(fits) => (false, shown.is_none_or(|(shown, _)| fits(shown))),
            Foretold::Unknown => return None,
        };
        let (_, was_error) = shown?;
        match (expected, is_error == was_error) {
            (true, true) => None,
            (false, _) => Some(format!("another text is due, {}", foretold.words())),
            (true, false) => Some("the error flag is wrong".to_owned()),
        }
    }

    /// Says what one call gives, and does to the books what it does.
    fn foretell(&mut self, entry: &Entry, turn: &mut Turn, index: usize, call: &Call) -> Foretold {
        let missing = "there is no file descriptor";
        match call {
            Call::Look { number, size } => Foretold::Text(text(self.plan.seed, *number, *size)),
            Call::Fail { .. } => Foretold::Failure("it failed as planned"),
            Call::List => {
                let table = turn.table.clone();
                Foretold::Shown(Box::new(move |shown| is_list(shown, &table)))
            }
            Call::Close { fd } => match turn.table.get(fd).cloned() {
                None if turn.table.may_have_more => Foretold::Unknown,
                None => Foretold::Failure(missing),
                Some(closed) => {
                    self.count("descriptors closed");
                    turn.table.fds.retain(|fd| fd.name != closed.name);
                    let answer = json!({"closed": closed.name, "open": turn.table.fds.len()}).to_string();
                    match turn.table.may_have_more {
                        true => Foretold::Shown(Box::new(|shown| shown.starts_with("{\"closed\""))),
                        false => Foretold::Text(answer),
                    }
                }
            },
            Call::Read { fd, start, count } | Call::Extract { fd, start, count } => {
                let Some(found) = turn.table.get(fd).cloned() else {
                    if turn.table.may_have_more {
                        return Foretold::Unknown; // and what it takes out is one of those that there may be
                    }
                    self.count("descriptors missing");
                    return Foretold::Failure(missing);
                };
                self.count("descriptors read");
                let is_extract = matches!(call, Call::Extract { .. });
                let Some(text) = found.text else {
                    turn.table.may_have_more |= is_extract;
                    return Foretold::Unknown;
                };
                let (start, count) = (*start as usize, *count as usize);
                if start > text.chars().count().max(1) {
                    return Foretold::Failure("there is no character");
                }
                let part: String = text.chars().skip(start - 1).take(count).collect();
                if is_extract && turn.table.may_have_more {
                    return Foretold::Unknown;
                }
                if is_extract {
                    self.count("descriptors extracted");
                    let name =
                        turn.table.put_beside(&format!("fd:{}.{index}", entry.turns), Some(part.clone()));
                    let size = part.chars().count();
                    let words = [format!("fd=\"{name}\""), format!("total_chars=\"{size}\"")];
                    return Foretold::Shown(Box::new(move |shown| {
                        words.iter().all(|words| shown.contains(words))
                    }));
                }
                let end = format!(">\n{part}\n</fd_content>");
                let begin = format!("<fd_content fd=\"{fd}\" ");
                Foretold::Shown(Box::new(move |shown| shown.starts_with(&begin) && shown.ends_with(&end)))
            }
            Call::Tune { temperature, max_tokens } => self.tune(turn, *temperature, *max_tokens),
            Call::Goto { message, .. } if message.trim().is_empty() => {
                Foretold::Failure("the message is empty")
            }
            Call::Goto { .. } => {
                self.count("jumped nowhere");
                Foretold::Failure("is not a message")
            }
            Call::Spawn { tag, attach, .. } => match self.end_of(entry, turn, tag, attach) {
                End::Says(text) => Foretold::Text(text),
                End::Fails(words) => Foretold::Failure(words),
            },
            Call::Fork { children } => {
                let ends: Vec<End> =
                    children.iter().map(|(tag, _)| self.end_of(entry, turn, tag, &[])).collect();
                fork_result(ends, entry.kind.has_descriptors())
            }
        }
    }

    fn tune(&mut self, turn: &mut Turn, temperature: Option<f64>, max_tokens: Option<u64>) -> Foretold {
        let fits = temperature.is_none_or(|given| (TEMPERATURE.0..=TEMPERATURE.1).contains(&given))
            && max_tokens.is_none_or(|given| (MAX_TOKENS.0..=MAX_TOKENS.1).contains(&given));
        if temperature.is_none() && max_tokens.is_none() {
            return Foretold::Failure("nothing is changed");
        }
        if !fits {
            return Foretold::Failure("may be from");
        }
        self.count("tuned");
        turn.tuned.temperature = temperature.or(turn.tuned.temperature);
        turn.tuned.max_tokens = max_tokens.or(turn.tuned.max_tokens);
        Foretold::Value(Box::new(|shown| shown.starts_with('{')))
    }

    /// How a child ended.
    fn end_of(&mut self, parent: &Entry, turn: &Turn, tag: &str, attach: &[String]) -> End {
        let budget = if self.plan.has_budget() { "" } else { "no budget" };
        let Some(child) = self.entries.get(tag) else {
            if parent.depth + 1 > self.plan.depth {
                self.count("ended too deep");
                return End::Fails("would be agent");
            }
            if attach.iter().any(|name| turn.table.get(name).is_none()) {
                // A child that was passed an unknown one would be known, unless a jump hid what it was passed and the
                // budget kept it from asking.
                let may_be_hidden = turn.table.may_have_more && self.plan.has_budget();
                return End::Fails(if may_be_hidden { "" } else { "file descriptor" });
            }
            return End::Fails(budget);
        };
        match &child.answer {
            Answer::Says(text) => End::Says(text.clone()),
            Answer::Fails => End::Fails("as planned"),
            Answer::Calls { .. } if child.turns == self.plan.turns => {
                self.count("ended by turns");
                End::Fails("turns without an answer")
            }
            Answer::Calls { .. } => End::Fails(budget),
        }
    }
}

/// How a child ended.
enum End {
    Says(String),
    Fails(&'static str),
}

/// The answers of the children. A value that is too long to be shown has lines.
fn fork_result(ends: Vec<End>, pages: bool) -> Foretold {
    let answers: Option<Vec<Value>> = ends
        .iter()
        .enumerate()
        .map(|(id, end)| match end {
            End::Says(text) => Some(json!({"id": id, "message": text})),
            End::Fails(_) => None,
        })
        .collect();
    if let Some(answers) = answers {
        let text = Value::Array(answers.clone()).to_string();
        let is_long = pages && text.chars().count() > LIMIT;
        return Foretold::Text(if is_long { serde_json::to_string_pretty(&answers).unwrap() } else { text });
    }
    Foretold::Value(Box::new(move |shown| {
        let Ok(Value::Array(answers)) = serde_json::from_str(shown) else { return false };
        answers.len() == ends.len()
            && ends.iter().zip(&answers).enumerate().all(|(id, (end, answer))| match end {
                End::Says(text) => *answer == json!({"id": id, "message": text}),
                End::Fails(words) => {
                    answer["id"] == id
                        && answer["error"] == true
                        && answer["message"].as_str().is_some_and(|message| message.contains(words))
                }
            })
    }))
}

fn is_first_page(shown: &str, name: &str, text: &str) -> bool {
    let page: String = text.chars().take(PAGE).collect();
    // A page ends with a line where there is one.
    let begin = format!("<fd_result fd=\"{name}\" ");
    let size = format!(" total_chars=\"{}\"", text.chars().count());
    let preview =
        shown.split_once("<preview>\n").and_then(|(_, rest)| rest.strip_suffix("\n</preview>\n</fd_result>"));
    shown.starts_with(&begin)
        && shown.contains(&size)
        && preview.is_some_and(|preview| !preview.is_empty() && page.starts_with(preview))
}

fn is_list(shown: &str, table: &Table) -> bool {
    let Ok(value) = serde_json::from_str::<Value>(shown) else { return false };
    let Some(shown) = value["descriptors"].as_array() else { return false };
    let is_same = |shown: &Value, fd: &Fd| {
        let size = fd.text.as_ref().map(|text| text.chars().count() as u64);
        shown["fd"] == fd.name.as_str() && size.is_none_or(|size| shown["chars"] == size)
    };
    // A long list shows its beginning, and says how many more there are.
    let note = value["note"].as_str().and_then(|note| note.split(' ').next()?.parse::<usize>().ok());
    let left_out = note.unwrap_or_default();
    let is_same_at = |place: usize| table.fds.get(place).is_some_and(|fd| is_same(&shown[place], fd));
    if !table.may_have_more {
        return shown.len() + left_out == table.fds.len() && (0..shown.len()).all(is_same_at);
    }
    let mut rest = shown.iter();
    let found = table.fds.iter().take_while(|fd| rest.any(|shown| is_same(shown, fd))).count();
    found + left_out >= table.fds.len()
}

/// As the providers demand: roles change, and the calls of a message are answered in the next one, each once.
pub(crate) fn valid(messages: &[Arc<Message>]) -> Result<(), String> {
    let (mut open, mut seen) = (Vec::new(), HashSet::new());
    for (index, message) in messages.iter().enumerate() {
        let answered: Vec<&str> = message.tool_results().map(|result| result.id.as_str()).collect();
        if answered != open {
            return Err(format!("message {index} answers {answered:?}, and {open:?} are open"));
        }
        open = message.tool_calls().map(|call| call.id.as_str()).collect();
        if let Some(twice) = open.iter().find(|id| !seen.insert(**id)) {
            return Err(format!("message {index} asks with the id {twice} of another call"));
        }
        if (message.role == Role::User) != (index % 2 == 0) || message.parts.is_empty() {
            return Err(format!("message {index} is {:?} with {} parts", message.role, message.parts.len()));
        }
    }
    match open.is_empty() && messages.last().is_some_and(|last| last.role == Role::User) {
        true => Ok(()),
        false => Err(format!("calls without an answer at the end: {open:?}")),
    }
}

/// The text between two others; nothing where they are not there.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).map_or("", |(_, rest)| rest);
    rest.split_once(after).map_or("", |(inner, _)| inner)
}

/// What an agent that cannot read descriptors is given of a text that is passed to it.
fn beginning(text: &str) -> String {
    let all = text.chars().count();
    if all <= LIMIT {
        return text.to_owned();
    }
    let start: String = text.chars().take(LIMIT).collect();
    format!("{start}\n[cut: {LIMIT} of {all} characters are shown]")
}
