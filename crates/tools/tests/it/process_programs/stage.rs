//! Runs one program, enters it again from a part of its record, and checks both.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use llm_do_core::{
    Access, Approval, Effect, Event, ModelProfile, ModelRequest, Money, Output, Prices, Status,
    ToolDefinition, ToolError, Usage,
};
use llm_do_models::{Script, ScriptedReply, instructed, replies};
use llm_do_runtime::{Canceller, MemoryStore, Runtime, Store};
use llm_do_testing::{Chance, FunctionTool, TestProject, TestRun};
use llm_do_tools::{FileDescriptors, Process, ProcessSettings};

use crate::process_programs::Counts;
use crate::process_programs::books::Books;
use crate::process_programs::decisions::{tag, tagged};
use crate::process_programs::plan::{KINDS, PRICE, Plan, text};
use crate::process_programs::record;

struct PerToken;

impl Prices for PerToken {
    fn price(&self, _model: &str, usage: &Usage) -> Option<Money> {
        Some(Money(usage.tokens() * PRICE))
    }
}

/// One run of a program.
struct Stage {
    plan: Plan,
    books: Mutex<Books>,
    asked: AtomicUsize,
    canceller: OnceLock<Canceller>,
}

/// Checks the program of a seed. Returns what it did, and what was wrong.
pub(crate) fn check(seed: u64, shows: bool) -> (Counts, Vec<String>) {
    let executor =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    executor.block_on(check_program(Plan::of(seed), shows))
}

async fn check_program(plan: Plan, shows: bool) -> (Counts, Vec<String>) {
    let stage = Stage::new(&plan, true);
    let kept = Arc::new(MemoryStore::default());
    let runtime = stage.runtime(kept.clone());
    let run = runtime.run("full", tagged("r", "go")).start();
    let _ = stage.canceller.set(run.canceller());
    let Ok(ended) = tokio::time::timeout(Duration::from_secs(3_600), run).await else {
        return (Counts::new(), vec!["the run got stuck".to_owned()]);
    };
    let first = TestRun::of(ended);
    stage.books.lock().unwrap().ended = true;
    let mut problems = stage.problems(&first);
    if !runtime.still_running().is_empty() {
        problems.push(format!("still running: {:?}", runtime.still_running()));
    }
    runtime.shutdown().await;
    if shows {
        println!("{plan:?}\n{:?}\n{}", first.status(), first.report().trace());
    }
    let mut counts = stage.books.lock().unwrap().counts.clone();
    let mut count = |name| *counts.entry(name).or_default() += 1;
    match first.status() {
        Status::Interrupted => count("runs cancelled"),
        Status::Limit => count("runs that end in a limit"),
        Status::Done => count("runs done"),
        _ => count("runs that end otherwise"),
    }
    if problems.is_empty() && plan.cancel_at.is_none() && !plan.has_budget() {
        count("runs resumed");
        problems.extend(enter_again(&plan, &stage, &first, &kept).await);
    }
    (counts, problems)
}

impl Stage {
    fn new(plan: &Plan, strict: bool) -> Arc<Self> {
        Arc::new(Self {
            plan: plan.clone(),
            books: Mutex::new(Books::new(plan.clone(), strict)),
            asked: AtomicUsize::new(0),
            canceller: OnceLock::new(),
        })
    }

    fn runtime(self: &Arc<Self>, store: Arc<dyn Store>) -> Runtime {
        let stage = self.clone();
        let script = Script::new([replies(move |request| stage.answer(request)).when(instructed("You are"))]);
        let script = script.with_profile(ModelProfile { default_max_output: 400, ..ModelProfile::default() });
        let process = Process::new("process", ProcessSettings::default()).unwrap();
        let descriptors = FileDescriptors::read_only("file_descriptors").unwrap();
        let mut project = TestProject::new().toolset(process).toolset(descriptors);
        for kind in KINDS {
            project = project.agent(self.plan.agent(kind));
        }
        let limits = self.plan.limits();
        let settings = move |runtime: llm_do_runtime::RuntimeBuilder| {
            runtime.limits(limits).prices(PerToken).store(store).repeat_limit(u32::MAX)
        };
        project.tool(self.look()).tool(failing()).model(script).runtime(settings).build()
    }

