//! What the model learns of a turn that was ended early: by a person, a limit, a refusal or a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use llm_do_core::{
    Access, AgentSpec, Answer, Approval, ApprovalRequest, Approver, ApproverError, Limits, Message,
    ModelErrorKind, ModelRequest, Output, Part, Role, ToolError,
};
use llm_do_models::{Script, ScriptedReply, asks, asks_all, fails, instructed, replies, says};
use llm_do_runtime::{Canceller, Runtime, Session};
use llm_do_testing::{Chance, FunctionTool, TestProject, deny};
use serde_json::{Value, json};

/// What tools have really done, and the way to cancel the turn in progress.
#[derive(Default)]
struct World {
    effects: Mutex<BTreeSet<u64>>,
    canceller: Mutex<Option<Canceller>>,
}

impl World {
    fn act(&self, input: &Value) {
        self.effects.lock().unwrap().insert(number(input));
    }

    fn cancel(&self) {
        if let Some(canceller) = &*self.canceller.lock().unwrap() {
            canceller.cancel();
        }
    }
}

fn number(input: &Value) -> u64 {
    input["n"].as_u64().unwrap_or_default()
}

/// A tool that does something, and then what the closure says.
fn tool(
    name: &'static str,
    approval: Approval,
    world: &Arc<World>,
    then: impl Fn(&World) -> Then + Send + Sync + 'static,
) -> FunctionTool {
    let (world, then) = (world.clone(), Arc::new(then));
    FunctionTool::new(name, move |input, _| {
        let (world, then) = (world.clone(), then.clone());
        async move {
            world.act(&input);
            match then(&world) {
                Then::Answer => Ok(Output::text("done")),
                Then::Fail => Err(ToolError::new("broken")),
                Then::Hang => std::future::pending().await,
            }
        }
    })
    .define(move |definition| {
        definition.approval = approval;
        definition.access = Access::Write;
    })
}

enum Then {
    Answer,
    Fail,
    Hang,
}

fn tools(project: TestProject, world: &Arc<World>) -> TestProject {
    project
        .tool(tool("write", Approval::PreApproved, world, |_| Then::Answer))
        .tool(
            tool("alone", Approval::PreApproved, world, |_| Then::Answer)
                .define(|tool| tool.sequential = true),
        )
        .tool(tool("fail", Approval::PreApproved, world, |_| Then::Fail))
        .tool(tool("refused", Approval::Ask, world, |_| Then::Answer))
        .tool(tool("interrupt", Approval::PreApproved, world, |world| {
            world.cancel();
            Then::Hang
        }))
}

const TOOLS: [&str; 5] = ["write", "alone", "fail", "refused", "interrupt"];

fn main_agent() -> AgentSpec {
    TOOLS.iter().fold(AgentSpec::new("main", "You are main."), |agent, tool| agent.tool(*tool))
}

/// Denies everything.
struct Denier;

impl Approver for Denier {
    fn decide<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        Box::pin(async { Ok(deny("not now")) })
    }
}

async fn send(session: &mut Session, world: &World, text: &str) -> bool {
    let watch = |canceller| *world.canceller.lock().unwrap() = Some(canceller);
    session.send_watched(text, |run| run, watch).await.is_ok()
}

/// The results of all tool calls of a conversation, by the number that the call was given.
fn results(messages: &[Arc<Message>]) -> BTreeMap<u64, String> {
    let calls = messages.iter().flat_map(|message| message.tool_calls());
    let numbers: BTreeMap<&str, u64> = calls
        .map(|call| {
            let input: Value = serde_json::from_str(&call.arguments).unwrap();
            (call.id.as_str(), number(&input))
        })
        .collect();
    let results = messages.iter().flat_map(|message| message.tool_results());
    results.map(|result| (numbers[result.id.as_str()], result.text.to_string())).collect()
}

fn not_run(result: &str) -> bool {
    result.contains("not run") || result.contains("denied")
}

#[tokio::test]
async fn a_turn_that_a_person_stops_keeps_what_its_calls_did() {
    let world = Arc::new(World::default());
    let runtime = tools(TestProject::new(), &world)
        .agent(main_agent())
        .model_replies([
            asks_all([
                ("write", json!({"n": 1})),
                ("interrupt", json!({"n": 2})),
                ("alone", json!({"n": 3})),
            ]),
            replies(|request| says(texts(request).join("\n"))),
        ])
        .build();
    let mut session = runtime.session("main");
    assert!(!send(&mut session, &world, "first").await);
    assert!(send(&mut session, &world, "second").await);
    let messages = session.messages().await;
    let results = results(&messages);
    assert_eq!(results[&1], "done");
    assert!(results[&2].contains("interrupted while it was running"), "{results:?}");
    assert!(results[&3].contains("not run"), "{results:?}");
    assert_eq!(messages[0].text(), "first");
    assert_eq!(*world.effects.lock().unwrap(), BTreeSet::from([1, 2]));
    let said = messages.last().unwrap().text();
    assert!(said.contains("ended before you answered"), "{said}");
}

