//! What random sequences of answers and failures cost, compared with a simple model of bookings.
//!
//! Each turn of a run has some failed attempts and then an answer. The failures are removed in a second run of the same
//! answers, whose output is limited by nothing but the budget: its output caps show what each request reserves for its
//! input. What the first run books must be what the model makes of these figures.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use llm_do_core::{
    AgentSpec, Approval, Event, EventBody, Limits, ModelErrorKind, ModelProfile, Output, Status, Usage,
};
use llm_do_models::{Script, ScriptedReply, asks, cut, fails, says};
use llm_do_runtime::RetryPolicy;
use llm_do_testing::{Chance, FunctionTool, TestProject, TestRun};
use serde_json::json;

/// The limit of every run: never reached, so that all of them end with their last answer.
const LIMIT: u64 = 1_000_000_000;

/// The output that requests of the first run ask for.
const OUTPUT: u64 = 2_000;

/// One attempt that fails, by what it costs.
#[derive(Debug, Clone, Copy)]
enum Failed {
    /// Refused before it began.
    Free(ModelErrorKind),
    /// Failed with a report.
    Known(ModelErrorKind, u64, u64),
    /// Failed in the middle of the answer.
    Broken(ModelErrorKind),
    /// The stream ended without an end.
    Cut,
}

#[derive(Debug)]
struct Turn {
    failures: Vec<Failed>,
    input: u64,
    output: u64,
}

const PASSING: [ModelErrorKind; 4] =
    [ModelErrorKind::RateLimit, ModelErrorKind::Overloaded, ModelErrorKind::Server, ModelErrorKind::Network];

fn number(chance: &mut Chance, end: usize) -> u64 {
    chance.below(end) as u64
}

impl Failed {
    fn any(chance: &mut Chance) -> Self {
        let kind = *chance.one_of(&PASSING);
        match chance.below(5) {
            0 | 1 => Self::Free(kind),
            2 => Self::Known(kind, 1 + number(chance, 900), number(chance, 300)),
            3 => Self::Broken(kind),
            _ => Self::Cut,
        }
    }

    fn reply(self) -> ScriptedReply {
        match self {
            Self::Free(kind) => fails(kind, "refused"),
            Self::Known(kind, input, output) => fails(kind, "failed").tokens(input, output),
            Self::Broken(kind) => says("half").and(fails(kind, "broken")),
            Self::Cut => cut("half"),
        }
    }

    /// What it is booked with, if so much was reserved for its input.
    fn booked(self, reserved_input: u64) -> u64 {
        match self {
            Self::Free(_) => 0,
            Self::Known(_, input, output) => input + output,
            Self::Broken(_) | Self::Cut => reserved_input + OUTPUT,
        }
    }

    /// The tokens that the provider reported.
    fn reported(self) -> u64 {
        match self {
            Self::Known(_, input, output) => input + output,
            Self::Free(_) | Self::Broken(_) | Self::Cut => 0,
        }
    }

    /// The requests whose cost nobody knows.
    fn unknown(self) -> u64 {
        u64::from(matches!(self, Self::Broken(_) | Self::Cut))
    }
}

impl Turn {
    fn any(chance: &mut Chance) -> Self {
        let failures = (0..chance.below(4)).map(|_| Failed::any(chance)).collect();
        Self { failures, input: 1 + number(chance, 5_000), output: 1 + number(chance, 900) }
    }
}

/// Answers of a run: each turn looks, and the last one ends.
fn replies(turns: &[Turn], with_failures: bool) -> Vec<ScriptedReply> {
    let mut replies = Vec::new();
    for (index, turn) in turns.iter().enumerate() {
        if with_failures {
            replies.extend(turn.failures.iter().map(|failed| failed.reply()));
        }
        let is_last = index + 1 == turns.len();
        let answer = if is_last { says("done") } else { asks("look", json!({"n": index})) };
        replies.push(answer.tokens(turn.input, turn.output));
    }
    replies
}

/// A model whose prices are known, so that requests without a report stand out.
struct PerToken;

impl llm_do_core::Prices for PerToken {
    fn price(&self, _: &str, usage: &Usage) -> Option<llm_do_core::Money> {
        Some(llm_do_core::Money(usage.tokens() * 10))
    }
}

