//! One run as its record, its tools, its models and its approver saw it, sorted by call.

use std::collections::HashMap;
use std::sync::Arc;

use llm_do_core::{
    Access, Answer, ApprovalRequest, CallInfo, CallKind, CallOrigin, CallResult, Decision, Digest, Event,
    EventBody, FailureKind, Key, ModelResponse, ModelResult, Payload,
};
use llm_do_testing::SeenEffect;

use crate::random_calls::case::Evidence;
use crate::random_calls::journal::{Acted, What, Whose};
use crate::random_calls::plan::{AgentPlan, CasePlan, RunPlan, Target};

/// One run. A place is the position of an entry in the case: less is earlier.
pub(crate) struct RunView<'a> {
    pub(crate) evidence: &'a Evidence,
    pub(crate) case: &'a CasePlan,
    pub(crate) plan: &'a RunPlan,
    /// Everything that concerns this run, with its place.
    pub(crate) entries: Vec<(usize, &'a What)>,
    /// The recorded events, with their places.
    pub(crate) events: Vec<(usize, &'a Arc<Event>)>,
    /// The calls in the order of their start.
    pub(crate) calls: Vec<CallView>,
    /// Decisions about inner effects.
    pub(crate) inner: Vec<InnerView>,
    /// What the approver was shown, by the id of the request.
    pub(crate) asks: HashMap<Key, Vec<Ask<'a>>>,
    pub(crate) acts: Vec<Act<'a>>,
    /// What models answered, by the key of the request.
    pub(crate) responses: HashMap<Key, Arc<ModelResponse>>,
    /// What the code inside a call stands for.
    standings: HashMap<Key, CancelState<'a>>,
    index: HashMap<Key, usize>,
    /// Whether the store began to refuse, so that the record has an end but no ending.
    pub(crate) record_broke: bool,
}

/// One call, as the record has it.
pub(crate) struct CallView {
    pub(crate) info: Arc<CallInfo>,
    pub(crate) parent: Key,
    pub(crate) name: String,
    pub(crate) kind: CallKind,
    pub(crate) origin: CallOrigin,
    pub(crate) input: Payload,
    pub(crate) started: usize,
    pub(crate) decided: Vec<Decided>,
    pub(crate) executing: Vec<Executing>,
    pub(crate) finished: Vec<(usize, CallResult)>,
}

/// A recorded decision.
pub(crate) struct Decided {
    pub(crate) place: usize,
    pub(crate) seq: u64,
    pub(crate) decision: Arc<Decision>,
}

/// A recorded intent.
pub(crate) struct Executing {
    pub(crate) place: usize,
    pub(crate) seq: u64,
    pub(crate) permit: Digest,
}

/// A decision about an inner effect.
pub(crate) struct InnerView {
    pub(crate) key: Key,
    pub(crate) id: Key,
    pub(crate) outer: Key,
    pub(crate) name: String,
    /// The payload that code put to the gate.
    pub(crate) asked: Option<Payload>,
    pub(crate) decided: Decided,
}

/// A request that the approver was shown, and its answer.
pub(crate) struct Ask<'a> {
    pub(crate) place: usize,
    pub(crate) request: &'a ApprovalRequest,
    pub(crate) answer: Option<(usize, &'a Option<Answer>)>,
}

/// An effect that really happened.
pub(crate) struct Act<'a> {
    pub(crate) place: usize,
    pub(crate) seen: &'a SeenEffect,
    pub(crate) acted: &'a Acted,
}

/// What the code inside a call, or the model of an agent call, may do and is called.
#[derive(Clone)]
pub(crate) struct CancelState<'a> {
    pub(crate) agent: Option<&'a AgentPlan>,
    pub(crate) access: Access,
    pub(crate) depth: u32,
    pub(crate) path: String,
    pub(crate) is_agent: bool,
    /// The agent calls on the path, outermost first.
    pub(crate) agents: Vec<Key>,
    /// The tool whose code it is.
    pub(crate) tool: Option<Target<'a>>,
}

impl<'a> RunView<'a> {
    /// Sorts the evidence of a case by run.
    pub(crate) fn all(evidence: &'a Evidence) -> Vec<Self> {
        evidence.plan.runs().map(|plan| Self::of(evidence, plan)).collect()
    }

