//! What happens in runs, told event by event.

use std::sync::Arc;

use llm_do_core::{
    ApprovalRequest, CallInfo, CallKind, CallOrigin, CallResult, ContextUse, Cost, DecidedBy, Decision,
    Delta, Digest, Event, EventBody, Failure, FailureKind, Head, Key, Limits, Message, ModelResponse,
    ModelResult, Money, Output, Part, Payload, Permit, Role, RunId, RunStart, Status, StopReason, ToolCall,
    ToolResult, Usage, UsageByModel,
};
use serde_json::{Value, json};

use super::driver::Driver;

/// Whose events follow.
pub(super) type Who = Arc<CallInfo>;

/// How long every call takes.
const TIME: u64 = 1_200;

pub(super) fn event(who: &Who, body: EventBody) -> Event {
    Event { seq: None, key: who.id.clone(), time: Default::default(), call: who.clone(), body }
}

/// What a request of so many tokens used.
pub(super) fn used(input: u64, output: u64) -> Usage {
    let cost = Cost { known: Money(input * 3_000 + output * 15_000), unpriced: 0 };
    Usage { requests: 1, input, output, cost, ..Usage::default() }
}

pub(super) fn text(text: &str) -> Part {
    Part::text(text)
}

pub(super) fn thought(text: &str) -> Part {
    Part::Thinking { text: text.into(), signature: None, raw: None }
}

pub(super) fn wants(name: &str, arguments: &Value) -> Part {
    Part::ToolCall(ToolCall {
        id: "1".to_owned(),
        name: name.into(),
        arguments: arguments.to_string().into(),
        raw: None,
    })
}

pub(super) fn result_of(name: &str, text: &str, is_error: bool) -> Part {
    let attachments = Vec::new();
    Part::ToolResult(ToolResult {
        id: "1".to_owned(),
        name: name.into(),
        text: text.into(),
        is_error,
        attachments,
    })
}

impl Driver {
    /// A run of an agent begins.
    pub(super) fn begins(&mut self, name: &str, limits: Limits) -> Who {
        self.runs += 1;
        let run: RunId =
            serde_json::from_value(json!(format!("00000000-0000-0000-0000-0000000000{:02x}", self.runs)))
                .expect("an id");
        let root = Arc::new(CallInfo {
            run,
            id: Key::root(),
            parent: None,
            depth: 0,
            path: "".into(),
            agent: name.into(),
        });
        let start = RunStart { limits, ..RunStart::new(name, Payload::null(), Digest::hash("pin")) };
        self.read(&event(&root, EventBody::RunStarted(Box::new(start))));
        self.calls(&root, CallKind::Agent, name, json!({"input": "go"}))
    }

    /// Something is called.
    pub(super) fn calls(&mut self, caller: &Who, kind: CallKind, name: &str, input: Value) -> Who {
        self.calls += 1;
        let path = if caller.path.is_empty() { name.to_owned() } else { format!("{} > {name}", caller.path) };
        let who = Arc::new(CallInfo {
            run: caller.run,
            id: format!("1/t{}", self.calls).into(),
            parent: Some(caller.id.clone()),
            depth: caller.depth + u32::from(kind == CallKind::Agent),
            path: path.into(),
            agent: if kind == CallKind::Agent { name.into() } else { caller.agent.clone() },
        });
        let started = EventBody::CallStarted {
            kind,
            name: name.into(),
            input: input.into(),
            origin: CallOrigin::Model,
            fork: false,
        };
        self.read(&event(&who, started));
        who
    }

    pub(super) fn calls_agent(&mut self, caller: &Who, name: &str, input: &str) -> Who {
        self.calls(caller, CallKind::Agent, name, json!({"input": input}))
    }

    pub(super) fn calls_tool(&mut self, caller: &Who, name: &str, input: Value) -> Who {
        self.calls(caller, CallKind::Tool, name, input)
    }

    /// The model of an agent is asked.
    pub(super) fn asks_model(&mut self, who: &Who, model: &str, parts: Vec<Part>) {
        self.asks(who, model, parts, None);
    }

    /// The model of an agent is asked, and the size of its window is known.
    pub(super) fn asks_model_within(&mut self, who: &Who, model: &str, context: ContextUse) {
        self.asks(who, model, Vec::new(), Some(context));
    }

