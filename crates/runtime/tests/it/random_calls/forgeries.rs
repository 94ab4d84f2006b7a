//! Shows that the oracle can fail: forged evidence must be complained about, every time.

use std::sync::Arc;

use llm_do_core::{
    Answer, ApprovalMode, CallResult, Decision, Event, EventBody, Failure, FailureKind, Payload, Permit,
};
use serde_json::json;

use crate::random_calls::case::{Evidence, run_case};
use crate::random_calls::journal::What;
use crate::random_calls::oracle::check;

/// Changes evidence so that it shows a broken guarantee; nothing where there is nothing to change.
type Forge = fn(&mut Evidence) -> Option<()>;

const FORGERIES: [(&str, Forge); 17] = [
    ("an effect of nobody", effect_of_nobody),
    ("an effect with other arguments", other_arguments),
    ("an effect that the recorder saw otherwise", other_recording),
    ("an effect that happened twice", twice),
    ("an effect before its permit was safe", too_early),
    ("an effect that was refused", refused),
    ("a permit for other arguments", other_permit),
    ("another call shown than the one that ran", other_shown),
    ("a denial that was allowed", denied),
    ("an answer that nobody gave", unanswered),
    ("a call that nobody asked for", unasked_for),
    ("a call without an end", endless),
    ("a gap in the numbers", gap),
    ("another path", other_path),
    ("an instance that stays open", unclosed),
    ("a run that rejects all and asks", rejecting),
    ("a tool that was blocked", blocked),
];

#[test]
fn the_oracle_complains_about_every_forgery() {
    crate::random_calls::keep_planned_panics_quiet();
    let executor = tokio::runtime::Builder::new_multi_thread().enable_time().build().unwrap();
    let mut applied = [0; FORGERIES.len()];
    for seed in 0..80 {
        let evidence = executor.block_on(async { tokio::spawn(run_case(seed)).await.unwrap().unwrap() });
        if evidence.plan.store_breaks_at.is_some() {
            continue;
        }
        assert_eq!(check(&evidence).0, [""; 0], "seed {seed}");
        for ((name, forge), applied) in FORGERIES.iter().zip(&mut applied) {
            let mut forged = evidence.clone();
            if forge(&mut forged).is_some() {
                *applied += 1;
                assert!(!check(&forged).0.is_empty(), "{name} went unnoticed in seed {seed}");
            }
        }
    }
    for ((name, _), applied) in FORGERIES.iter().zip(applied) {
        assert!(applied >= 3, "{name} could be tried only {applied} times");
    }
}

/// The place of the first entry of a kind.
fn find(evidence: &Evidence, wanted: fn(&What) -> bool) -> Option<usize> {
    evidence.entries.iter().position(|entry| wanted(&entry.what))
}

fn is_own_effect(what: &What) -> bool {
    matches!(what, What::Acted { acted, .. } if !acted.inner)
}

fn event_at(evidence: &Evidence, place: usize) -> Option<Event> {
    match &evidence.entries[place].what {
        What::Recorded(event) => Some(Event::clone(event)),
        _ => None,
    }
}

/// Changes the first recorded event that the change applies to.
fn change_event(evidence: &mut Evidence, change: impl Fn(&mut Event) -> Option<()>) -> Option<usize> {
    for place in 0..evidence.entries.len() {
        let Some(mut event) = event_at(evidence, place) else { continue };
        if change(&mut event).is_some() {
            evidence.entries[place].what = What::Recorded(Arc::new(event));
            return Some(place);
        }
    }
    None
}

fn effect_of_nobody(evidence: &mut Evidence) -> Option<()> {
    let mut entry = evidence.entries[find(evidence, is_own_effect)?].clone();
    let What::Acted { place, .. } = &mut entry.what else { return None };
    let mut seen = evidence.effects[*place].clone();
    seen.key = "1/t9/tool/9".into();
    *place = evidence.effects.len();
    evidence.effects.push(seen);
    let end = find(evidence, |what| matches!(what, What::ShutDown))?;
    evidence.entries.insert(end, entry);
    Some(())
}

