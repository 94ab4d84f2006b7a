//! How much of a model's context window a conversation takes, and what that leaves for the answer.

use std::sync::{Arc, Mutex};

use llm_do_core::{AgentSpec, ContextUse, Event, EventBody, ModelProfile, ModelRequest, Usage};
use llm_do_models::{Script, instructed, replies, says};
use llm_do_runtime::RunReport;
use llm_do_testing::TestProject;

/// A model that reports so many tokens of input for each request, with the output tokens that it was asked for.
fn counting(
    window: Option<u64>,
    default_max_output: u64,
    reported: u64,
) -> (Script, Arc<Mutex<Vec<Option<u64>>>>) {
    let asked: Arc<Mutex<Vec<Option<u64>>>> = Arc::default();
    let seen = asked.clone();
    let reply = move |request: &ModelRequest<'_>| {
        seen.lock().unwrap().push(request.max_output);
        says("yes").using(Usage { requests: 1, input: reported, output: 10, ..Usage::default() })
    };
    let profile = ModelProfile { context_window: window, default_max_output, ..ModelProfile::default() };
    (Script::new([replies(reply).when(instructed(""))]).with_profile(profile), asked)
}

fn contexts(report: &RunReport) -> Vec<Option<ContextUse>> {
    let context = |event: &Arc<Event>| match &event.body {
        EventBody::ModelRequest { context, .. } => Some(*context),
        _ => None,
    };
    report.events().iter().filter_map(context).collect()
}

#[tokio::test]
async fn a_request_says_how_full_the_window_is_and_what_was_reported_counts() {
    let (model, _) = counting(Some(10_000), 100, 4_000);
    let runtime = TestProject::new().agent(AgentSpec::new("main", "x")).model(model).build();
    let mut session = runtime.session("main");
    let first = contexts(&session.send("hello").await.unwrap())[0].unwrap();
    assert!((20..200).contains(&first.used) && first.window == 10_000, "an estimate: {first:?}");
    let second = contexts(&session.send("hello").await.unwrap())[0].unwrap();
    assert!((4_010..4_200).contains(&second.used), "{second:?}");

    let (model, _) = counting(None, 100, 4_000);
    let unknown = TestProject::new().agent(AgentSpec::new("main", "x")).model(model).run("hello").await;
    assert_eq!(contexts(unknown.report()), [None]);
}

#[tokio::test]
async fn an_answer_is_asked_for_that_fits_beside_the_request() {
    for (wanted, default, reported, expected) in [
        // Nobody says how many, and what is usual fits.
        (None, 1_000, 4_000, None..=None),
        // It does not.
        (None, 8_000, 4_000, Some(5_700)..=Some(5_930)),
        (Some(500), 8_000, 4_000, Some(500)..=Some(500)),
        (Some(6_500), 1_000, 4_000, Some(5_700)..=Some(5_930)),
        (Some(6_500), 1_000, 9_950, Some(256)..=Some(256)),
        // The request itself does not fit: the provider says so.
        (Some(6_500), 1_000, 11_000, Some(6_500)..=Some(6_500)),
        (None, 1_000, 11_000, None..=None),
    ] {
        let (model, asked) = counting(Some(10_000), default, reported);
        let mut main = AgentSpec::new("main", "x");
        main.settings.max_tokens = wanted;
        let runtime = TestProject::new().agent(main).model(model).build();
        let mut session = runtime.session("main");
        session.send("hello").await.unwrap();
        session.send("hello").await.unwrap();
        // Before the model has reported anything, nothing is limited.
        assert_eq!(asked.lock().unwrap()[0], wanted);
        let second = asked.lock().unwrap()[1];
        assert!(expected.contains(&second), "{wanted:?} {default} {reported}: {second:?}");
    }
}