    fn of(evidence: &'a Evidence, plan: &'a RunPlan) -> Self {
        let entries = evidence.entries.iter().enumerate();
        let entries: Vec<(usize, &What)> = entries
            .filter(|(_, entry)| entry.run == Whose::Number(plan.number))
            .map(|(place, entry)| (place, &entry.what))
            .collect();
        let events = entries.iter().filter_map(|(place, what)| match what {
            // Grants are revoked between runs, so that is written after the end of one.
            What::Recorded(event) if matches!(event.body, EventBody::GrantRevoked { .. }) => None,
            What::Recorded(event) => Some((*place, event)),
            _ => None,
        });
        let recorded = evidence.entries.iter().filter(|entry| matches!(entry.what, What::Recorded(_)));
        let record_broke = evidence.plan.store_breaks_at.is_some_and(|end| recorded.count() >= end);
        let mut view = Self {
            events: events.collect(),
            asks: asks(&entries),
            acts: acts(evidence, &entries),
            calls: Vec::new(),
            inner: Vec::new(),
            responses: HashMap::new(),
            standings: HashMap::from([(Key::root(), CancelState::outside())]),
            index: HashMap::new(),
            case: &evidence.plan,
            evidence,
            plan,
            entries,
            record_broke,
        };
        for (place, event) in view.events.clone() {
            view.read(place, event);
        }
        view
    }

    fn read(&mut self, place: usize, event: &Event) {
        let seq = event.seq.unwrap_or_default();
        if let EventBody::CallStarted { .. } = &event.body {
            return self.start(place, event);
        }
        if let EventBody::ModelResponse { result: ModelResult::Response(response), .. } = &event.body {
            self.responses.insert(event.key.clone(), response.clone());
        }
        let call = self.index.get(&event.call.id).copied().and_then(|index| self.calls.get_mut(index));
        let Some(call) = call else { return };
        match &event.body {
            EventBody::ApprovalDecided { id, decision, .. } => {
                let decided = Decided { place, seq, decision: decision.clone() };
                if event.key == event.call.id.child("gate") {
                    call.decided.push(decided);
                } else {
                    self.decide_inner(event, id, decided);
                }
            }
            EventBody::CallExecuting { permit, .. } => {
                call.executing.push(Executing { place, seq, permit: *permit });
            }
            EventBody::CallFinished { result, .. } => call.finished.push((place, result.clone())),
            _ => {}
        }
    }

    fn start(&mut self, place: usize, event: &Event) {
        let EventBody::CallStarted { kind, name, input, origin, .. } = &event.body else { return };
        let parent = event.call.parent.clone().unwrap_or_else(Key::root);
        let id = &event.call.id;
        let standing = self.standing(&parent).below(self.case, id, name, *origin);
        self.standings.entry(id.clone()).or_insert(standing);
        self.index.entry(id.clone()).or_insert(self.calls.len());
        self.calls.push(CallView {
            info: event.call.clone(),
            parent,
            name: name.to_string(),
            kind: *kind,
            origin: *origin,
            input: input.clone(),
            started: place,
            decided: Vec::new(),
            executing: Vec::new(),
            finished: Vec::new(),
        });
    }

    /// The key of an inner effect says its name and the digest of what was asked.
    fn decide_inner(&mut self, event: &Event, id: &Key, decided: Decided) {
        let outer = event.call.id.clone();
        let place = event.key.strip_suffix("/gate").unwrap_or_default();
        let is_asked = |name: &str, payload: &Payload| is_key_by_code(place, &outer, name, payload);
        let asked = self.entries.iter().find_map(|(_, what)| match what {
            What::InnerAsked { parent, name, payload, .. } if *parent == outer && is_asked(name, payload) => {
                Some((name.to_string(), payload.clone()))
            }
            _ => None,
        });
        let (name, asked) = asked.unzip();
        let (key, id, name) = (event.key.clone(), id.clone(), name.unwrap_or_default());
        self.inner.push(InnerView { key, id, outer, name, asked, decided });
    }

    pub(crate) fn call(&self, key: &Key) -> Option<&CallView> {
        self.index.get(key).and_then(|index| self.calls.get(*index))
    }