fn other_arguments(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, is_own_effect)?;
    let What::Acted { place, acted } = &mut evidence.entries[place].what else { return None };
    acted.received = Payload::new(json!({"path": "elsewhere"}));
    evidence.effects[*place].arguments = acted.received.value().clone();
    Some(())
}

fn other_recording(evidence: &mut Evidence) -> Option<()> {
    evidence.effects.first_mut()?.arguments = json!({"path": "elsewhere"});
    Some(())
}

fn twice(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, is_own_effect)?;
    let entry = evidence.entries[place].clone();
    evidence.entries.insert(place, entry);
    Some(())
}

/// Moves the effect to where its call has been allowed and its intent is not yet written.
fn too_early(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, is_own_effect)?;
    let entry = evidence.entries.remove(place);
    let What::Acted { place: effect, .. } = &entry.what else { return None };
    let key = evidence.effects[*effect].key.clone();
    let begun = evidence.entries.iter().position(|other| {
        let What::Recorded(event) = &other.what else { return false };
        matches!(event.body, EventBody::CallExecuting { .. })
            && event.call.id == key
            && other.run == entry.run
    })?;
    evidence.entries.insert(begun + 1, entry);
    Some(())
}

/// Changes the decision about the first call that acted.
fn change_permit(evidence: &mut Evidence, change: impl Fn(&Permit) -> Decision) -> Option<()> {
    let place = find(evidence, is_own_effect)?;
    let run = evidence.entries[place].run;
    let What::Acted { place: effect, .. } = &evidence.entries[place].what else { return None };
    let key = evidence.effects[*effect].key.clone();
    let numbers: Vec<usize> =
        (0..evidence.entries.len()).filter(|place| evidence.entries[*place].run == run).collect();
    for place in numbers {
        let Some(mut event) = event_at(evidence, place) else { continue };
        let EventBody::ApprovalDecided { id, decision, .. } = &mut event.body else { continue };
        if *id != key {
            continue;
        }
        let Decision::Allow(permit) = &**decision else { return None };
        *decision = Arc::new(change(permit));
        evidence.entries[place].what = What::Recorded(Arc::new(event));
        return Some(());
    }
    None
}

fn refused(evidence: &mut Evidence) -> Option<()> {
    change_permit(evidence, |_| Decision::Refuse(Failure::new(FailureKind::Denied, "denied")))
}

fn other_permit(evidence: &mut Evidence) -> Option<()> {
    change_permit(evidence, |permit| {
        let arguments = Payload::new(json!({"path": "elsewhere"}));
        let digest = arguments.digest();
        Decision::Allow(Arc::new(Permit { arguments, digest, ..permit.clone() }))
    })
}

fn other_shown(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, |what| matches!(what, What::Shown(_)))?;
    let What::Shown(request) = &mut evidence.entries[place].what else { return None };
    request.arguments = Payload::new(json!({"path": "elsewhere"}));
    // Where the question was never decided, nothing can tell what it was about.
    let id = request.id.clone();
    decides(evidence, place, &id)
}

fn decides(evidence: &Evidence, asked: usize, id: &llm_do_core::Key) -> Option<()> {
    let run = evidence.entries[asked].run;
    let mut later = evidence.entries[asked..].iter().filter(|entry| entry.run == run);
    let decided = later.any(|entry| match &entry.what {
        What::Recorded(event) => {
            matches!(&event.body, EventBody::ApprovalDecided { id: other, .. } if other == id)
        }
        _ => false,
    });
    decided.then_some(())
}

/// Turns an allowing answer into a denial.
fn denied(evidence: &mut Evidence) -> Option<()> {
    let allows = |what: &What| {
        matches!(
            what,
            What::Answered { answer: Some(Answer::Once | Answer::Session(llm_do_core::Scope::Exact)), .. }
        )
    };
    let place = find(evidence, allows)?;
    let What::Answered { id, answer } = &mut evidence.entries[place].what else { return None };
    *answer = Some(Answer::Deny("no".to_owned()));
    let id = id.clone();
    decides(evidence, place, &id)?;
    allowed_after(evidence, place, &id)
}

