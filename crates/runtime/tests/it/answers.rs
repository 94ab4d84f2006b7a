//! Structured answers, prompts, attachments, cut messages, limits.

use llm_do_core::{
    AgentArgs, AgentSpec, Approval, Attachment, AttachmentSource, EventBody, FailureKind, InputPart, Limits,
    ModelProfile, NativeOutput, Output, Part, Prompt, Schema, Status, StopReason,
};
use llm_do_models::{Script, TestModel, asks, asks_all, asks_raw, instructed, replies, says};
use llm_do_runtime::{Project, Runtime};
use llm_do_testing::{FunctionTool, TestDir, TestProject, TestRun};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

fn verdict() -> Schema {
    Schema::new(json!({"type": "object", "properties": {"score": {"type": "integer", "minimum": 0}}, "required": ["score"]})).unwrap()
}

fn judge() -> AgentSpec {
    AgentSpec::new("judge", "You judge.").output(verdict())
}

#[tokio::test]
async fn a_structured_answer_is_given_through_a_tool_and_validated() {
    let run = TestProject::new()
        .agent(judge())
        .model_replies([asks("final_answer", json!({"score": 3}))])
        .run("go")
        .await;
    assert_eq!(run.report().output, Some(Output::json(json!({"score": 3}))));
    assert_eq!(run.report().trace().iter().count(), 1, "the answer is not a call");
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_mended_a_bounded_number_of_times() {
    let wrong = || asks("final_answer", json!({"score": -1}));
    let run = TestProject::new()
        .agent(judge())
        .model_replies([wrong(), says("3 points"), asks("final_answer", json!({"score": 3}))])
        .run("go")
        .await;
    assert_eq!(run.report().parse::<Value>().unwrap(), json!({"score": 3}));

    let run =
        TestProject::new().agent(judge()).model_replies([wrong(), wrong(), wrong(), wrong()]).run("go").await;
    assert_eq!(run.status(), Status::Output);
    assert!(run.error().contains("`score`"), "{}", run.error());
    let requests =
        run.events().iter().filter(|event| matches!(event.body, EventBody::ModelRequest { .. })).count();
    assert_eq!(requests, 3);
}

#[tokio::test]
async fn a_provider_that_enforces_schemas_is_not_offered_the_tool() {
    let native = ModelProfile { native_output: NativeOutput::Always, ..ModelProfile::default() };
    let model = Script::new([replies(|request| {
        assert!(request.tools.is_empty() && request.output_schema.is_some());
        says("{\"score\": 4}")
    })]);
    let run = TestProject::new().agent(judge()).model(model.with_profile(native)).run("go").await;
    assert_eq!(run.report().parse::<Value>().unwrap(), json!({"score": 4}));
}

#[tokio::test]
async fn an_answer_beside_other_calls_is_not_taken() {
    let look = FunctionTool::new("look", |_, _| async { Ok(Output::text("seen")) });
    let run = TestProject::new()
        .agent(judge().tool("look"))
        .tool(look.define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([
            asks_all([("final_answer", json!({"score": 1})), ("look", json!({}))]),
            asks("final_answer", json!({"score": 2})),
        ])
        .run("go")
        .await;
    assert_eq!(run.report().parse::<Value>().unwrap(), json!({"score": 2}));
    assert!(run.tool_results()[0].contains("beside other tools"), "{:?}", run.tool_results());
    assert_eq!(run.tool_results()[1], "seen");
}

#[tokio::test]
async fn a_call_from_a_message_that_was_cut_is_neither_run_nor_sent_back() {
    let write = FunctionTool::new("write", |_, _| async { panic!("ran") });
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("write"))
        .tool(write.define(|tool| tool.approval = Approval::PreApproved))
        .model_replies([
            asks_raw("write", "{\"path\": \"report.md\", \"cont").stops(StopReason::MaxTokens),
            replies(|request| {
                let messages = request.conversation.messages();
                assert!(messages.iter().all(|message| message.tool_calls().count() == 0));
                assert!(messages[messages.len() - 1].text().contains("cut off"));
                says("done")
            }),
        ])
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "done");
    assert_eq!(run.report().trace().iter().count(), 1);
}

#[tokio::test]
async fn a_refusal_is_a_failure_of_the_model() {
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([says("I will not.").stops(StopReason::Refusal)])
        .run("go")
        .await;
    assert_eq!((run.status(), run.error()), (Status::Provider, "the model refused: I will not."));
}

#[tokio::test]
async fn turns_are_limited_by_agent_and_run() {
    let look = || {
        FunctionTool::new("look", |_, _| async { Ok(Output::text("seen")) })
            .define(|tool| tool.approval = Approval::PreApproved)
    };
    let limits = |turns| Limits { turns: Some(turns), ..Limits::default() };
    for (agent, run, expected) in [(Some(2), None, 2), (None, Some(3), 3), (Some(4), Some(2), 2)] {
        let mut spec = AgentSpec::new("main", "x").tool("look");
        spec.limits = agent.map(limits).unwrap_or_default();
        let endless = replies(|request| asks("look", json!({"n": request.conversation.messages().len()})))
            .when(instructed("x"));
        let ended = TestProject::new()
            .agent(spec)
            .tool(look())
            .model(Script::new([endless]))
            .runtime(move |runtime| runtime.limits(run.map(limits).unwrap_or_default()))
            .run("go")
            .await;
        assert_eq!(ended.status(), Status::Limit);
        assert!(
            ended.error().starts_with(&format!("agent `main` used its {expected} turns without an answer")),
            "{}",
            ended.error()
        );
    }
}