    /// What the code inside a call stands for; of an unknown call, what code outside any stands for.
    pub(crate) fn standing(&self, key: &Key) -> CancelState<'a> {
        self.standings.get(key).cloned().unwrap_or_else(CancelState::outside)
    }

    /// What the name of a call stands for.
    pub(crate) fn target(&self, call: &CallView) -> Option<Target<'a>> {
        let caller = self.standing(&call.parent);
        self.case.resolve(caller.agent, &call.name, call.origin == CallOrigin::Model)
    }

    /// The call that the run was started for.
    pub(crate) fn top(&self) -> Option<&CallView> {
        self.calls.iter().find(|call| call.parent == Key::root())
    }

    /// Returns whether the run was ended before its call was.
    pub(crate) fn was_halted(&self) -> bool {
        self.top().is_none_or(|call| call.finished.is_empty())
    }

    /// Returns a call and its callers, innermost first.
    pub(crate) fn chain<'v>(&'v self, call: &'v CallView) -> impl Iterator<Item = &'v CallView> {
        std::iter::successors(Some(call), |call| self.call(&call.parent))
    }

    /// The number of the last event that was safe before a place.
    pub(crate) fn safe_before(&self, place: usize) -> Option<u64> {
        let safe = self.entries.iter().take_while(|(other, _)| *other < place);
        let numbers = safe.filter_map(|(_, what)| match what {
            What::Safe(seq) => Some(*seq),
            _ => None,
        });
        numbers.max()
    }
}

impl CallView {
    pub(crate) fn key(&self) -> &Key {
        &self.info.id
    }

    /// The kind of the failure that the call ended in.
    pub(crate) fn failure(&self) -> Option<FailureKind> {
        match self.finished.first() {
            Some((_, CallResult::Error(failure))) => Some(failure.kind),
            _ => None,
        }
    }

    pub(crate) fn timed_out(&self) -> bool {
        self.failure() == Some(FailureKind::TimedOut)
    }
}

impl<'a> CancelState<'a> {
    fn outside() -> Self {
        Self {
            agent: None,
            access: Access::Admin,
            depth: 0,
            path: String::new(),
            is_agent: false,
            agents: Vec::new(),
            tool: None,
        }
    }

    /// What the code or model inside a call of this name stands for.
    fn below(&self, case: &'a CasePlan, key: &Key, name: &str, origin: CallOrigin) -> Self {
        let path = match (self.path.is_empty(), self.is_agent) {
            (true, _) => name.to_owned(),
            (false, true) => format!("{} > {name}", self.path),
            (false, false) => format!("{}() > {name}", self.path),
        };
        let target = case.resolve(self.agent, name, origin == CallOrigin::Model);
        let Some(Target::Agent(agent)) = target else {
            let own = if let Some(Target::Tool(tool)) = target { tool.access } else { Access::Admin };
            let access = self.access.min(own);
            return Self { path, access, is_agent: false, tool: target, ..self.clone() };
        };
        let mut agents = self.agents.clone();
        agents.push(key.clone());
        Self {
            agent: Some(agent),
            access: self.access.min(agent.access),
            depth: self.depth + 1,
            path,
            is_agent: true,
            agents,
            tool: None,
        }
    }

    pub(crate) fn agent_name(&self) -> &'a str {
        self.agent.map_or("", |agent| &agent.name)
    }
}

/// Returns whether a key is that of a call or inner effect by code: the caller's key, then the name, at least 12
/// digits of the digest of the input, and the occurrence.
pub(crate) fn is_key_by_code(key: &str, parent: &Key, name: &str, input: &Payload) -> bool {
    let below = key.strip_prefix(parent.as_str()).and_then(|rest| rest.strip_prefix('/'));
    let digits = below.and_then(|rest| rest.strip_prefix(name)).and_then(|rest| rest.strip_prefix('#'));
    let Some((digits, occurrence)) = digits.and_then(|rest| rest.split_once('.')) else { return false };
    let is_number = occurrence.parse::<u32>().is_ok();
    digits.len() >= 12 && input.digest().to_string().starts_with(digits) && is_number
}

fn asks<'a>(entries: &[(usize, &'a What)]) -> HashMap<Key, Vec<Ask<'a>>> {
    let mut asks: HashMap<Key, Vec<Ask<'a>>> = HashMap::new();
    for (place, what) in entries {
        match what {
            What::Shown(request) => {
                let ask = Ask { place: *place, request, answer: None };
                asks.entry(request.id.clone()).or_default().push(ask);
            }
            What::Answered { id, answer } => {
                if let Some(ask) = asks.get_mut(id).and_then(|asks| asks.last_mut()) {
                    ask.answer = Some((*place, answer));
                }
            }
            _ => {}
        }
    }
    asks
}

fn acts<'a>(evidence: &'a Evidence, entries: &[(usize, &'a What)]) -> Vec<Act<'a>> {
    let acts = entries.iter().filter_map(|(place, what)| match what {
        What::Acted { place: effect, acted } => {
            evidence.effects.get(*effect).map(|seen| Act { place: *place, seen, acted })
        }
        _ => None,
    });
    acts.collect()
}
