//! Makes up cases: every choice comes from the seed.

use std::time::Duration;

use llm_do_core::{Access, Approval, ApprovalMode, Effect, Limits};
use llm_do_runtime::{AgentCallOverride, AgentCallPolicy};

use super::{AgentPlan, Cancel, CasePlan, Conduct, ENTRY, Judgment, RunPlan, Temper, ToolPlan, ToolsetPlan};
use crate::random_calls::arguments::{Shape, valid};
use llm_do_testing::Chance;

/// The most calls of a case. Debug builds are slow: there, cases are shorter and as many.
const MAX_CALLS: usize = if cfg!(debug_assertions) { 20 } else { 50 };

const LEVELS: [(u32, Approval); 3] = [(5, Approval::PreApproved), (6, Approval::Ask), (1, Approval::Blocked)];

impl CasePlan {
    /// Makes up a case.
    pub(crate) fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let tools: Vec<ToolPlan> =
            (0..chance.between(3, 6)).map(|number| random_tool(number, None, &mut chance)).collect();
        let toolsets: Vec<ToolsetPlan> =
            (0..chance.below(3)).map(|number| random_toolset(number, &mut chance)).collect();
        let names: Vec<String> = (0..chance.weighted(&[(3, 1), (4, 2), (2, 3), (1, 4)]))
            .map(|number| format!("agent_{number}"))
            .collect();
        let mut agents: Vec<AgentPlan> =
            names.iter().map(|name| random_agent(name, &names, &tools, &toolsets, &mut chance)).collect();
        for agent in &mut agents {
            agent.rules = random_rules(agent, &names, &mut chance);
        }
        let mut plan = Self {
            seed,
            calls: chance.between(1, MAX_CALLS),
            policy: random_policy(&names, &mut chance),
            limits: random_limits(&mut chance, 10),
            approver_limit: chance.percent(10).then(|| Duration::from_millis(2)),
            store_breaks_at: chance.percent(2).then(|| chance.between(1, 80)),
            waves: Vec::new(),
            tools,
            toolsets,
            agents,
        };
        plan.waves = plan.random_waves(&mut chance);
        plan
    }

    fn random_waves(&self, chance: &mut Chance) -> Vec<Vec<RunPlan>> {
        let mut number = 0;
        let mut waves = Vec::new();
        for _ in 0..chance.weighted(&[(5, 1), (3, 2), (2, 3)]) {
            let runs = if chance.percent(15) { 2 } else { 1 };
            waves.push((number..number + runs).map(|number| self.random_run(number, chance)).collect());
            number += runs;
        }
        waves
    }

    fn random_run(&self, number: usize, chance: &mut Chance) -> RunPlan {
        let start = match chance.below(20) {
            0 => chance.one_of(&self.tools).name.clone(),
            1 | 2 => ENTRY.to_owned(),
            3 if chance.percent(30) => "nowhere".to_owned(),
            _ => chance.one_of(&self.agents).name.clone(),
        };
        let shape = match self.resolve(None, &start, false) {
            Some(target) => target.shape(),
            None => Shape::Any,
        };
        let cancel = random_cancel(chance);
        let modes = [(6, ApprovalMode::Prompt), (2, ApprovalMode::ApproveAll), (2, ApprovalMode::RejectAll)];
        RunPlan {
            number,
            input: valid(shape, chance),
            start,
            mode: chance.weighted(&modes),
            approver: random_temper(chance),
            has_token: chance.percent(60),
            limits: random_limits(chance, 15),
            cancel,
            has_subscriber: matches!(cancel, Cancel::AtEvent(_)) || chance.percent(15),
            timeout: chance.percent(1).then(|| Duration::from_millis(chance.between(0, 3) as u64)),
        }
    }
}

const CONDUCTS: [(u32, Conduct); 15] = [
    (6, Conduct::Plain),
    (3, Conduct::Blocking),
    (2, Conduct::Fails),
    (1, Conduct::Panics),
    (1, Conduct::PanicsInBlocking),
    (1, Conduct::Hangs),
    (1, Conduct::Overstays),
    (1, Conduct::Watches),
    (2, Conduct::Chats),
    (4, Conduct::CallsInTurn),
    (3, Conduct::CallsAtOnce),
    (2, Conduct::Drops),
    (3, Conduct::AsksInside),
    (1, Conduct::Leaks),
    (1, Conduct::Cancels),
];

fn random_tool(number: usize, toolset: Option<&str>, chance: &mut Chance) -> ToolPlan {
    let mut conduct = chance.weighted(&CONDUCTS);
    if conduct == Conduct::Cancels && chance.percent(60) {
        conduct = Conduct::Plain;
    }
    let shape = *chance.one_of(&[Shape::Any, Shape::Path, Shape::Path, Shape::Count]);
    let limited = matches!(conduct, Conduct::Hangs | Conduct::Overstays);
    let accesses = [(3, Access::Read), (4, Access::Write), (1, Access::Admin)];
    let effects = [(3, Effect::Once), (1, Effect::Pure), (1, Effect::Idempotent), (1, Effect::Calls)];
    ToolPlan {
        name: match toolset {
            Some(toolset) => format!("{toolset}_{number}"),
            None => format!("tool_{number}"),
        },
        toolset: toolset.map(str::to_owned),
        shape,
        access: chance.weighted(&accesses),
        approval: chance.weighted(&LEVELS),
        effect: chance.weighted(&effects),
        sequential: chance.percent(20),
        time_limit: match chance.percent(2) {
            _ if limited => Some(Duration::from_millis(1)),
            // Long enough for everything but a machine that stands still.
            true => Some(Duration::from_secs(20)),
            false => None,
        },
        needs_token: chance.percent(8),
        judgment: random_judgment(shape, chance),
        conduct,
    }
}