#[tokio::test]
async fn tool_calls_are_limited_over_the_whole_tree() {
    let look = FunctionTool::new("look", |_, _| async { Ok(Output::text("seen")) })
        .define(|tool| tool.approval = Approval::PreApproved);
    let calls = (0..5).map(|n| ("look", json!({ "n": n })));
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("look"))
        .tool(look)
        .model_replies([asks_all(calls), says("done")])
        .runtime(|runtime| runtime.limits(Limits { tool_calls: Some(3), ..Limits::default() }))
        .run("go")
        .await;
    let refused = run.results().iter().filter(|result| result.is_error).count();
    assert_eq!(refused, 2);
    assert_eq!(run.failure_of("look").kind, FailureKind::Limit);
}

fn opening(run: &TestRun) -> &[Part] {
    &run.report().messages[0].parts
}

#[tokio::test]
async fn an_input_becomes_the_prompt_as_text_list_or_json() {
    let agent = || TestProject::new().agent(AgentSpec::new("main", "x")).model(TestModel::echo());
    assert_eq!(&*agent().run("hello").await.answer(), "hello");
    assert_eq!(&*agent().run("  ").await.answer(), "(no input)");
    let parts = vec![
        InputPart::from("look at"),
        Attachment::bytes("a.png", "image/png", vec![1]).into(),
        "this".into(),
    ];
    let run = agent().run(parts).await;
    assert!(matches!(&opening(&run)[0], Part::Text { text, .. } if &**text == "look at\nthis"));
    assert!(
        matches!(&opening(&run)[1], Part::Attachment(attachment) if attachment.media_type.as_deref() == Some("image/png"))
    );
    let run = agent().run(json!({"b": 1, "a": [2]})).await;
    assert_eq!(&*run.answer(), "{\n  \"a\": [\n    2\n  ],\n  \"b\": 1\n}");
}

#[tokio::test]
async fn a_typed_input_is_validated_and_rendered() {
    let schema = Schema::new(
        json!({"type": "object", "properties": {"topic": {"type": "string"}, "words": {"type": "integer", "default": 50}}, "required": ["topic"]}),
    );
    let prompt = Prompt::new("v1", |input| {
        Ok(format!(
            "{} in {} words",
            input.value()["topic"].as_str().unwrap_or_default(),
            input.value()["words"]
        ))
    });
    let agent = || {
        TestProject::new()
            .agent(AgentSpec::new("main", "x").input(schema.clone().unwrap()).prompt(prompt.clone()))
            .model(TestModel::echo())
    };
    assert_eq!(&*agent().run(json!({"topic": "Rust"})).await.answer(), "Rust in 50 words");
    let run = agent().run(json!({"topc": "Rust"})).await;
    assert_eq!(run.status(), Status::Failed);
    assert!(run.error().contains("missing required field `topic` (you wrote `topc`)"), "{}", run.error());
}

#[tokio::test]
async fn the_entry_model_replaces_that_of_the_agent_that_is_run_and_of_no_other() {
    let project = Project::builder()
        .agent(
            AgentSpec::new("main", "You are main.").model(Script::new([says("own model")])).toolset("child"),
        )
        .agent(AgentSpec::new("child", "You are child.").model(Script::new([says("own model of the child")])))
        .build()
        .unwrap();
    let script = || {
        Script::new([asks("child", json!({"input": "x"})), says("entry model"), says("entry model again")])
    };
    let runtime = Runtime::builder(project).entry_model(script()).build().unwrap();
    let report = runtime.run("main", "go").await.unwrap();
    assert_eq!(&*report.text(), "entry model");
    let child = report.trace().into_iter().find(|call| call.name == "child").unwrap();
    assert_eq!(child.output.unwrap().to_string(), "own model of the child");
    let report =
        runtime.run("main", "go").entry_model(Script::new([says("model of this run")])).await.unwrap();
    assert_eq!(&*report.text(), "model of this run");
    let mut session = runtime.session("main");
    let answer = session.send("go").await.unwrap().text();
    assert_eq!(&*answer, "entry model again", "a session is run with it too");
    session.close().await;
}

#[derive(Deserialize, JsonSchema)]
struct PitchInput {
    company: String,
    #[serde(default)]
    slides: Vec<String>,
}

impl AgentArgs for PitchInput {
    fn prompt_messages(&self) -> Vec<InputPart> {
        let slides =
            self.slides.iter().map(|text| Attachment::bytes("slide.txt", "text/plain", text.as_str()).into());
        std::iter::once(format!("Pitch of {}", self.company).into()).chain(slides).collect()
    }
}