fn allowed_after(evidence: &Evidence, asked: usize, id: &llm_do_core::Key) -> Option<()> {
    let run = evidence.entries[asked].run;
    let decision = evidence.entries[asked..].iter().filter(|entry| entry.run == run).find_map(|entry| {
        let What::Recorded(event) = &entry.what else { return None };
        match &event.body {
            EventBody::ApprovalDecided { id: other, decision, .. } if other == id => Some(decision.clone()),
            _ => None,
        }
    })?;
    matches!(&*decision, Decision::Allow(_)).then_some(())
}

/// Takes away the question behind an answer that allowed.
fn unanswered(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, |what| matches!(what, What::Answered { answer: Some(Answer::Once), .. }))?;
    let What::Answered { id, .. } = &evidence.entries[place].what else { return None };
    let id = id.clone();
    allowed_after(evidence, place, &id)?;
    evidence.entries.remove(place);
    Some(())
}

/// Makes the record say that code or a model asked for something else.
fn unasked_for(evidence: &mut Evidence) -> Option<()> {
    change_event(evidence, |event| {
        let EventBody::CallStarted { name, origin, .. } = &mut event.body else { return None };
        *name = "agent_0_of_nobody".into();
        (*origin != llm_do_core::CallOrigin::Embedder).then_some(())
    })
    .map(drop)
}

/// Takes away the end of a call that the model of the top agent made, in a run that was not ended early.
fn endless(evidence: &mut Evidence) -> Option<()> {
    let answered = evidence.entries.iter().find_map(|entry| match &entry.what {
        What::Recorded(event) => {
            let output = matches!(&event.body, EventBody::CallFinished { result: CallResult::Output(_), .. });
            (output && event.key == "1").then_some(event.call.run)
        }
        _ => None,
    })?;
    change_event(evidence, |event| {
        let is_end = matches!(event.body, EventBody::CallFinished { .. });
        let is_by_model = event.key.starts_with("1/t") && event.key.matches('/').count() == 3;
        event.body = EventBody::Notice { text: "lost".to_owned() };
        (is_end && is_by_model && event.call.run == answered).then_some(())
    })
    .map(drop)
}

fn gap(evidence: &mut Evidence) -> Option<()> {
    change_event(evidence, |event| {
        let number = event.seq.filter(|number| *number == 4)?;
        event.seq = Some(number + 1);
        Some(())
    })
    .map(drop)
}

fn other_path(evidence: &mut Evidence) -> Option<()> {
    change_event(evidence, |event| {
        event.call.parent.as_ref()?;
        let mut info = llm_do_core::CallInfo::clone(&event.call);
        info.path = "somewhere > else".into();
        event.call = Arc::new(info);
        Some(())
    })
    .map(drop)
}

fn unclosed(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, |what| matches!(what, What::Closed { .. }))?;
    evidence.entries.remove(place);
    Some(())
}

/// Says that a run which asked and was answered had to reject everything that must ask.
fn rejecting(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, |what| matches!(what, What::Shown(_)))?;
    let run = evidence.entries[place].run;
    let What::Shown(request) = &evidence.entries[place].what else { return None };
    decides(evidence, place, &request.id)?;
    let crate::random_calls::journal::Whose::Number(number) = run else { return None };
    let plan = evidence.plan.waves.iter_mut().flatten().find(|plan| plan.number == number)?;
    plan.mode = ApprovalMode::RejectAll;
    Some(())
}

/// Says that the first tool that acted was blocked by its definition.
fn blocked(evidence: &mut Evidence) -> Option<()> {
    let place = find(evidence, is_own_effect)?;
    let What::Acted { place, .. } = &evidence.entries[place].what else { return None };
    let name = evidence.effects[*place].name.clone();
    let plan = &mut evidence.plan;
    let mut tools = plan.tools.iter_mut().chain(plan.toolsets.iter_mut().flat_map(|set| &mut set.tools));
    tools.find(|tool| tool.name == name)?.approval = llm_do_core::Approval::Blocked;
    Some(())
}
