//! Types whose methods are tools.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use llm_do_core::{
    Approval, Approved, Assessment, CallContext, Context, Need, NoticeSink, Opening, Payload, Tool,
    ToolError, Toolset, ToolsetInstance,
};
use llm_do_macros::toolset;
use serde_json::{Value, json};

use crate::fake::{Fake, run};

/// A counter with a start that its settings give.
struct Counter {
    count: AtomicU32,
    closed: Arc<AtomicBool>,
    log: Mutex<Vec<String>>,
}

impl Counter {
    fn open(opening: Opening<'_>) -> Result<Self, ToolError> {
        let start = opening.settings["start"].as_u64().unwrap_or_default();
        let closed = opening.context.get::<Arc<AtomicBool>>().ok_or_else(|| ToolError::new("no flag"))?;
        Ok(Self {
            count: AtomicU32::new(u32::try_from(start)?),
            closed: Arc::clone(&closed),
            log: Mutex::default(),
        })
    }
}

#[toolset]
impl Counter {
    /// Adds to the count and returns it.
    #[tool(approval = "pre_approved")]
    async fn add(
        &self,
        call: &CallContext,
        /// How much.
        #[default(1)]
        amount: u32,
    ) -> u32 {
        self.note(&format!("add in {}", call.path()));
        self.count.fetch_add(amount, Ordering::Relaxed) + amount
    }

    /// Sets the count, unless it has changed since it was assessed.
    #[tool(name = "set", assess = Self::assess_set)]
    fn overwrite(&self, approved: Approved, value: u32) -> Result<(), ToolError> {
        if approved.precondition() != Some(&json!(self.count.load(Ordering::Relaxed))) {
            return Err(ToolError::new("the count has changed"));
        }
        self.count.store(value, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the log.
    #[tool(access = "read")]
    async fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }

    fn assess_set(&self, input: &Payload, _call: &CallContext) -> Assessment {
        let count = self.count.load(Ordering::Relaxed);
        let description = format!("replaces {count} by {}", input.value()["value"]);
        Assessment { precondition: Some(json!(count)), ..Assessment::new(Approval::Ask, description) }
    }

    fn note(&self, line: &str) {
        self.log.lock().unwrap().push(line.to_owned());
    }

    #[close]
    async fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
    }
}

async fn open(
    toolset: &dyn Toolset,
    settings: Value,
    context: Context,
) -> Result<Arc<dyn ToolsetInstance>, ToolError> {
    let call = Arc::new(Fake::default()).call_context();
    let opening =
        Opening { call: call.info(), settings: &settings, context: &context, notices: &NoticeSink::none() };
    toolset.open(opening).await
}

async fn open_counter(start: u32) -> (Arc<dyn ToolsetInstance>, Arc<AtomicBool>) {
    let closed = Arc::new(AtomicBool::new(false));
    let toolset = Counter::toolset("counter", Counter::open);
    let context = Context::default().with(closed.clone());
    (open(&toolset, json!({"start": start}), context).await.unwrap(), closed)
}

fn tool<'a>(instance: &'a Arc<dyn ToolsetInstance>, name: &str) -> &'a dyn Tool {
    &**instance.tools().iter().find(|tool| tool.definition().name == name).unwrap()
}

async fn use_tool(instance: &Arc<dyn ToolsetInstance>, name: &str, arguments: Value) -> Value {
    let call = Arc::new(Fake::default()).call_context();
    run(tool(instance, name), arguments, &call).await.unwrap().to_value()
}

#[test]
fn the_tools_of_a_toolset_are_known_before_it_is_opened() {
    let toolset = Counter::toolset("counter", |_| Err(ToolError::new("never opened")));
    assert_eq!(*toolset.name(), "counter");
    let definitions = serde_json::to_value(toolset.definitions()).unwrap();
    assert_eq!(
        definitions[0],
        json!({
            "name": "add",
            "toolset": "counter",
            "description": "Adds to the count and returns it.",
            "input": {
                "type": "object",
                "properties": {
                    "amount": {"type": "integer", "minimum": 0, "description": "How much.", "default": 1}
                },
                "required": [],
                "additionalProperties": false
            },
            "output": {"type": "integer", "minimum": 0},
            "access": "write",
            "approval": "pre_approved",
            "effect": "once",
            "needs": [],
            "sequential": false
        })
    );
    let names: Vec<_> = definitions.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["add", "set", "log"]);
}

#[tokio::test]
async fn the_tools_of_an_instance_share_its_state_and_other_instances_do_not() {
    let (one, _) = open_counter(10).await;
    let (other, _) = open_counter(0).await;
    assert_eq!(use_tool(&one, "add", json!({"amount": 5})).await, json!(15));
    assert_eq!(use_tool(&one, "add", json!({})).await, json!(16));
    assert_eq!(use_tool(&one, "log", json!({})).await, json!(["add in main", "add in main"]));
    assert_eq!(use_tool(&other, "log", json!({})).await, json!([]));
}

#[tokio::test]
async fn a_method_judges_calls_by_the_state_of_its_instance() {
    let (instance, _) = open_counter(3).await;
    let set = tool(&instance, "set");
    assert!(set.assesses());
    assert!(!tool(&instance, "add").assesses());

    let fake = Arc::new(Fake::default());
    let input = json!({"value": 9});
    let assessment = set.assess(&Payload::new(input.clone()), &fake.call_context()).await;
    assert_eq!(assessment.description, "replaces 3 by 9");

    let approved = crate::fake::approved(input, assessment.precondition);
    assert_eq!(&*set.run(approved.clone(), &fake.call_context()).await.unwrap().to_text(), "done");
    let again = set.run(approved, &fake.call_context()).await.unwrap_err();
    assert_eq!(again.to_string(), "the count has changed");
    assert_eq!(fake.blocking_threads().len(), 2, "a sync method runs on a thread for blocking code");
}

#[tokio::test]
async fn closing_an_instance_runs_the_method_that_is_marked() {
    let (instance, closed) = open_counter(0).await;
    assert!(!closed.load(Ordering::Relaxed));
    instance.close().await;
    assert!(closed.load(Ordering::Relaxed));
}

#[tokio::test]
async fn an_instance_that_cannot_be_opened_says_why() {
    let toolset = Counter::toolset("counter", Counter::open);
    let error = open(&toolset, Value::Null, Context::default()).await.err().unwrap();
    assert_eq!(error.to_string(), "no flag");
}

struct Session(String);

#[toolset]
impl Session {
    /// Returns who is logged in, in the words of another context value.
    #[tool(access = "read")]
    async fn who(&self, title: Need<&'static str>) -> String {
        format!("{} {}", *title, self.0)
    }
}

#[tokio::test]
async fn an_instance_may_take_time_to_open() {
    let toolset = Session::toolset_async("session", |opening| {
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(Session(opening.call.agent.to_string()))
        })
    });
    assert_eq!(toolset.definitions()[0].needs.len(), 1);

    let instance = open(&toolset, Value::Null, Context::default()).await.unwrap();
    let call = Arc::new(Fake::default().providing(Context::default().with("Dr"))).call_context();
    let reply = run(tool(&instance, "who"), json!({}), &call).await.unwrap();
    assert_eq!(&*reply.to_text(), "Dr main");
    instance.close().await;
}