    fn asks(&mut self, who: &Who, model: &str, parts: Vec<Part>, context: Option<ContextUse>) {
        let messages = vec![Arc::new(Message { role: Role::User, parts, origin: None })];
        let request = EventBody::ModelRequest {
            model: model.into(),
            turn: 1,
            messages,
            kept: None,
            instructions: Some("You are helpful.".into()),
            head: Head::empty(),
            max_output: None,
            reserved: None,
            attempt: 0,
            context,
        };
        self.read(&event(who, request));
    }

    fn delta(&mut self, who: &Who, words: &str) -> Delta {
        let place = self.pieces.entry(who.id.clone()).or_default();
        let index = *place;
        *place += 1;
        Delta { attempt: 0, index, text: words.to_owned() }
    }

    /// The model says a piece of its answer.
    pub(super) fn says(&mut self, who: &Who, words: &str) {
        let delta = self.delta(who, words);
        self.read(&event(who, EventBody::TextDelta(delta)));
    }

    /// The model thinks on.
    pub(super) fn thinks(&mut self, who: &Who, words: &str) {
        let delta = self.delta(who, words);
        self.read(&event(who, EventBody::ThinkingDelta(delta)));
    }

    /// The model has answered.
    pub(super) fn answers(&mut self, who: &Who, model: &str, parts: Vec<Part>, usage: Usage) {
        self.pieces.remove(&who.id);
        let message = Message { role: Role::Assistant, parts, origin: None };
        let response = ModelResponse::new(message, StopReason::EndTurn, usage);
        let result = ModelResult::Response(Arc::new(response));
        self.read(&event(who, EventBody::ModelResponse { model: model.into(), result, duration_ms: TIME }));
    }

    fn finishes(&mut self, who: &Who, kind: CallKind, result: CallResult, usage: Usage) {
        let name = who.path.rsplit(" > ").next().unwrap_or_default().into();
        self.read(&event(
            who,
            EventBody::CallFinished { kind, name, result, duration_ms: TIME, ran_ms: None, usage },
        ));
    }

    pub(super) fn returns(&mut self, who: &Who, words: &str) {
        self.finishes(who, CallKind::Tool, CallResult::Output(Output::text(words)), Usage::default());
    }

    pub(super) fn agent_returns(&mut self, who: &Who, words: &str, usage: Usage) {
        self.finishes(who, CallKind::Agent, CallResult::Output(Output::text(words)), usage);
    }

    pub(super) fn fails(&mut self, who: &Who, kind: FailureKind, words: &str) {
        self.finishes(who, CallKind::Tool, CallResult::Error(Failure::new(kind, words)), Usage::default());
    }

    /// The gate asks about a call; the person is not asked by this.
    pub(super) fn requests(&mut self, who: &Who, request: &ApprovalRequest) {
        let request = ApprovalRequest { id: who.id.clone(), ..request.clone() };
        self.read(&event(who, EventBody::ApprovalRequested(Arc::new(request))));
    }

    /// The person allowed a call.
    pub(super) fn is_allowed(&mut self, who: &Who, arguments: Value) {
        self.is_permitted(who, arguments, false);
    }

    /// The person allowed a call with other arguments.
    pub(super) fn is_allowed_changed(&mut self, who: &Who, arguments: Value) {
        self.is_permitted(who, arguments, true);
    }

    fn is_permitted(&mut self, who: &Who, arguments: Value, edited: bool) {
        let arguments = Payload::new(arguments);
        let permit = Permit {
            digest: arguments.digest(),
            arguments,
            by: DecidedBy::Approver,
            edited,
            repairs: Vec::new(),
            precondition: None,
            grant: None,
        };
        let decision = Arc::new(Decision::Allow(Arc::new(permit)));
        self.read(&event(
            who,
            EventBody::ApprovalDecided { id: who.id.clone(), decision, answered_by: None },
        ));
    }

    pub(super) fn logs(&mut self, who: &Who, words: &str) {
        self.read(&event(who, EventBody::Stderr { text: words.to_owned() }));
    }

    pub(super) fn notices(&mut self, who: &Who, words: &str) {
        self.read(&event(who, EventBody::Notice { text: words.to_owned() }));
    }

    /// The run of a call is over.
    pub(super) fn ends(&mut self, who: &Who, status: Status, answer: Option<&str>, error: Option<&str>) {
        let mut usage = UsageByModel::default();
        usage.add(&"anthropic:sonnet".into(), used(12_000, 800));
        let body = EventBody::RunFinished {
            status,
            output: answer.map(Output::text),
            error: error.map(str::to_owned),
            usage,
            duration_ms: 4 * TIME,
        };
        self.read(&event(who, body));
    }
}
