//! Scenarios of approvals: grants, revocations and cancellations while requests are open.

use std::future::Future;
use std::sync::Arc;

use llm_do_core::{Answer, Grant, Scope};
use shuttle::future::{JoinHandle, block_on, spawn};
use shuttle::thread;
use tokio::sync::oneshot;

use crate::broker::{Broker, BrokerReply};
use crate::desk::{Case, Desk, Happened, History, RUN, id_of};
use crate::dice::{number, one_in, pause};

/// Several askers, a person who gives grants while others wait, and somebody who looks at the lists.
pub fn grants_release_what_they_cover() {
    let scene = Scene::any();
    let askers: Vec<_> = scene.ids().map(|id| spawn(scene.clone().ask(id, std::future::pending()))).collect();
    let person = scene.clone().person();
    let watcher = thread::spawn({
        let scene = scene.clone();
        move || scene.watch()
    });
    askers.into_iter().for_each(wait_for);
    person.join().expect("the person has answered");
    watcher.join().expect("the watcher has looked");
    scene.check();
    scene.check_grants();
}

/// Grants are revoked while others are given, requests are open and old records are read.
pub fn revoked_grants_answer_nobody() {
    let scene = Scene::any();
    let askers: Vec<_> = scene.ids().map(|id| spawn(scene.clone().ask(id, std::future::pending()))).collect();
    let person = scene.clone().person();
    let revoker = thread::spawn({
        let scene = scene.clone();
        move || scene.revoke_some()
    });
    let reader = thread::spawn({
        let scene = scene.clone();
        move || scene.restore_some()
    });
    askers.into_iter().for_each(wait_for);
    person.join().expect("the person has answered");
    revoker.join().expect("the revoker has revoked");
    reader.join().expect("the records are read");
    scene.check();
}

/// Runs are stopped, and askers dropped, before, during and after the answer.
pub fn stopped_askers_leave_nothing_behind() {
    let scene = Scene::any();
    let (stops, askers): (Vec<_>, Vec<_>) = scene.ids().map(|id| scene.clone().stoppable(id)).unzip();
    let person = scene.clone().person();
    let stopper = thread::spawn({
        let scene = scene.clone();
        let aborts: Vec<_> = askers.iter().map(JoinHandle::abort_handle).collect();
        move || {
            for ((id, stop), abort) in scene.ids().zip(stops).zip(aborts) {
                block_on(pause());
                match number(0..4) {
                    0 => abort.abort(),
                    1 => {}
                    _ => scene.stop(id, stop),
                }
            }
        }
    });
    for origin in askers {
        // Whoever was dropped has no reply.
        let _ = block_on(origin);
    }
    person.join().expect("the person has answered");
    stopper.join().expect("the stopper has stopped");
    scene.check();
    scene.check_stops();
    scene.check_grants();
}

fn wait_for(origin: JoinHandle<()>) {
    block_on(origin).expect("the asker has its reply");
}

/// What the tasks of a scenario share.
struct Scene {
    broker: Broker,
    desk: Arc<Desk>,
    cases: Vec<Case>,
    history: Arc<History>,
}

type Stop = Option<oneshot::Sender<()>>;

impl Scene {
    fn any() -> Arc<Self> {
        let history = Arc::<History>::default();
        let cases = (0..number(2..6)).map(Case::any).collect();
        Arc::new(Self {
            broker: Broker::default(),
            desk: Arc::new(Desk::new(history.clone())),
            cases,
            history,
        })
    }

    fn ids(&self) -> std::ops::Range<usize> {
        0..self.cases.len()
    }

    /// Asks about a case. The asker is expected at the desk from now on, not from the first poll.
    fn ask(self: Arc<Self>, id: usize, stop: impl Future<Output = BrokerReply>) -> impl Future<Output = ()> {
        let expected = self.desk.expect();
        async move {
            let _expected = expected;
            pause().await;
            let (question, request) = (self.cases[id].question(), self.cases[id].request());
            self.history.note(Happened::Started(id));
            let reply = self.broker.ask(question, request, &*self.desk, stop).await;
            self.history.note(Happened::Ended(id, reply));
        }
    }

    /// Starts an asker whose run may be stopped; some are stopped already.
    fn stoppable(self: Arc<Self>, id: usize) -> (Stop, JoinHandle<()>) {
        let (sender, stopped) = oneshot::channel();
        let mut sender = Some(sender);
        if one_in(6) {
            self.stop(id, sender.take());
        }
        let stop = async {
            match stopped.await {
                Ok(()) => BrokerReply::Stopped,
                Err(_never) => std::future::pending().await,
            }
        };
        (sender, spawn(self.ask(id, stop)))
    }

    fn stop(&self, id: usize, stop: Stop) {
        if stop.is_some_and(|stop| stop.send(()).is_ok()) {
            self.history.note(Happened::Stopping(id));
        }
    }

    fn person(self: Arc<Self>) -> thread::JoinHandle<()> {
        thread::spawn(move || self.desk.answer_all(&self.broker, &self.cases))
    }

    /// While nobody revokes, no request is open that an earlier grant covers.
    fn watch(&self) {
        for _ in 0..3 {
            let grants = self.broker.grants();
            for request in self.broker.open_requests() {
                let case = &self.cases[id_of(&request)];
                let covering = grants.iter().find(|(_, grant)| case.is_covered_by(grant));
                assert_eq!(covering, None, "{case:?} is still open:\n{}", self.history);
            }
        }
    }

