//! A random conversation: what the person and the models say, and what goes wrong.

use llm_do::Session;
use llm_do::value::InputPart;
use llm_do_testing::{
    Chance, MockAnswer, OptionalRules, ProviderFault, ProviderRefusal, StrictProvider, StrictRequest,
};
use serde_json::{Value, json};

use crate::strict_providers::plan::{Feature, Plan};
use crate::strict_providers::stage::{self, TOOLS};

/// From this request on models call no tools, so that forks of forks come to an end.
const MAX_REQUESTS_WITH_CALLS: usize = 30;

/// What the providers saw of a conversation.
pub(crate) struct Played {
    /// How many requests there were.
    pub(crate) requests: usize,
    /// Those that were refused.
    pub(crate) refused: Vec<(StrictRequest, ProviderRefusal)>,
}

/// Plays a conversation.
pub(crate) async fn play(plan: &Plan) -> Played {
    let network = network(plan);
    let runtime = stage::runtime(plan, &network);
    let mut session = runtime.session("main");
    for turn in 0..plan.chance("turns").between(2, 5) {
        change(&mut session, plan, turn).await;
        // A turn may fail: its provider was down, its answer did not fit, too many turns were taken.
        drop(session.send(message(plan, turn)).await);
    }
    session.close().await;
    runtime.shutdown().await;
    Played { requests: network.requests().len(), refused: network.refused() }
}

/// Changes the session before a turn.
async fn change(session: &mut Session, plan: &Plan, turn: usize) {
    let chance = |feature: Feature| {
        let chance = Chance::at(plan.seed, &["change", &format!("{feature:?}"), &turn.to_string()]);
        Some(chance).filter(|_| plan.has(feature))
    };
    if chance(Feature::ModelChanges).is_some_and(|mut chance| chance.percent(40)) {
        session.use_model(Some(plan.model(&format!("change {turn}")).into())).await;
    }
    let Some(mut chance) = chance(Feature::SessionChanges) else { return };
    let turns = session.turns().await;
    if chance.percent(15) && !turns.is_empty() {
        let back = chance.one_of(&turns).ordinal;
        session.go_back(back).await.unwrap();
    }
    if chance.percent(15) {
        let fork = session.fork().await;
        std::mem::replace(session, fork).close().await;
    }
}

/// What the person sends.
fn message(plan: &Plan, turn: usize) -> Vec<InputPart> {
    let mut chance = Chance::at(plan.seed, &["message", &turn.to_string()]);
    let is_blank = chance.percent(10) && plan.has(Feature::BlankTexts);
    let mut parts: Vec<InputPart> =
        vec![if is_blank { " ".into() } else { format!("part {turn}").as_str().into() }];
    let (shows, sends) = (chance.percent(20), chance.percent(20));
    if shows && plan.has(Feature::Attachments) {
        parts.push(InputPart::Attachment(stage::image()));
    }
    if sends && plan.has(Feature::Attachments) {
        parts.push(InputPart::Attachment(stage::document()));
    }
    parts
}

/// The providers, whose answers and faults depend on the seed and the number of the request.
fn network(plan: &Plan) -> StrictProvider {
    let (seed, has) =
        (plan.seed, [Feature::BlankTexts, Feature::Faults, Feature::CutConnections].map(|it| plan.has(it)));
    let [blank_texts, faults, cuts] = has;
    let process = [("tune", Feature::Tune), ("goto", Feature::Goto), ("fork", Feature::Fork)];
    let process: Vec<&'static str> = process
        .into_iter()
        .filter(|(_, feature)| plan.feature(*feature, 20).is_some())
        .map(|(name, _)| name)
        .collect();
    let tuned = plan.model("tuned");
    let chance = move |what: &str, index: usize| Chance::at(seed, &[what, &index.to_string()]);
    StrictProvider::all(move |request| {
        let mut chance = chance("answer", request.index);
        answer(request, &mut chance, &process, tuned, blank_texts)
    })
    // Only old servers of Mistral refuse a user's message after a result.
    .optional(OptionalRules { mistral_user_after_tool: false, ..OptionalRules::ALL })
    .faults(move |request| {
        let mut chance = Chance::at(seed, &["fault", &request.index.to_string()]);
        let fault = *chance.one_of(ProviderFault::ALL);
        let is_cut = matches!(fault, ProviderFault::Cut | ProviderFault::Reset);
        (chance.percent(15) && if is_cut { cuts } else { faults }).then_some(fault)
    })
}

fn answer(
    request: &StrictRequest,
    chance: &mut Chance,
    process: &[&'static str],
    tuned: &str,
    blank_texts: bool,
) -> MockAnswer {
    let offered = request.body["tools"].to_string();
    let is_offered = |name: &&&'static str| offered.contains(&format!("\"name\":\"{name}\""));
    let tools: Vec<&'static str> = TOOLS.iter().chain(process).filter(is_offered).copied().collect();
    if chance.percent(45) && !tools.is_empty() && request.index < MAX_REQUESTS_WITH_CALLS {
        let calls = (0..chance.between(1, 3)).map(|_| *chance.one_of(&tools));
        let calls: Vec<&'static str> = calls.collect();
        return MockAnswer::Asks(
            calls.into_iter().map(|name| (name, arguments(name, chance, tuned))).collect(),
        );
    }
    if offered.contains("\"final_answer\"") && chance.percent(70) {
        return MockAnswer::Asks(vec![("final_answer", json!({"n": 1}))]);
    }
    let is_blank = blank_texts && chance.percent(10);
    let text = if is_blank { *chance.one_of(&["", "\n"]) } else { "{\"n\": 1}" };
    match offered.contains("web_search") && chance.percent(50) {
        true => MockAnswer::Searches(text.to_owned()),
        false => MockAnswer::Says(text.to_owned()),
    }
}

fn arguments(name: &str, chance: &mut Chance, tuned: &str) -> Value {
    match name {
        "tune" => match chance.below(3) {
            0 => json!({"temperature": *chance.one_of(&[0.0, 0.7, 1.0, 1.5])}),
            1 => json!({"max_tokens": *chance.one_of(&[1, 2_000, 200_000])}),
            _ => json!({"model": tuned}),
        },
        "goto" => json!({"position": format!("msg_{}", chance.below(4)), "message": "Try again."}),
        "fork" => json!({"prompts": ["part a", "part b"]}),
        "unusual" => json!({}),
        _ => json!({"n": 1}),
    }
}
