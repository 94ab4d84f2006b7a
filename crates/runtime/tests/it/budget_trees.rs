//! Budgets through the whole runtime: random trees of agents with limits, calling each other in parallel.
//!
//! The model of these tests counts for itself what it was asked, so the runtime's own books are not the
//! measure of the runtime. Calls are told apart by their input, a path such as `r.0_1.1_0`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::join_all;
use llm_do_core::{
    AgentSpec, Event, EventBody, Key, Limits, ModelProfile, ModelRequest, ModelResult, Status,
};
use llm_do_models::{Script, ScriptedReply, asks_all, instructed, replies, says};
use llm_do_testing::{Chance, TestProject, TestRun};
use serde_json::json;

/// A project of agents that call each other, and what its model saw.
struct Tree {
    seed: u64,
    run_limit: Option<u64>,
    agents: Vec<Agent>,
    overruns: bool,
    asked: Mutex<Vec<Asked>>,
}

struct Agent {
    limit: Option<u64>,
    children: Vec<usize>,
}

/// One request that the model was sent.
struct Asked {
    path: String,
    agent: usize,
    tokens: u64,
}

impl Tree {
    fn any(seed: u64, overruns: bool) -> Arc<Self> {
        let mut chance = Chance::new(seed);
        let count = 2 + chance.below(4);
        let agents = (0..count)
            .map(|agent| Agent {
                limit: (chance.below_u64(2) == 0).then(|| 900 + chance.below_u64(8_000)),
                children: (agent + 1..count).filter(|_| chance.below_u64(3) > 0).take(3).collect(),
            })
            .collect();
        let run_limit = (chance.below_u64(3) > 0).then(|| 2_000 + chance.below_u64(40_000));
        Arc::new(Self { seed, run_limit, agents, overruns, asked: Mutex::default() })
    }

    /// Runs the first agent to its end, or fails if nothing moves any more.
    async fn run(self: &Arc<Self>) -> TestRun {
        let mut project = TestProject::new();
        for (agent, Agent { limit, children }) in self.agents.iter().enumerate() {
            let limits = Limits { tokens: *limit, ..Limits::default() };
            let spec = AgentSpec::new(format!("a{agent}"), format!("You are {agent}")).limits(limits);
            let spec = children.iter().fold(spec, |spec, child| spec.toolset(format!("a{child}")));
            project = project.agent(spec);
        }
        let limits = Limits { tokens: self.run_limit, ..Limits::default() };
        let tree = self.clone();
        let script = Script::new([replies(move |request| tree.reply(request)).when(instructed("You are"))]);
        // A model that reserves little leaves room for others, one that reserves much lets them wait.
        let default_max_output = if self.seed.is_multiple_of(2) { 600 } else { 8_192 };
        let run = project
            .model(script.with_profile(ModelProfile { default_max_output, ..ModelProfile::default() }))
            .runtime(move |runtime| runtime.limits(limits))
            .run("r");
        let run = tokio::time::timeout(Duration::from_secs(60), run).await;
        run.unwrap_or_else(|_| panic!("the run of tree {} got stuck", self.seed))
    }

    /// Calls all children in the first turns, then answers.
    fn reply(&self, request: &ModelRequest<'_>) -> ScriptedReply {
        let agent: usize = request.instructions.trim_start_matches("You are ").parse().unwrap();
        let messages = request.conversation.messages();
        let path = messages[0].text().to_string();
        let turn = messages.len() / 2;
        let mut chance = Chance::at(self.seed, &[&path, &turn.to_string()]);
        let children = &self.agents[agent].children;
        let reply = if turn as u64 <= chance.below_u64(2) && !children.is_empty() {
            let call =
                |(place, child)| (format!("a{child}"), json!({"input": format!("{path}.{turn}_{place}")}));
            asks_all(children.iter().enumerate().map(call))
        } else {
            says("done")
        };
        let (input, output) = self.usage(agent, &path, request, &mut chance);
        reply.tokens(input, output).after(Duration::from_millis(chance.below_u64(5)))
    }

    /// Uses anything up to what was reserved, or now and then more output than was permitted.
    fn usage(&self, agent: usize, path: &str, request: &ModelRequest<'_>, chance: &mut Chance) -> (u64, u64) {
        let mut asked = self.asked.lock().unwrap();
        let before = asked.iter().rfind(|asked| asked.path == path).map_or(0, |asked| asked.tokens);
        let input = before.saturating_add(chance.below_u64(10));
        let most = request.max_output.unwrap_or(500);
        let output = match chance.below_u64(16) {
            0..=2 if self.overruns => most + OVERRUN,
            // Together with the input more than fits into a number.
            3 if self.overruns => u64::MAX,
            _ => 1 + chance.below_u64(most.min(1_500)),
        };
        asked.push(Asked { path: path.to_owned(), agent, tokens: input.saturating_add(output) });
        (input, output)
    }