/// Plays a run and returns it, with the tokens that were booked whenever its tool looked.
async fn play(replies: Vec<ScriptedReply>, default_max_output: u64) -> (TestRun, Vec<u64>) {
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let book = seen.clone();
    let look = FunctionTool::new("look", move |_, call| {
        book.lock().unwrap().push(LIMIT - call.inspect().remaining.tokens.unwrap());
        async { Ok(Output::text("seen")) }
    })
    .define(|tool| tool.approval = Approval::PreApproved);
    let profile = ModelProfile { default_max_output, ..ModelProfile::default() };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "You look around.").tool("look"))
        .tool(look)
        .model(Script::new(replies).with_profile(profile))
        .runtime(|runtime| {
            let limits = Limits { tokens: Some(LIMIT), ..Limits::default() };
            runtime.limits(limits).prices(PerToken).retry(RetryPolicy::default())
        })
        .run("go")
        .await;
    let seen = seen.lock().unwrap().clone();
    (run, seen)
}

/// What each request reserves for its input: what its output cap leaves of the budget.
fn reserved_inputs(run: &TestRun, turns: &[Turn]) -> Vec<u64> {
    let cap = |event: &Arc<Event>| match event.body {
        EventBody::ModelRequest { max_output, .. } => max_output,
        _ => None,
    };
    let caps: Vec<u64> = run.events().iter().filter_map(cap).collect();
    let mut used = 0;
    caps.iter()
        .zip(turns)
        .map(|(cap, turn)| {
            let input = LIMIT - used - cap;
            used += turn.input + turn.output;
            input
        })
        .collect()
}

async fn check(seed: u64) {
    let mut chance = Chance::new(seed);
    let turns: Vec<Turn> = (0..chance.between(1, 5)).map(|_| Turn::any(&mut chance)).collect();
    let (smooth, _) = play(replies(&turns, false), 2 * LIMIT).await;
    let inputs = reserved_inputs(&smooth, &turns);
    let (run, seen) = play(replies(&turns, true), OUTPUT).await;
    assert_eq!(run.status(), Status::Done, "seed {seed}: {}", run.error());

    let mut booked = 0;
    for (index, turn) in turns.iter().enumerate() {
        booked += turn.failures.iter().map(|failed| failed.booked(inputs[index])).sum::<u64>();
        booked += turn.input + turn.output;
        // The last turn makes no call, so nobody looks after it.
        assert!(
            seen.get(index).is_none_or(|seen| *seen == booked),
            "seed {seed}, turn {index}: {seen:?} {turns:?}"
        );
    }
    assert_eq!(seen.len(), turns.len() - 1, "seed {seed}");
    let failures = || turns.iter().flat_map(|turn| &turn.failures);
    let total = run.report().usage.total();
    let reported: u64 = failures().map(|failed| failed.reported()).sum();
    let answered: u64 = turns.iter().map(|turn| turn.input + turn.output).sum();
    assert_eq!(total.tokens(), reported + answered, "seed {seed}: {turns:?}");
    assert_eq!(total.requests, (turns.len() + failures().count()) as u64, "seed {seed}");
    assert_eq!(total.cost.unpriced, failures().map(|failed| failed.unknown()).sum::<u64>(), "seed {seed}");
}

/// As many runs as `LLM_DO_BOOKINGS` says.
#[tokio::test(start_paused = true)]
async fn bookings_are_those_of_a_simple_model_whatever_fails() {
    let runs = std::env::var("LLM_DO_BOOKINGS").map_or(500, |runs| runs.parse().unwrap());
    for seed in 0..runs {
        check(seed).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_cancelled_counts_as_one_of_unknown_cost() {
    let limits = Limits { tokens: Some(LIMIT), ..Limits::default() };
    let report = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([says("never").after(Duration::from_secs(86_400))])
        .runtime(move |runtime| runtime.limits(limits).prices(PerToken))
        .build()
        .run("main", "go")
        .timeout(Duration::from_secs(60))
        .await
        .unwrap_err()
        .report;
    let total = report.usage.total();
    assert_eq!((total.requests, total.tokens(), total.cost.unpriced), (1, 0, 1));
}
