//! The tools of a case: each notes its effect outside the runtime in the moment in which it acts.

use std::sync::Arc;
use std::time::Duration;

use futures::future::{BoxFuture, join_all, pending};
use llm_do_core::{
    Approval, Approved, Assessment, CallContext, NeedSpec, Opening, Output, Payload, Schema, Tool,
    ToolDefinition, ToolError, ToolReply, Toolset, ToolsetInstance,
};
use serde_json::{Value, json};

use crate::random_calls::journal::{Acted, What, Whose};
use crate::random_calls::plan::{Conduct, Judgment, ToolPlan, ToolsetPlan, inner_payload};
use crate::random_calls::world::{RunSeat, World, answer_of, give_way};
use llm_do_testing::Chance;

/// The words of every panic that a plan asks for.
pub(crate) const PLANNED_PANIC: &str = "a panic that the plan asks for";

/// A tool that follows its plan.
pub(crate) struct PlannedTool {
    definition: Arc<ToolDefinition>,
    plan: ToolPlan,
    world: Arc<World>,
    instance: Option<usize>,
}

/// Makes the definition that a plan asks for.
pub(crate) fn definition(plan: &ToolPlan) -> Arc<ToolDefinition> {
    let schema = plan.shape.schema().unwrap_or_else(Schema::empty);
    let mut definition = ToolDefinition::new(plan.name.as_str(), format!("Does {:?}", plan.conduct), schema);
    definition.toolset = plan.toolset.as_deref().map(Into::into);
    definition.access = plan.access;
    definition.approval = plan.approval;
    definition.effect = plan.effect;
    definition.sequential = plan.sequential;
    definition.time_limit = plan.time_limit;
    if plan.needs_token {
        definition.needs = vec![NeedSpec::named("token")];
    }
    Arc::new(definition)
}

impl PlannedTool {
    pub(crate) fn shared(plan: &ToolPlan, world: &Arc<World>, instance: Option<usize>) -> Arc<dyn Tool> {
        Arc::new(Self { definition: definition(plan), plan: plan.clone(), world: world.clone(), instance })
    }

    fn chance(&self, call: &CallContext) -> Chance {
        match call.context().get::<RunSeat>() {
            Some(seat) => seat.chance("tool", call.key()),
            None => Chance::new(self.world.plan.seed),
        }
    }

    fn acted(&self, input: &Approved, blocking: bool) -> Acted {
        Acted {
            received: input.payload().clone(),
            precondition: input.precondition().cloned(),
            instance: self.instance,
            blocking,
            inner: false,
        }
    }

    fn act(&self, input: &Approved, call: &CallContext) {
        self.world.acts(call, &self.plan.name, self.acted(input, false));
    }

    async fn follow(&self, input: Approved, call: &CallContext) -> ToolReply {
        let mut chance = self.chance(call);
        give_way(chance.below(3)).await;
        match self.plan.conduct {
            Conduct::Blocking => return self.block(input, call, Duration::ZERO, false).await,
            Conduct::PanicsInBlocking => return self.block(input, call, Duration::ZERO, true).await,
            Conduct::Overstays => return self.block(input, call, Duration::from_millis(3), false).await,
            _ => self.act(&input, call),
        }
        match self.plan.conduct {
            Conduct::Fails => return Err(ToolError::new("broken").with_hint("try another")),
            Conduct::Panics => panic!("{PLANNED_PANIC}"),
            Conduct::Hangs => pending::<()>().await,
            Conduct::Watches => self.watch(call).await,
            Conduct::Chats => chat(call).await,
            Conduct::CallsInTurn => {
                for _ in 0..chance.between(1, 3) {
                    self.world.call(call, &mut chance, false).await;
                }
            }
            Conduct::CallsAtOnce => self.call_at_once(call, &mut chance).await,
            Conduct::Drops => self.drop_half_way(call, &mut chance).await,
            Conduct::AsksInside => self.ask_inside(call, &mut chance).await,
            Conduct::Leaks => self.leak(call, chance.clone()),
            Conduct::Cancels => self.cancel(call),
            Conduct::Plain | Conduct::Blocking | Conduct::PanicsInBlocking | Conduct::Overstays => {}
        }
        give_way(chance.below(2)).await;
        Ok(Output::json(answer_of(&self.plan.name)))
    }

