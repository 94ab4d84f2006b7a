//! Runs a scenario under many schedules.

/// Runs a scenario under as many random schedules as `LLM_DO_SCHEDULES` says (10,000 where it says nothing)
/// and under a quarter as many in which tasks are seldom interrupted, so that some get far ahead of others.
pub fn explore(scenario: fn()) {
    let schedules = schedules();
    shuttle::check_random(scenario, schedules);
    shuttle::check_pct(scenario, schedules.div_ceil(4), INTERRUPTIONS);
}

const INTERRUPTIONS: usize = 3;

fn schedules() -> usize {
    match std::env::var("LLM_DO_SCHEDULES") {
        Ok(text) => text.parse().expect("`LLM_DO_SCHEDULES` is a number"),
        Err(_) => 10_000,
    }
}
