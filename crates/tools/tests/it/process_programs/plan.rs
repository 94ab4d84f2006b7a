//! What one program is made of: its agents, and its limits.

use llm_do_core::{AgentSpec, DescriptorSettings, Limits, Money, Tuning};
use llm_do_testing::Chance;

/// A result with more characters becomes a descriptor.
pub(crate) const LIMIT: usize = 300;
/// The characters of a page.
pub(crate) const PAGE: usize = 120;
/// The bounds of what agents may tune.
pub(crate) const TEMPERATURE: (f64, f64) = (0.0, 1.0);
pub(crate) const MAX_TOKENS: (u64, u64) = (20, 200);
/// What a token costs.
pub(crate) const PRICE: u64 = 10;

/// The kinds of agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Has everything.
    Full,
    /// Cannot read descriptors, so that it has none.
    Plain,
    /// Reads descriptors, and starts nothing.
    Leaf,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::Full, Kind::Plain, Kind::Leaf];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Plain => "plain",
            Self::Leaf => "leaf",
        }
    }

    pub(crate) fn of(instructions: &str) -> Self {
        KINDS.into_iter().find(|kind| instructions == format!("You are {}.", kind.name())).unwrap()
    }

    pub(crate) fn has_descriptors(self) -> bool {
        self != Self::Plain
    }

    pub(crate) fn is_process(self) -> bool {
        self != Self::Leaf
    }
}

/// One program.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) depth: u32,
    pub(crate) turns: u32,
    /// Tokens of the whole run, and of each call of an agent with everything below it.
    pub(crate) tokens: Option<u64>,
    pub(crate) agent_tokens: Option<u64>,
    /// Whether the limit of the run is one of cost.
    pub(crate) by_cost: bool,
    /// The run is cancelled when its model is asked for this time.
    pub(crate) cancel_at: Option<usize>,
}

impl Plan {
    pub(crate) fn of(seed: u64) -> Self {
        let mut chance = Chance::at(seed, &["plan"]);
        let mut limit = |share: u64, most: usize| {
            let chosen = chance.percent(share);
            let amount = chance.between(4_000, most) as u64;
            chosen.then_some(amount)
        };
        let (tokens, agent_tokens) = (limit(15, 60_000), limit(10, 30_000));
        Self {
            seed,
            tokens,
            agent_tokens,
            by_cost: chance.percent(50),
            depth: chance.between(2, 4) as u32,
            turns: chance.between(3, 9) as u32,
            cancel_at: chance.percent(10).then(|| chance.between(1, 30)),
        }
    }

    /// Returns whether tokens or cost are limited, so that any request may be refused.
    pub(crate) fn has_budget(&self) -> bool {
        self.tokens.or(self.agent_tokens).is_some()
    }

    /// The limits of the run.
    pub(crate) fn limits(&self) -> Limits {
        let tokens = self.tokens.filter(|_| !self.by_cost);
        let cost = self.tokens.filter(|_| self.by_cost).map(|tokens| Money(tokens * PRICE));
        Limits { depth: Some(self.depth), tokens, cost, ..Limits::default() }
    }

    pub(crate) fn agent(&self, kind: Kind) -> AgentSpec {
        let mut spec = AgentSpec::new(kind.name(), format!("You are {}.", kind.name()))
            .tool("look")
            .tool("fail")
            .limits(Limits { turns: Some(self.turns), tokens: self.agent_tokens, ..Limits::default() })
            .descriptors(DescriptorSettings {
                limit: LIMIT as u64,
                page_size: PAGE as u64,
                input_limit: Some(LIMIT as u64),
                ..DescriptorSettings::default()
            })
            .tuning(Tuning {
                temperature: Some(TEMPERATURE),
                max_tokens: Some(MAX_TOKENS),
                models: Vec::new(),
            });
        if kind.has_descriptors() {
            spec = spec.toolset("file_descriptors");
        }
        if kind.is_process() {
            spec = spec.toolset("process");
            spec = KINDS.iter().fold(spec, |spec, kind| spec.program(kind.name(), kind.name(), "A program"));
        }
        spec
    }
}

/// The text that a tool answers with: lines of words that nobody else writes.
pub(crate) fn text(seed: u64, number: u64, size: usize) -> String {
    let mut chance = Chance::at(seed, &["text", &number.to_string()]);
    let mut text = format!("text {number}: ");
    while text.chars().count() < size {
        let word: &&str = chance.one_of(&["alpha ", "βήτα ", "漢字 ", "line\n", "🦀 ", "<b>&amp; "]);
        text.push_str(word);
    }
    text.chars().take(size.max(12)).collect()
}