    async fn block(&self, input: Approved, call: &CallContext, delay: Duration, panics: bool) -> ToolReply {
        let (world, name) = (self.world.clone(), self.plan.name.clone());
        let (acted, context) = (self.acted(&input, true), call.clone());
        let work = move || {
            std::thread::sleep(delay);
            world.acts(&context, &name, acted);
            context.stderr("acted on a thread of its own");
            assert!(!panics, "{PLANNED_PANIC}");
            Ok(Output::json(answer_of(&name)))
        };
        call.blocking(work).await
    }

    async fn watch(&self, call: &CallContext) {
        let cancellation = call.cancellation();
        tokio::select! {
            () = cancellation.cancelled() => {}
            () = give_way(10) => {}
        }
    }

    async fn call_at_once(&self, call: &CallContext, chance: &mut Chance) {
        let chances: Vec<Chance> = (0..chance.between(2, 4)).map(|_| Chance::new(chance.bits())).collect();
        let calls = chances.into_iter().map(|mut chance| async move {
            self.world.call(call, &mut chance, false).await;
        });
        join_all(calls).await;
    }

    /// Gives inner calls and inner effects a few turns of the scheduler, then drops them.
    async fn drop_half_way(&self, call: &CallContext, chance: &mut Chance) {
        for _ in 0..chance.between(1, 2) {
            let (turns, inside) = (chance.below(12), chance.percent(30));
            let work = async {
                if inside {
                    self.inner_effect(call, chance).await;
                } else {
                    self.world.call(call, chance, false).await;
                }
            };
            tokio::select! {
                biased;
                () = work => {}
                () = give_way(turns) => {}
            }
        }
    }

    async fn inner_effect(&self, call: &CallContext, chance: &mut Chance) {
        // An effect may bear the name of its own tool: that makes it no call of the tool.
        let name = *chance.one_of(&["deploy.push", "deploy.tag", "tool_1", self.plan.name.as_str()]);
        let payload = inner_payload(chance);
        self.world.act_inside(call, name, payload, false).await;
    }

    async fn ask_inside(&self, call: &CallContext, chance: &mut Chance) {
        let chances: Vec<Chance> = (0..chance.between(1, 3)).map(|_| Chance::new(chance.bits())).collect();
        let effects = chances.into_iter().map(|mut chance| async move {
            self.inner_effect(call, &mut chance).await;
        });
        if chance.percent(50) {
            join_all(effects).await;
        } else {
            for effect in effects {
                effect.await;
            }
        }
    }

    /// Leaves code behind that goes on using the call.
    fn leak(&self, call: &CallContext, mut chance: Chance) {
        let (world, call) = (self.world.clone(), call.clone());
        let stray = tokio::spawn(async move {
            give_way(chance.below(20)).await;
            call.stderr("still here");
            match chance.below(3) {
                0 => world.call(&call, &mut chance, true).await,
                1 => world.act_inside(&call, "deploy.late", inner_payload(&mut chance), true).await,
                _ => drop(call.now().await),
            }
            give_way(chance.below(20)).await;
            call.notice("and here");
        });
        self.world.keep_stray(stray);
    }

    fn cancel(&self, call: &CallContext) {
        if let Some(seat) = call.context().get::<RunSeat>() {
            seat.cancel();
        }
    }