fn texts(request: &ModelRequest<'_>) -> Vec<String> {
    request.conversation.messages().iter().map(|message| message.text()).collect()
}

#[tokio::test]
async fn a_turn_that_a_limit_ends_keeps_what_its_calls_did() {
    let world = Arc::new(World::default());
    let again = || asks("refused", json!({"n": 7}));
    let runtime = tools(TestProject::new(), &world)
        .agent(main_agent())
        .model_replies([asks("write", json!({"n": 1})), again(), again(), again(), says("I see.")])
        .runtime(|runtime| runtime.approver(Denier))
        .build();
    let mut session = runtime.session("main");
    assert!(!send(&mut session, &world, "first").await);
    assert!(send(&mut session, &world, "second").await);
    let messages = session.messages().await;
    assert_eq!(messages.iter().flat_map(|message| message.tool_calls()).count(), 4);
    assert_eq!(messages.iter().flat_map(|message| message.tool_results()).count(), 4);
    check_structure(&messages);
}

/// Checks that providers accept a conversation: each call is answered in the next message, once, and nothing else is.
fn check_structure(messages: &[Arc<Message>]) {
    let mut open: Vec<String> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let answered: Vec<String> = message.tool_results().map(|result| result.id.clone()).collect();
        assert_eq!(answered, open, "message {index} of {messages:#?}");
        open = message.tool_calls().map(|call| call.id.clone()).collect();
        let is_empty =
            message.parts.iter().all(|part| matches!(part, Part::Text { text, .. } if text.is_empty()));
        assert!(!is_empty, "message {index} is empty: {messages:#?}");
    }
    assert!(open.is_empty(), "a call without an answer: {messages:#?}");
}

/// A random session over a random script.
struct Play {
    world: Arc<World>,
    chance: Arc<Mutex<Chance>>,
    next: Arc<Mutex<u64>>,
}

impl Play {
    fn new(seed: u64) -> Self {
        Self { world: Arc::default(), chance: Arc::new(Mutex::new(Chance::new(seed))), next: Arc::default() }
    }

    /// What the model says: text, calls, or an error of its provider.
    fn reply(chance: &Mutex<Chance>, next: &Mutex<u64>) -> ScriptedReply {
        let mut chance = chance.lock().unwrap();
        match chance.below(10) {
            0 => fails(ModelErrorKind::Invalid, "refused"),
            1 => fails(ModelErrorKind::Quota, "no money"),
            2..=4 => says("answer"),
            _ => {
                let count = chance.between(1, 4);
                asks_all((0..count).map(|_| {
                    let tool = *chance.one_of(&TOOLS);
                    let mut next = next.lock().unwrap();
                    *next += 1;
                    // A call that is made again, now and then, so that the guard against equal calls takes part.
                    let number = if chance.below(5) == 0 { 1_000 } else { *next };
                    (tool, json!({"n": number}))
                }))
            }
        }
    }

    fn runtime(&self) -> Runtime {
        let (chance, next) = (self.chance.clone(), self.next.clone());
        let model = Script::new([replies(move |request| {
            let messages = request.conversation.messages();
            check_structure(messages);
            assert_eq!(messages.last().unwrap().role, Role::User);
            Self::reply(&chance, &next)
        })
        .when(instructed(""))]);
        let limits = Limits { turns: Some(6), ..Limits::default() };
        tools(TestProject::new(), &self.world)
            .agent(main_agent())
            .model(model)
            .runtime(move |runtime| runtime.approver(Denier).limits(limits))
            .build()
    }

    /// Checks that the conversation says what happened: every effect has a result that does not deny it.
    async fn check(&self, session: &Session, seed: u64) {
        let messages = session.messages().await;
        check_structure(&messages);
        let results = results(&messages);
        for effect in self.world.effects.lock().unwrap().iter().filter(|effect| **effect < 1_000) {
            let result = results.get(effect);
            assert!(
                result.is_some_and(|result| !not_run(result)),
                "seed {seed}, effect {effect}: {result:?}"
            );
        }
        for (number, result) in results.iter().filter(|(number, result)| **number < 1_000 && not_run(result))
        {
            let happened = self.world.effects.lock().unwrap().contains(number);
            assert!(!happened, "seed {seed}: {number} happened, and its result is {result}");
        }
    }
}

/// As many sessions as `LLM_DO_STOPPED_TURNS` says.
#[tokio::test(start_paused = true)]
async fn no_effect_is_missing_from_the_conversation_whatever_ends_a_turn() {
    let sessions = std::env::var("LLM_DO_STOPPED_TURNS").map_or(300, |count| count.parse().unwrap());
    let mut ended_early = 0;
    for seed in 0..sessions {
        let play = Play::new(seed);
        let runtime = play.runtime();
        let mut session = runtime.session("main");
        for turn in 0..6 {
            ended_early += u32::from(!send(&mut session, &play.world, &format!("message {turn}")).await);
            play.check(&session, seed).await;
        }
        session.close().await;
    }
    assert!(ended_early > 0, "no turn was ended early, so nothing was tested");
}
