//! Random events, with the values that formats get wrong.

use std::sync::Arc;

use base64::Engine;
use jiff::Timestamp;
use llm_do_core::{
    CallInfo, CallKind, CallOrigin, CallResult, ContextUse, Digest, Effect, Event, EventBody, Failure,
    FailureKind, Grant, GrantSubject, Key, Message, ModelResponse, ModelResult, Money, Name, Output, Payload,
    ProjectChanges, ProjectState, Quantity, Reserved, RunId, RunStart, Scope, Settlement, Status, StopReason,
    Usage, UsageByModel,
};
use llm_do_testing::Chance;
use serde_json::{Value, json};
use uuid::Uuid;

pub(crate) fn run_id(number: u128) -> RunId {
    RunId(Uuid::from_u128(number + 1))
}

/// The root of a run, or a call below it.
pub(crate) fn call(run: RunId, key: &str) -> Arc<CallInfo> {
    Arc::new(CallInfo {
        run,
        id: Key::from(key),
        parent: (!key.is_empty()).then(Key::root),
        depth: u32::from(!key.is_empty()),
        path: if key.is_empty() { "".into() } else { format!("main > {key}").into() },
        agent: Name::from(if key.is_empty() { "" } else { "main" }),
    })
}

pub(crate) fn event(run: RunId, seq: u64, key: &str, body: EventBody) -> Arc<Event> {
    let call = call(run, key);
    let time = Timestamp::new(1_763_000_000 + i64::try_from(seq).unwrap(), 123_456_789).unwrap();
    Arc::new(Event { seq: Some(seq), key: call.id.child("t1"), time, call, body })
}

pub(crate) fn started(run: RunId) -> Arc<Event> {
    let start = RunStart::new("main", Payload::new(json!({"input": "Sort the inbox"})), Digest::hash("pin"));
    let mut event = Event::clone(&event(run, 0, "", EventBody::RunStarted(Box::new(start))));
    event.key = Key::root();
    Arc::new(event)
}

pub(crate) fn ended(status: Status) -> EventBody {
    EventBody::RunFinished {
        status,
        output: Some(Output::text("x")),
        error: None,
        usage: UsageByModel::default(),
        duration_ms: 1,
    }
}

fn text(chance: &mut Chance) -> String {
    match chance.below(6) {
        0 => String::new(),
        1 => "\u{0}\u{fffd}\"\\\n\u{2028}𝄞".repeat(chance.below(60)),
        2 => "x".repeat(chance.below(3_000)),
        3 => base64::engine::general_purpose::STANDARD.encode(vec![200; chance.below(2_000)]),
        4 => "the same long text ".repeat(50),
        _ => format!("text {}", chance.below(5)),
    }
}

fn value(chance: &mut Chance, depth: usize) -> Value {
    match chance.below(if depth == 0 { 6 } else { 9 }) {
        0 => Value::Null,
        1 => json!(u64::MAX - chance.bits() % 3),
        2 => json!(i64::MIN + 7),
        3 => json!(f64::from_bits(chance.bits() & 0x7fdf_ffff_ffff_ffff)),
        4 | 5 => json!(text(chance)),
        6 => (0..chance.below(30)).map(|_| value(chance, depth - 1)).collect(),
        7 => {
            json!({ ["$text", "$json", "$unparsed", "$plain", "type"][chance.below(5)]: value(chance, depth - 1) })
        }
        _ => Value::Object(
            (0..chance.below(9)).map(|index| (format!("k{index}"), value(chance, depth - 1))).collect(),
        ),
    }
}

fn usage(chance: &mut Chance) -> Usage {
    let mut usage =
        Usage { requests: 1, input: chance.bits() >> 40, output: chance.bits() >> 44, ..Usage::default() };
    usage.cost.known.0 = chance.bits() >> 34;
    usage
}

