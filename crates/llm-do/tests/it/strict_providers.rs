//! Random conversations with all providers, none of whose requests a provider refuses.
//!
//! Each conversation is made from a seed: an agent with random tools and settings, models of random providers, faults,
//! denied calls, failing tools, attachments, changes of the model. The providers check every request as the real ones
//! do (`llm-do-provider-rules`), so a refusal is a defect of an encoder.
//!
//! `LLM_DO_CONVERSATIONS` sets how many there are, and `LLM_DO_SEED` plays a single one. A failure names its seed and
//! the features that it needs.

mod conversation;
mod plan;
mod stage;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use conversation::Played;
use plan::{Feature, Plan};

const DEFAULT_CONVERSATIONS: u64 = 300;
const THREADS: usize = 8;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|number| number.parse().ok())
}

#[test]
fn no_request_of_a_random_conversation_is_refused() {
    let seeds: Vec<u64> = match number("LLM_DO_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("LLM_DO_CONVERSATIONS").unwrap_or(DEFAULT_CONVERSATIONS)).collect(),
    };
    let played = in_parallel(&seeds, |seed| (*seed, play(&Plan::new(*seed, Feature::ALL.to_vec()))));
    let requests: usize = played.iter().map(|(_, played)| played.requests).sum();
    assert!(requests >= 2 * seeds.len(), "only {requests} requests in {} conversations", seeds.len());
    let mut found: BTreeMap<String, (u64, &'static str)> = BTreeMap::new();
    for (seed, played) in played {
        for (request, refusal) in played.refused {
            let class = format!("{} at {}", refusal.rule, request.provider);
            found.entry(class).or_insert((seed, refusal.rule));
        }
    }
    let found: Vec<(String, (u64, &'static str))> = found.into_iter().collect();
    let reports = in_parallel(&found, |(class, (seed, rule))| report(class, *seed, rule));
    assert!(reports.is_empty(), "{} classes of refusals:\n\n{}", reports.len(), reports.join("\n\n"));
}

/// Applies a function to all items on several threads, since conversations wait more than they compute.
fn in_parallel<T: Sync, R: Send>(items: &[T], apply: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some((index, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
        {
            done.push((index, apply(item)));
        }
        done
    };
    let mut done: Vec<(usize, R)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Plays a conversation in virtual time.
fn play(plan: &Plan) -> Played {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(conversation::play(plan))
}

/// Describes a refusal with no more features than it needs.
fn report(class: &str, seed: u64, rule: &str) -> String {
    let refused_by = |features: &[Feature]| {
        play(&Plan::new(seed, features.to_vec()))
            .refused
            .into_iter()
            .find(|(_, refusal)| refusal.rule == rule)
    };
    let mut features = Feature::ALL.to_vec();
    for feature in Feature::ALL {
        let fewer: Vec<Feature> = features.iter().copied().filter(|other| other != feature).collect();
        if refused_by(&fewer).is_some() {
            features = fewer;
        }
    }
    let Some((request, refusal)) = refused_by(&features) else {
        return format!("{class}: seed {seed}, but not a second time");
    };
    let mut body = request.body.to_string();
    if body.len() > 3_000 {
        let cut = body.char_indices().map(|(index, _)| index).take_while(|index| *index <= 3_000).last();
        body.truncate(cut.unwrap_or_default());
    }
    format!(
        "{class}: seed {seed}, features {features:?}\n  {} {}\n  {refusal}\n  {body}",
        request.path,
        request.as_checked().model()
    )
}