    /// Checks every subtree against the limit of the agent at its top, and the whole against the run's.
    fn check_usage(&self, run: &TestRun) {
        let asked = self.asked.lock().unwrap();
        let below = |path: &str| -> u64 {
            let within = |asked: &&Asked| asked.path == path || asked.path.starts_with(&format!("{path}."));
            asked.iter().filter(within).map(|asked| asked.tokens).sum()
        };
        for Asked { path, agent, .. } in &*asked {
            let limit = self.agents[*agent].limit.unwrap_or(u64::MAX);
            assert!(below(path) <= limit, "{path} used {} of {limit}, {}", below(path), self.name(run));
        }
        let (used, reported) = (below("r"), run.report().usage.total().tokens());
        assert!(used <= self.run_limit.unwrap_or(u64::MAX), "used {used}, {}", self.name(run));
        assert!(reported <= used, "reported {reported} of {used}, {}", self.name(run));
        for call in run.report().trace().iter() {
            let agent: usize = call.name.trim_start_matches('a').parse().unwrap();
            let limit = self.agents[agent].limit.unwrap_or(u64::MAX);
            assert!(call.usage.tokens() <= limit, "{call:?}, {}", self.name(run));
        }
        if run.status() == Status::Done {
            assert_eq!(reported, used, "{}", self.name(run));
        }
    }

    /// Checks that a limit is exceeded by nothing but responses that used more than they were permitted.
    fn check_overruns(&self, run: &TestRun) {
        assert!(
            matches!(run.status(), Status::Done | Status::Limit),
            "{:?}, {}",
            run.status(),
            self.name(run)
        );
        let events = run.events();
        let calls = Calls::of(&events);
        let mut permitted: HashMap<Key, u64> = HashMap::new();
        let mut expected: HashMap<Key, u64> = HashMap::new();
        for event in &events {
            match &event.body {
                EventBody::ModelRequest { max_output, .. } => {
                    permitted.insert(event.call.id.clone(), max_output.unwrap_or(u64::MAX));
                }
                EventBody::ModelResponse { result: ModelResult::Response(response), .. }
                    if response.usage.output <= permitted[&event.call.id] =>
                {
                    for key in calls.path(&event.call.id) {
                        let used: &mut u64 = expected.entry(key).or_default();
                        *used = used.saturating_add(response.usage.tokens());
                    }
                }
                _ => {}
            }
        }
        for (key, used) in expected {
            let limit = self.limit_of(&key, &calls).unwrap_or(u64::MAX);
            assert!(used <= limit, "{key} used {used} of {limit}, {}", self.name(run));
        }
    }

    /// Names the tree for whoever must find out what went wrong in it.
    fn name(&self, run: &TestRun) -> String {
        format!("tree {}, limit {:?}:\n{}", self.seed, self.run_limit, run.report().trace())
    }

    fn limit_of(&self, key: &Key, calls: &Calls) -> Option<u64> {
        match calls.agents.get(key) {
            Some(agent) => self.agents[*agent].limit,
            None => self.run_limit,
        }
    }
}

/// More than the bound of a request's input exceeds its real input.
const OVERRUN: u64 = 3_000;

/// Who called whom.
#[derive(Default)]
struct Calls {
    parents: HashMap<Key, Key>,
    agents: HashMap<Key, usize>,
}

impl Calls {
    fn of(events: &[Arc<Event>]) -> Self {
        let mut calls = Self::default();
        for event in events {
            let EventBody::CallStarted { name, .. } = &event.body else { continue };
            calls.agents.insert(event.call.id.clone(), name.trim_start_matches('a').parse().unwrap());
            calls.parents.extend(event.call.parent.clone().map(|parent| (event.call.id.clone(), parent)));
        }
        calls
    }

    /// A call and its callers up to the run itself.
    fn path(&self, key: &Key) -> Vec<Key> {
        std::iter::successors(Some(key.clone()), |key| self.parents.get(key).cloned()).collect()
    }
}

/// One in fifty of as many trees as `LLM_DO_BUDGET_TREES` says.
fn trees(overruns: bool) -> impl Iterator<Item = Arc<Tree>> {
    let trees = std::env::var("LLM_DO_BUDGET_TREES").map_or(10_000, |trees| trees.parse().unwrap());
    (0..u64::div_ceil(trees, 50)).map(move |seed| Tree::any(seed, overruns))
}

/// An executor whose clock jumps to the next event, so that replies take time without taking any.
fn in_virtual_time<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

#[test]
fn no_subtree_of_a_run_uses_more_than_its_limit() {
    for tree in trees(false) {
        tree.check_usage(&in_virtual_time(tree.run()));
    }
}

#[test]
fn no_subtree_of_a_run_on_several_threads_uses_more_than_its_limit() {
    let trees: Vec<_> = trees(false).collect();
    let executor =
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_time().build().unwrap();
    let runs = executor.block_on(join_all(trees.iter().map(Tree::run)));
    for (tree, run) in trees.iter().zip(&runs) {
        tree.check_usage(run);
    }
}

#[test]
fn a_limit_is_exceeded_only_by_responses_that_use_more_than_they_may() {
    for tree in trees(true) {
        tree.check_overruns(&in_virtual_time(tree.run()));
    }
}