fn payload(chance: &mut Chance) -> Payload {
    match chance.below(8) {
        0 => serde_json::from_value(json!({"$unparsed": text(chance)})).unwrap(),
        _ => Payload::new(value(chance, 3)),
    }
}

fn result(chance: &mut Chance) -> CallResult {
    match chance.below(3) {
        0 => CallResult::Error(Failure::new(FailureKind::Tool, text(chance)).with_hint(text(chance))),
        1 => CallResult::Output(Output::text(text(chance))),
        _ => CallResult::Output(Output::json(value(chance, 3))),
    }
}

/// A random event of a call.
pub(crate) fn random_event(chance: &mut Chance, run: RunId, seq: u64) -> Arc<Event> {
    let key = ["", "1", "1/t1/tool/0", "1/t1/tool/1", "2"][chance.below(5)];
    let name = Name::from(["main", "read_file", "é"][chance.below(3)]);
    let body = match chance.below(16) {
        0 => EventBody::CallStarted {
            kind: CallKind::Tool,
            name,
            input: payload(chance),
            origin: CallOrigin::Embedder,
            fork: chance.below(2) == 0,
        },
        1 => EventBody::CallExecuting { permit: Digest::hash("x"), effect: Effect::Once },
        2 => EventBody::ModelRequest {
            model: "openai:gpt-5".into(),
            turn: 1,
            messages: (0..chance.below(4)).map(|_| Arc::new(Message::user(text(chance)))).collect(),
            kept: (chance.below(2) == 0).then_some(3),
            instructions: Some(text(chance).into()),
            head: llm_do_core::Head::empty(),
            max_output: None,
            reserved: (chance.below(2) == 0).then(|| Reserved { tokens: chance.bits(), cost: Money(3) }),
            attempt: u32::try_from(chance.below(3)).unwrap(),
            context: (chance.below(2) == 0).then(|| ContextUse { used: chance.bits(), window: 4_096 }),
        },
        3 => EventBody::ModelResponse {
            model: "anthropic:claude-sonnet-5".into(),
            result: ModelResult::Response(Arc::new(ModelResponse::new(
                Message::assistant(text(chance)),
                StopReason::EndTurn,
                usage(chance),
            ))),
            duration_ms: chance.bits() >> 50,
        },
        4 => EventBody::Stderr { text: text(chance) },
        5 => EventBody::Notice { text: text(chance) },
        6 => EventBody::CallFinished {
            kind: CallKind::Tool,
            name,
            result: result(chance),
            duration_ms: 3,
            ran_ms: (chance.below(2) == 0).then_some(2),
            usage: usage(chance),
        },
        8 => EventBody::OutcomeSettled {
            settlement: Settlement::Happened { output: Output::json(value(chance, 2)) },
        },
        9 => EventBody::OutcomeSettled { settlement: Settlement::Unknown },
        7 => EventBody::RunResumed {
            changed: true,
            changes: ProjectChanges::default(),
            state: Box::new(ProjectState { pin: Some(Digest::hash("pin")), ..ProjectState::default() }),
            build: text(chance),
            limits: None,
        },
        12 => EventBody::GrantRevoked {
            grant: Grant {
                subject: GrantSubject {
                    agent: "main".into(),
                    toolset: None,
                    name,
                    definition: Digest::hash(text(chance)),
                },
                scope: Scope::Directory(text(chance)),
                arguments: None,
            },
        },
        13 => EventBody::InstanceLost { toolset: name },
        11 => EventBody::AgentAdded { name, creator: "main".into() },
        10 => {
            EventBody::BudgetExtended { limit_of: Key::from("1/t1"), what: Quantity::Cost, by: chance.bits() }
        }
        _ => EventBody::RunFinished {
            status: [Status::Done, Status::Interrupted, Status::Unknown][chance.below(3)],
            output: Some(Output::json(value(chance, 3))),
            error: Some(text(chance)),
            usage: UsageByModel::default(),
            duration_ms: 7,
        },
    };
    event(run, seq, key, body)
}
