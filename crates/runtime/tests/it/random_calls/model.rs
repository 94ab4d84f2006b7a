//! A model that chooses its calls by chance: from the run, the agent and the length of the conversation.

use std::sync::Arc;

use llm_do_core::{ModelErrorKind, ModelRequest, Name, StopReason};
use llm_do_models::{Script, ScriptedReply, asks_raw, cut, fails, instructed, replies, says, thinks};

use crate::random_calls::arguments::spelled;
use crate::random_calls::journal::{What, Whose};
use crate::random_calls::plan::AgentPlan;
use crate::random_calls::world::RunSeat;
use llm_do_testing::Chance;

/// How every agent's instructions begin.
pub(crate) const YOU_ARE: &str = "You are ";

/// Messages after which a model comes to an end.
const MAX_LEN: usize = 11;

/// The model of one run.
pub(crate) fn model(seat: RunSeat) -> Script {
    let answer = replies(move |request| answer(&seat, request));
    // The condition always holds, so the one reply is given again and again.
    Script::new([answer.when(instructed(YOU_ARE))])
}

fn answer(seat: &RunSeat, request: &ModelRequest<'_>) -> ScriptedReply {
    let world = &seat.world;
    let name = request.instructions.trim_start_matches(YOU_ARE);
    let messages = request.conversation.messages();
    let opening = messages.first().map(|message| message.text()).unwrap_or_default();
    let place = format!("{name} {} {opening}", messages.len());
    let mut chance = seat.chance("model", &place);
    let note = |what| world.journal.note(Whose::Number(seat.number), what);
    match chance.below(300) {
        0 => {
            note(What::ModelFailed { outage: true });
            return fails(ModelErrorKind::Overloaded, "come back later");
        }
        1 => {
            note(What::ModelFailed { outage: true });
            return cut("I was about to");
        }
        2 => {
            note(What::ModelFailed { outage: false });
            return fails(ModelErrorKind::Invalid, "I do not understand");
        }
        3..=5 => return says("Let me think.").stops(StopReason::Pause),
        _ => {}
    }
    let calls = if messages.len() > MAX_LEN { Vec::new() } else { random_calls(seat, name, &mut chance) };
    if calls.is_empty() {
        return says("done");
    }
    let stop = match chance.below(60) {
        0 => Some(StopReason::MaxTokens),
        1 => Some(StopReason::Refusal),
        _ => None,
    };
    note(What::ModelAsked { agent: name.to_owned(), calls: calls.clone() });
    let opening = if chance.percent(20) { thinks("hm").and(says("now")) } else { ScriptedReply::default() };
    let reply = calls.into_iter().fold(opening, |reply, (name, text)| reply.and(asks_raw(name, text)));
    match stop {
        Some(reason) => reply.stops(reason),
        None => reply,
    }
}

fn random_calls(seat: &RunSeat, name: &str, chance: &mut Chance) -> Vec<(Name, Arc<str>)> {
    let world = &seat.world;
    let Some(agent) = world.plan.agent(name) else { return Vec::new() };
    let count = chance.weighted(&[(3, 0), (14, 1), (8, 2), (5, 3), (2, 5)]);
    let mut calls: Vec<(Name, Arc<str>)> = Vec::new();
    for _ in 0..count {
        if world.spend() {
            let again = (!calls.is_empty() && chance.percent(15)).then(|| chance.one_of(&calls).clone());
            calls.push(again.unwrap_or_else(|| random_call(seat, agent, chance)));
        }
    }
    calls
}

/// A random call; often one of the agent's few favorites, so that grants are met again.
fn random_call(seat: &RunSeat, agent: &AgentPlan, chance: &mut Chance) -> (Name, Arc<str>) {
    let number = chance.below(9);
    let mut habit = Chance::at(seat.world.plan.seed, &["favorite", &agent.name, &number.to_string()]);
    let chance = if number < 3 { &mut habit } else { chance };
    let (name, value) = seat.world.random_call(Some(agent), chance);
    let (text, reading) = spelled(&value, chance);
    seat.world.journal.reads_as(&text, reading);
    (name, text.into())
}