    fn judge(&self, input: &Payload, call: &CallContext) -> Assessment {
        let earlier = self.world.journal.judged_before(call.run_id(), call.key());
        let verdict = self.plan.judge(input.value(), earlier);
        let precondition = Some(json!(format!("{} as judged {earlier}", input.digest().short())));
        let assessed = What::Assessed {
            key: call.key().clone(),
            arguments: input.clone(),
            precondition: precondition.clone(),
        };
        self.world.journal.note(Whose::Id(call.run_id()), assessed);
        let Some(verdict) = verdict else { panic!("{PLANNED_PANIC}") };
        Assessment {
            subjects: verdict.subjects,
            scopes: verdict.scopes,
            protected: verdict.protected,
            precondition,
            ..Assessment::new(verdict.approval, "a judged call")
        }
    }
}

/// Samples and remarks, which need no approval and stand in the log.
async fn chat(call: &CallContext) {
    call.notice("working");
    call.progress().report("half");
    let _ = (call.now().await, call.random().await);
    let _ = call.inspect();
    call.stderr("done");
}

impl Tool for PlannedTool {
    fn definition(&self) -> &Arc<ToolDefinition> {
        &self.definition
    }

    fn assesses(&self) -> bool {
        self.plan.judgment != Judgment::None
    }

    fn assess<'a>(&'a self, input: &'a Payload, call: &'a CallContext) -> BoxFuture<'a, Assessment> {
        Box::pin(async move {
            // An assessment that tries to act gets nowhere.
            let sneaked = call.call("tool_0", json!({})).await.is_ok()
                || call.approve("deploy.push", Value::Null, "sneaking").await.is_ok();
            let mut assessment = self.judge(input, call);
            if sneaked {
                assessment.approval = Approval::Blocked;
            }
            assessment
        })
    }

    fn run<'a>(&'a self, input: Approved, call: &'a CallContext) -> BoxFuture<'a, ToolReply> {
        Box::pin(self.follow(input, call))
    }
}

/// A toolset whose instances are counted.
pub(crate) struct PlannedToolset {
    pub(crate) plan: ToolsetPlan,
    pub(crate) world: Arc<World>,
    pub(crate) name: llm_do_core::Name,
}

struct PlannedInstance {
    tools: Vec<Arc<dyn Tool>>,
    number: usize,
    panics_on_close: bool,
    world: Arc<World>,
    whose: Whose,
}

impl Toolset for PlannedToolset {
    fn name(&self) -> &llm_do_core::Name {
        &self.name
    }

    fn definitions(&self) -> Vec<Arc<ToolDefinition>> {
        self.plan.tools.iter().map(definition).collect()
    }

    fn open<'a>(
        &'a self,
        opening: Opening<'a>,
    ) -> BoxFuture<'a, Result<Arc<dyn ToolsetInstance>, ToolError>> {
        Box::pin(async move {
            let run = opening.context.get::<RunSeat>().map_or(0, |seat| seat.number);
            let mut chance = Chance::at(self.world.plan.seed, &["opening", &opening.call.id]);
            give_way(chance.below(2)).await;
            if !self.world.plan.opens(&self.plan, run, &opening.call.id) {
                assert!(!chance.percent(50), "{PLANNED_PANIC}");
                return Err(ToolError::new("no connection"));
            }
            let number = self.world.next_instance();
            let whose = Whose::Id(opening.call.run);
            let (toolset, opener) = (self.plan.name.clone(), opening.call.id.clone());
            self.world.journal.note(whose, What::Opened { instance: number, toolset, opener });
            let tools = self.plan.tools.iter();
            let tools = tools.map(|tool| PlannedTool::shared(tool, &self.world, Some(number))).collect();
            let panics_on_close = self.plan.panics_on_close;
            let instance =
                PlannedInstance { tools, number, panics_on_close, world: self.world.clone(), whose };
            Ok(Arc::new(instance) as Arc<dyn ToolsetInstance>)
        })
    }
}

impl ToolsetInstance for PlannedInstance {
    fn tools(&self) -> &[Arc<dyn Tool>] {
        &self.tools
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            give_way(1).await;
            self.world.journal.note(self.whose, What::Closed { instance: self.number });
            assert!(!self.panics_on_close, "{PLANNED_PANIC}");
        })
    }
}