#[tokio::test]
async fn a_rust_type_is_the_input_of_an_agent_and_says_what_the_model_reads() {
    let agent = || {
        TestProject::new()
            .agent(AgentSpec::new("main", "x").input_of::<PitchInput>())
            .model(TestModel::echo())
    };
    let run = agent().run(json!({"company": "Night Ferry", "slides": ["one"]})).await;
    assert!(run.answer().starts_with("Pitch of Night Ferry"), "{}", run.answer());
    assert!(matches!(&opening(&run)[1], Part::Attachment(attachment) if attachment.name == "slide.txt"));
    let run = agent().run(json!({"compny": "Night Ferry"})).await;
    assert!(run.error().contains("missing required field `company` (you wrote `compny`)"), "{}", run.error());
}

#[tokio::test]
async fn a_text_as_prompt_is_a_template_that_is_checked_when_the_project_is_built() {
    let agent = |prompt: &str| AgentSpec::new("main", "x").input_of::<PitchInput>().prompt(prompt);
    let project = TestProject::new().agent(agent("Pitch of {{ company|upper }}")).model(TestModel::echo());
    assert_eq!(&*project.run(json!({"company": "Night Ferry"})).await.answer(), "Pitch of NIGHT FERRY");
    let errors = |prompt: &str| Project::builder().agent(agent(prompt)).build().err().unwrap().to_string();
    assert_eq!(
        errors("Pitch of {{ compny }}"),
        "agent `main`: the prompt uses `compny`, which the input does not have\nhint: did you mean `company`?"
    );
    assert!(errors("{% if %}").contains("the prompt is not a valid template"), "{}", errors("{% if %}"));
}

#[tokio::test]
async fn files_are_attached_by_the_embedder_from_anywhere_and_by_models_from_the_project_only() {
    let root = TestDir::with_files(&[("inside/a.txt", "inside"), ("secret.txt", "secret")]);
    let project = || {
        let inside = root.join("inside");
        TestProject::new()
            .agent(AgentSpec::new("main", "You are main.").toolset("child"))
            .agent(AgentSpec::new("child", "You are child."))
            .runtime(move |runtime| runtime.root(inside))
    };
    let attach = |path: &str| asks("child", json!({"input": "x", "attachments": [path]}));
    let read = replies(|request| match &request.conversation.messages()[0].parts[1] {
        Part::Attachment(Attachment { source: AttachmentSource::Data(bytes), .. }) => {
            says(String::from_utf8_lossy(bytes.as_slice()).into_owned())
        }
        other => panic!("{other:?}"),
    });
    let run = project()
        .model(Script::new([
            read.when(instructed("You are child")),
            attach("a.txt"),
            attach("../secret.txt"),
            attach("/etc/passwd"),
            says("done"),
        ]))
        .run("go")
        .await;
    let results = run.tool_results();
    assert_eq!(results[0], "inside");
    for result in &results[1..] {
        assert!(result.contains("only files below the project root can be attached"), "{result}");
    }

    let runtime = project().model(TestModel::echo()).build();
    let report = runtime.run("main", "x").attach(Attachment::path(root.join("secret.txt"))).await.unwrap();
    assert!(
        matches!(&report.messages[0].parts[1], Part::Attachment(attachment) if attachment.size() == Some(6))
    );
    let missing = runtime.run("main", "x").attach(Attachment::path("missing.txt")).await.unwrap_err();
    assert!(missing.to_string().contains("`missing.txt` could not be read"), "{missing}");
}

#[tokio::test]
async fn the_test_model_calls_every_tool_once_and_answers_with_the_results() {
    let tool = |name: &str| {
        FunctionTool::new(name, |_, _| async { Ok(Output::text("fine")) })
            .define(|tool| tool.approval = Approval::PreApproved)
    };
    let run = TestProject::new()
        .agent(AgentSpec::new("main", "x").tool("a").tool("b"))
        .tool(tool("a"))
        .tool(tool("b"))
        .model(TestModel::new())
        .run("go")
        .await;
    assert_eq!(run.tool_results(), ["fine", "fine"]);
    assert!(run.answer().contains("a: fine"), "{}", run.answer());
    let run = TestProject::new().agent(judge()).model(TestModel::new()).run("go").await;
    assert_eq!(run.report().parse::<Value>().unwrap(), json!({"score": 0}));
}

#[tokio::test]
async fn a_run_can_start_from_the_messages_of_an_earlier_one() {
    let runtime = TestProject::new()
        .agent(AgentSpec::new("main", "x"))
        .model_replies([
            says("one"),
            replies(|request| says(request.conversation.messages().len().to_string())),
        ])
        .build();
    let first = runtime.run("main", "first").await.unwrap();
    let second = runtime.run("main", "second").messages(first.messages.clone()).await.unwrap();
    assert_eq!(&*second.text(), "3");
    assert_eq!(second.messages.len(), 4);
}