fn random_judgment(shape: Shape, chance: &mut Chance) -> Judgment {
    if chance.percent(40) {
        return Judgment::None;
    }
    match (shape, chance.below(10)) {
        (Shape::Path, 0..=5) => Judgment::ByPath,
        (Shape::Count, 0..=4) => Judgment::ByCommand,
        (_, 6) => Judgment::Panics,
        (_, 7) => Judgment::Changes,
        (_, 8) if chance.percent(70) => Judgment::Protected(chance.weighted(&LEVELS)),
        _ => Judgment::Always(chance.weighted(&LEVELS)),
    }
}

fn random_toolset(number: usize, chance: &mut Chance) -> ToolsetPlan {
    let name = format!("kit_{number}");
    let mut tools: Vec<ToolPlan> =
        (0..chance.between(1, 3)).map(|number| random_tool(number, Some(&name), chance)).collect();
    if chance.percent(40) {
        // Two toolsets may both have a tool of this name.
        tools[0].name = "shared".to_owned();
    }
    ToolsetPlan {
        name,
        tools,
        stateless: chance.percent(20),
        fails_to_open: if chance.percent(20) { 25 } else { 0 },
        panics_on_close: chance.percent(5),
    }
}

fn random_agent(
    name: &str,
    agents: &[String],
    tools: &[ToolPlan],
    toolsets: &[ToolsetPlan],
    chance: &mut Chance,
) -> AgentPlan {
    let mut listed: Vec<&ToolsetPlan> = Vec::new();
    for toolset in toolsets {
        let taken = |name: &str| listed.iter().any(|other| other.tools.iter().any(|tool| tool.name == name));
        if chance.percent(70) && !toolset.tools.iter().any(|tool| taken(&tool.name)) {
            listed.push(toolset);
        }
    }
    let accesses = [(1, Access::Read), (2, Access::Write), (5, Access::Admin)];
    AgentPlan {
        name: name.to_owned(),
        tools: tools.iter().filter(|_| chance.percent(75)).map(|tool| tool.name.clone()).collect(),
        toolsets: listed.iter().map(|toolset| toolset.name.clone()).collect(),
        agents: agents.iter().filter(|_| chance.percent(60)).cloned().collect(),
        rules: Vec::new(),
        access: chance.weighted(&accesses),
        may_call: match chance.below(6) {
            0 => vec![chance.one_of(agents).clone()],
            1 => vec!["agent_{0,1}".to_owned(), "nobody*".to_owned()],
            _ => Vec::new(),
        },
        input: if chance.percent(10) { Shape::Prompt } else { Shape::Task },
        limits: Limits {
            tool_calls: chance.percent(8).then(|| chance.between(0, 6) as u64),
            turns: chance.percent(8).then(|| u32::try_from(chance.between(1, 4)).unwrap_or(1)),
            time: chance.percent(3).then(|| Duration::from_millis(3)),
            ..Limits::default()
        },
    }
}

/// A rule by plain name must name something that the agent can call.
fn random_rules(agent: &AgentPlan, agents: &[String], chance: &mut Chance) -> Vec<(String, Approval)> {
    let mut patterns: Vec<String> = agent.tools.iter().chain(agents).cloned().collect();
    patterns.extend(agent.toolsets.iter().map(|toolset| format!("{toolset}.*")));
    let globs =
        ["tool_*", "tool_{1,3}", "tool_?", "*.shared", "deploy.*", "deploy.push", "kit_?_0", "agent_*", "*"];
    patterns.extend(globs.map(str::to_owned));
    let count = chance.weighted(&[(5, 0), (4, 1), (2, 2), (1, 3)]);
    let levels = [(5, Approval::PreApproved), (3, Approval::Ask), (1, Approval::Blocked)];
    (0..count).map(|_| (chance.one_of(&patterns).clone(), chance.weighted(&levels))).collect()
}

fn random_policy(agents: &[String], chance: &mut Chance) -> AgentCallPolicy {
    let overrides = (0..chance.below(2)).map(|_| AgentCallOverride {
        agent: chance.one_of(agents).as_str().into(),
        calls: chance.percent(50).then(|| chance.percent(50)),
        attachments: chance.percent(50).then(|| chance.percent(50)),
    });
    let overrides = overrides.collect();
    AgentCallPolicy { calls: chance.percent(20), attachments: chance.percent(30), overrides }
}

fn random_limits(chance: &mut Chance, share: u64) -> Limits {
    Limits {
        depth: chance.percent(2 * share).then(|| u32::try_from(chance.between(1, 5)).unwrap_or(1)),
        tool_calls: chance.percent(share).then(|| chance.between(0, 20) as u64),
        turns: chance.percent(share / 3).then(|| u32::try_from(chance.between(1, 4)).unwrap_or(1)),
        ..Limits::default()
    }
}

fn random_temper(chance: &mut Chance) -> Option<Temper> {
    let tempers = [
        (3, Some(Temper::Mixed)),
        (4, Some(Temper::Trusting)),
        (4, Some(Temper::Granting)),
        (3, Some(Temper::Editing)),
        (1, Some(Temper::Denying)),
        (1, Some(Temper::Broken)),
        (3, None),
    ];
    chance.weighted(&tempers)
}

fn random_cancel(chance: &mut Chance) -> Cancel {
    match chance.below(20) {
        0 | 1 => Cancel::AtEvent(chance.below(60) as u64),
        2 => Cancel::Drop(chance.below(200)),
        _ => Cancel::Never,
    }
}