    fn look(self: &Arc<Self>) -> FunctionTool {
        let stage = self.clone();
        let look = move |input: serde_json::Value, _| {
            let (number, size) =
                (input["number"].as_u64().unwrap(), input["size"].as_u64().unwrap() as usize);
            let answer = text(stage.plan.seed, number, size);
            let mut books = stage.books.lock().unwrap();
            if books.ended {
                books.problems.push("a tool ran after the run had ended".to_owned());
            }
            async move {
                for _ in 0..number % 4 {
                    tokio::task::yield_now().await;
                }
                Ok(Output::text(answer))
            }
        };
        FunctionTool::new("look", look).define(free)
    }

    /// Answers as decided, and counts the tokens.
    fn answer(&self, request: &ModelRequest<'_>) -> ScriptedReply {
        let mut books = self.books.lock().unwrap();
        let answer = books.asked(request);
        let asked = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        if self.plan.cancel_at == Some(asked)
            && let Some(canceller) = self.canceller.get()
        {
            canceller.cancel();
        }
        let name = tag(request.conversation.messages()).unwrap_or_default();
        let mut chance = Chance::at(self.plan.seed, &["tokens", &name, &asked.to_string()]);
        let output = chance.between(1, request.max_output.unwrap_or(400) as usize) as u64;
        let input = chance.between(1, 100) as u64;
        if let Some(entry) = books.entries.get_mut(&name) {
            entry.tokens += input + output;
        }
        answer.reply().tokens(input, output).after(Duration::from_millis(chance.below(4) as u64))
    }

    fn problems(&self, run: &TestRun) -> Vec<String> {
        let books = self.books.lock().unwrap();
        let mut problems = books.problems.clone();
        problems.extend(record::problems(&run.events(), run.status(), self.plan.depth, &books.heads));
        let below = |name: &str| -> u64 {
            let within = |other: &str| other == name || other.starts_with(&format!("{name}."));
            books.entries.iter().filter(|(other, _)| within(other)).map(|(_, entry)| entry.tokens).sum()
        };
        let too_many =
            |(name, _): &(&String, &_)| self.plan.agent_tokens.is_some_and(|limit| below(name) > limit);
        problems
            .extend(books.entries.iter().filter(too_many).map(|(name, _)| format!("{name} used too much")));
        let used = below("r");
        if self.plan.tokens.is_some_and(|limit| used > limit) {
            problems.push(format!("the run used {used} of {:?}", self.plan.tokens));
        }
        let usage = run.report().usage.total();
        // What failed reports no tokens, and what was cancelled on its way neither.
        let is_whole = run.status() == Status::Done && !books.counts.contains_key("children that failed");
        if usage.tokens() > used || is_whole && usage.tokens() != used || usage.cost.known.0 > used * PRICE {
            problems.push(format!("the report says {usage:?}, and {used} tokens were used"));
        }
        if matches!(run.status(), Status::Record | Status::Unknown | Status::Provider) {
            problems.push(format!("the run ended with {:?}: {}", run.status(), run.error()));
        }
        problems
    }
}

/// Enters a run again from a part of its record: it must go the same way to the same end.
async fn enter_again(plan: &Plan, first: &Stage, ended: &TestRun, kept: &MemoryStore) -> Vec<String> {
    let record: Vec<Arc<Event>> = kept.read(ended.report().id, None).await.unwrap();
    let length = Chance::at(plan.seed, &["resume"]).between(1, record.len() - 1);
    let cut = Arc::new(MemoryStore::from_events(record[..length].iter().cloned()));
    let stage = Stage::new(plan, false);
    let runtime = stage.runtime(cut);
    let again = TestRun::of(runtime.resume(ended.report().id).await.unwrap().await);
    runtime.shutdown().await;
    let (books, before) = (stage.books.lock().unwrap(), first.books.lock().unwrap());
    let mut problems = books.problems.clone();
    let other = books.heads.iter().filter(|head| !before.heads.contains(head)).count();
    if other > 0 {
        problems.push(format!("{other} requests that the first run did not make"));
    }
    let end = |run: &TestRun| (run.status(), run.report().text());
    if end(&again) != end(ended) {
        let why = again.events().last().map(|event| event.body.clone());
        problems.push(format!("ended with {:?} ({why:?}) instead of {:?}", end(&again), end(ended)));
    }
    problems.extend(record::problems(&again.events(), again.status(), plan.depth, &before.heads));
    let place = |problem| format!("entered again after {length} of {} events: {problem}", record.len());
    problems.into_iter().map(place).collect()
}

fn failing() -> FunctionTool {
    FunctionTool::new("fail", |_, _| async { Err(ToolError::new("it failed as planned")) }).define(free)
}

fn free(definition: &mut ToolDefinition) {
    definition.access = Access::Read;
    definition.approval = Approval::PreApproved;
    definition.effect = Effect::Idempotent;
}