    fn revoke_some(&self) {
        for _ in 0..4 {
            let grants = self.broker.grants();
            if grants.is_empty() {
                block_on(pause());
                continue;
            }
            let (id, grant) = &grants[number(0..grants.len())];
            self.history.note(Happened::Revoking(grant.clone()));
            assert!(self.broker.revoke(*id).is_some(), "nobody else revokes");
            self.history.note(Happened::Revoked(grant.clone()));
            assert!(self.broker.revoke(*id).is_none(), "it is gone");
            for request in self.broker.open_requests() {
                self.history.note(Happened::Listed(id_of(&request)));
            }
        }
    }

    /// Restores grants that were told of, as a resumed run does: those revoked since stay revoked.
    fn restore_some(&self) {
        for _ in 0..3 {
            block_on(pause());
            let history = self.history.all();
            let told = history.iter().filter_map(|happened| match happened {
                Happened::Ended(_, BrokerReply::Answered(_, grant)) => grant.clone(),
                _ => None,
            });
            for grant in told {
                self.broker.restore(grant, RUN);
            }
        }
    }

    /// Checks every reply against what happened, and that no request is left open.
    fn check(&self) {
        assert_eq!(self.broker.open_requests(), []);
        let history = self.history.all();
        for (end, happened) in history.iter().enumerate() {
            let Happened::Ended(id, reply) = happened else { continue };
            let case = &self.cases[*id];
            let answered = answer_to(*id, &history[..end]);
            let fine = match reply {
                BrokerReply::Granted(scope) => self.may_be_granted(case, scope, end, &history),
                BrokerReply::Answered(answer, grant) => {
                    answered.is_some_and(|(_, given)| given.as_ref() == Some(answer))
                        && *grant == case.grant_of(answer)
                        && (grant.is_some() || !matches!(answer, Answer::Session(_)))
                }
                BrokerReply::Failed(_) => answered.is_some_and(|(_, given)| match given {
                    Some(answer) => matches!(answer, Answer::Session(_)) && case.grant_of(answer).is_none(),
                    None => true,
                }),
                BrokerReply::Stopped => history[..end].contains(&Happened::Stopping(*id)),
            };
            assert!(fine, "wrong reply {reply:?} to {case:?}:\n{}", self.history);
        }
    }

    /// A grant may answer a case if somebody gave it, it was not revoked before the case was put, and the
    /// person had not answered the case before.
    fn may_be_granted(&self, case: &Case, scope: &Scope, end: usize, history: &[Happened]) -> bool {
        let known_open = |happened: &Happened| {
            *happened == Happened::Started(case.id) || *happened == Happened::Listed(case.id)
        };
        let open = history[..end].iter().rposition(known_open).expect("who ends has started");
        let own_answer = answer_to(case.id, &history[..end]).map_or(end, |(place, _)| place);
        self.gifts(&history[..own_answer])
            .filter(|gift| gift.grant.scope == *scope && case.is_covered_by(&gift.grant))
            .any(|gift| !gift.is_revoked(history, open))
    }

    /// Answers that give a grant, once their askers see them.
    fn gifts<'a>(&'a self, history: &'a [Happened]) -> impl Iterator<Item = Gift> + 'a {
        history.iter().filter_map(|happened| {
            let Happened::Answered(giver, Some(answer)) = happened else { return None };
            Some(Gift { giver: *giver, grant: self.cases[*giver].grant_of(answer)? })
        })
    }

    /// Checks that there are exactly the grants that replies tell of, each once. Nobody may have revoked.
    fn check_grants(&self) {
        let history = self.history.all();
        let mut listed: Vec<Grant> = self.broker.grants().into_iter().map(|(_, grant)| grant).collect();
        for happened in &history {
            let Happened::Ended(_, BrokerReply::Answered(_, Some(grant))) = happened else { continue };
            assert!(self.broker.grants().iter().any(|(_, listed)| listed == grant), "{grant:?} is lost");
            listed.retain(|other| other != grant);
        }
        assert_eq!(listed, [], "nobody was told of these:\n{}", self.history);
        let grants = self.broker.grants();
        for (place, (_, grant)) in grants.iter().enumerate() {
            assert!(grants[..place].iter().all(|(_, other)| other != grant), "{grant:?} is listed twice");
        }
    }

    /// Checks that who was stopped before asking is never put to the approver.
    fn check_stops(&self) {
        let history = self.history.all();
        for id in self.ids() {
            let place = |wanted: &Happened| history.iter().position(|happened| happened == wanted);
            let stopped = place(&Happened::Stopping(id));
            if stopped.is_some() && stopped < place(&Happened::Started(id)) {
                assert_eq!(place(&Happened::Asked(id)), None, "asked after the stop:\n{}", self.history);
            }
        }
    }
}

fn answer_to(id: usize, history: &[Happened]) -> Option<(usize, &Option<Answer>)> {
    history.iter().enumerate().find_map(|(place, happened)| match happened {
        Happened::Answered(other, answer) if *other == id => Some((place, answer)),
        _ => None,
    })
}

/// A grant that the person gave with the answer to a case.
struct Gift {
    giver: usize,
    grant: Grant,
}

impl Gift {
    /// Returns whether the grant was certainly gone at a place in the history: it was there when its giver had
    /// the reply, then somebody began to revoke it and had done so. Equal grants are listed once, so it does
    /// not matter who else gave it.
    fn is_revoked(&self, history: &[Happened], before: usize) -> bool {
        let told = |happened: &Happened| matches!(happened, Happened::Ended(id, _) if *id == self.giver);
        let revoking = Happened::Revoking(self.grant.clone());
        let revoked = Happened::Revoked(self.grant.clone());
        let Some(told) = history[..before].iter().position(told) else { return false };
        let Some(began) = history[told..before].iter().position(|happened| *happened == revoking) else {
            return false;
        };
        history[told + began..before].contains(&revoked)
    }
}
