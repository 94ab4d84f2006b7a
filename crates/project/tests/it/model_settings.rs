//! Settings of models, providers and overrides: what is read, what is refused, and what to do about it.

use llm_do_core::{Effort, EffortLevels, ModelSettings, NativeOutput, Thinking, ThinkingStyle, ToolChoice};
use llm_do_project::{LoadedProject, load};
use llm_do_testing::TestDir;
use serde_json::json;

use crate::parts::Names;

/// Loads one agent with settings.
fn agent(settings: &str) -> Result<LoadedProject, String> {
    let folder = TestDir::new();
    let header = format!("---\nname: main\nmodel: test:echo\nmodel_settings:\n{settings}\n---\nDo it.\n");
    folder.write("main.agent", header);
    load(folder.path(), &Names).map_err(|said| said.to_string())
}

#[track_caller]
fn settings(written: &str) -> (ModelSettings, Vec<String>) {
    let loaded = agent(written).unwrap_or_else(|said| panic!("{said}"));
    let notices = loaded.notices.notices().map(|notice| notice.message.clone()).collect();
    let outline = loaded.project.outline();
    (outline[0].agent.as_ref().unwrap().settings.clone(), notices)
}

#[track_caller]
fn refused(written: &str) -> String {
    match agent(written) {
        Ok(_) => panic!("{written} was accepted"),
        Err(said) => said,
    }
}

#[test]
fn every_setting_is_read() {
    let written = "  temperature: 0.5\n  max_tokens: 100\n  top_p: 0.9\n  stop: [END]\n  seed: 7\n  thinking: 2048\n  \
        effort: xhigh\n  parallel_tool_calls: false\n  tool_choice: none\n  stream: false\n  cache: false\n  timeout: 60\n  \
        idle_timeout: 5\n  extra_headers: {x-title: demo}\n  extra_body: {top_k: 5}";
    let (read, notices) = settings(written);
    let expected = ModelSettings {
        temperature: Some(0.5),
        max_tokens: Some(100),
        top_p: Some(0.9),
        stop: vec!["END".to_owned()],
        seed: Some(7),
        thinking: Some(Thinking::Tokens(2048)),
        effort: Some(Effort::Xhigh),
        parallel_tool_calls: Some(false),
        tool_choice: Some(ToolChoice::None),
        stream: Some(false),
        cache: Some(false),
        timeout: Some(60),
        idle_timeout: Some(5),
        extra_headers: [("x-title".to_owned(), "demo".to_owned())].into(),
        extra_body: json!({"top_k": 5}).as_object().unwrap().clone(),
    };
    assert_eq!((read, notices), (expected, Vec::new()));
}

#[test]
fn older_spellings_mean_the_same_and_are_noticed() {
    let (read, notices) = settings(
        "  stop_sequences: [END]\n  reasoning_effort: low\n  max_completion_tokens: 9\n  \
        thinking: {type: enabled, budget_tokens: 4096}",
    );
    let expected = ModelSettings {
        stop: vec!["END".to_owned()],
        effort: Some(Effort::Low),
        max_tokens: Some(9),
        thinking: Some(Thinking::Tokens(4096)),
        ..ModelSettings::default()
    };
    assert_eq!(read, expected);
    let notices = notices.join("\n");
    assert_eq!(
        notices,
        "`stop_sequences` is read as `stop`\n\
        `reasoning_effort` is read as `effort`\n\
        `max_completion_tokens` is read as `max_tokens`\n\
        `thinking: {type: ..}` is read as `thinking: 4096`"
    );
}

#[test]
fn older_thinking_is_on_off_or_refused() {
    let thinking = |written: &str| settings(&format!("  thinking: {written}")).0.thinking;
    assert_eq!(thinking("{type: adaptive}"), Some(Thinking::Wanted(true)));
    assert_eq!(thinking("{type: disabled}"), Some(Thinking::Wanted(false)));
    let said = refused("  thinking: {type: enabled, budget_tokens: -3}");
    assert!(said.contains("`model_settings.thinking`") && said.contains("number of tokens from 1"), "{said}");
    let said = refused("  thinking: {type: enabled, display: no}");
    assert!(said.contains("hint: write `true`, `false` or a number of tokens"), "{said}");
}

#[test]
fn two_spellings_of_one_setting_are_refused() {
    let said = refused("  max_tokens: 4\n  max_completion_tokens: 5");
    assert!(
        said.contains("`max_completion_tokens` and `max_tokens` are the same key, written twice"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_with_a_setting_is_said_at_its_line_with_a_hint() {
    for (written, words, hint) in [
        ("temprature: 1", "unknown key `temprature`", "did you mean `temperature`?"),
        ("top_k: 5", "unknown key `top_k`", "put it under `extra_body`"),
        ("presence_penalty: 1", "unknown key `presence_penalty`", "put it under `extra_body`"),
        ("service_tier: flex", "unknown key `service_tier`", "put it under `extra_body`"),
        ("budget_tokens: 5", "unknown key `budget_tokens`", "write `thinking: NUMBER`"),
        ("response_format: {}", "unknown key `response_format`", "`output_schema`"),
        ("api_key: x", "unknown key `api_key`", "keys come from the environment"),
        ("n: 2", "unknown key `n`", "only one answer per request"),
        ("temperature: 2.5", "2.5 is greater than the maximum of 2", ""),
        ("temperature: -0.1", "-0.1 is less than the minimum of 0", ""),
        ("temperature: .nan", "not a finite number", ""),
        ("temperature: hot", "expected number, got a string", ""),
        ("max_tokens: 0", "0 is less than the minimum of 1", ""),
        ("top_p: 1.5", "1.5 is greater than the maximum of 1", ""),
        ("seed: 4294967296", "4294967296 is greater than the maximum of 4294967295", ""),
        ("stop: END", "expected list", "write a list: `stop: [\"END\"]`"),
        ("thinking: off", "`model_settings.thinking`", "write `thinking: false`"),
        ("thinking: enabled", "`model_settings.thinking`", "write `thinking: true`"),
        ("thinking: high", "`model_settings.thinking`", "write `effort: high`"),
        ("thinking: 0", "`model_settings.thinking`", "write `false` for no thinking"),
        ("effort: hihg", "none or minimal or low or medium or high or xhigh or max", "did you mean `high`?"),
        ("effort: 1000", "`model_settings.effort`", "a number of tokens goes under `thinking`"),
        ("tool_choice: any", "`model_settings.tool_choice`", "write `required`"),
        ("tool_choice: read_file", "`model_settings.tool_choice`", "write `tool_choice: {tool: read_file}`"),
        ("timeout: 5m", "`model_settings.timeout`", "write a number of seconds"),
    ] {
        let said = refused(&format!("  {written}"));
        assert!(said.contains(words) && said.contains(hint), "{written}:\n{said}");
        assert!(said.contains("main.agent, line 5, column"), "{written}:\n{said}");
        assert!(hint.is_empty() || said.contains("hint: "), "{written}:\n{said}");
        assert!(!said.contains("null"), "{written}:\n{said}");
    }
}

#[test]
fn headers_carry_no_keys_and_cannot_break_a_request() {
    for (header, words) in [
        ("Authorization: Bearer x", "keys come from the environment"),
        ("x-api-key: x", "keys come from the environment"),
        ("X-Goog-Api-Key: x", "keys come from the environment"),
        ("cookie: x", "keys come from the environment"),
        ("content-length: '3'", "the HTTP client sets it"),
        ("Host: example.com", "the HTTP client sets it"),
        ("x-a: \"a\\r\\nauthorization: b\"", "characters that are not allowed in a header"),
        ("'x y': z", "is not a valid header name"),
    ] {
        let said = refused(&format!("  extra_headers:\n    {header}"));
        assert!(said.contains(words) && said.contains("line 6, column"), "{header}:\n{said}");
    }
}

#[test]
fn the_body_keeps_what_llm_do_must_know() {
    let said = refused("  extra_body:\n    top_k: 4\n    tools: []\n    max_tokens: 100000");
    assert!(said.contains("`model_settings.extra_body` may not set `tools`"), "{said}");
    assert!(said.contains("`model_settings.extra_body` may not set `max_tokens`"), "{said}");
    assert!(said.contains("line 7, column") && said.contains("line 8, column"), "{said}");
    for field in ["n", "best_of", "candidateCount"] {
        let said = refused(&format!("  extra_body:\n    {field}: 8"));
        assert!(said.contains(&format!("`model_settings.extra_body` may not set `{field}`")), "{said}");
        assert!(
            said.contains(
                "hint: only one answer per request is supported, because budgets are computed from it"
            ),
            "{said}"
        );
    }
}

#[test]
fn the_tool_that_must_be_used_is_one_of_the_agents() {
    let said = refused("  tool_choice: {tool: helpr}\ntoolsets: [main]");
    assert!(
        said.contains("`tool_choice` names the tool `helpr`, which agent `main` does not have"),
        "{said}"
    );
    let said = refused("  tool_choice: required");
    assert!(said.contains("`tool_choice` is `required`, and agent `main` has no tools"), "{said}");
    let (read, _) = settings("  tool_choice: {tool: main}\ntoolsets: [main]");
    assert_eq!(read.tool_choice, Some(ToolChoice::Tool("main".to_owned())));
    let server = "  tool_choice: {tool: web_search}\nserver_side_tools: [{tool_type: web_search}]";
    assert!(agent(server).is_ok());
}

/// Loads a project with a part of a manifest.
fn manifest(part: &str) -> Result<LoadedProject, String> {
    let folder = TestDir::new();
    folder.write("main.agent", "---\nname: main\nmodel: test:echo\n---\nDo it.\n");
    let text = format!("version: 1\nentry: {{agent: main}}\nagent_files: [main.agent]\n{part}\n");
    folder.write("project.yaml", text);
    load(folder.path(), &Names).map_err(|said| said.to_string())
}

#[test]
fn overrides_of_models_keep_their_order() {
    let part = "models:\n  openai:zeta*: {price: {input: 1, output: 2.5, cache_read: 0.1, search: 10, request: 0.01}}\n  \
        openai:*: {profile: {native_output: without_tools, max_output: 500, images: false, thinking: budget, effort_levels: [low, high]}}\n  \
        anthropic/claude-x: {}";
    let overrides = manifest(part).unwrap_or_else(|said| panic!("{said}")).model_overrides;
    let patterns: Vec<&str> = overrides.iter().map(|over| over.pattern.as_str()).collect();
    assert_eq!(patterns, ["openai:zeta*", "openai:*", "anthropic/claude-x"]);
    let price = overrides[0].price.unwrap();
    assert_eq!((price.output, price.cache_read, price.cache_write), (2.5, Some(0.1), None));
    let profile = overrides[1].profile;
    assert_eq!(profile.native_output, Some(NativeOutput::WithoutTools));
    assert_eq!((profile.max_output, profile.images, profile.documents), (Some(500), Some(false), None));
    assert_eq!(profile.thinking, Some(ThinkingStyle::Budget));
    assert_eq!(profile.effort_levels, Some(EffortLevels::new(&[Effort::Low, Effort::High])));
    assert_eq!((overrides[2].price, overrides[1].price), (None, None));
}

#[test]
fn what_is_wrong_with_an_override_is_said_at_its_place() {
    for (entry, words) in [
        ("'openai:[': {}", "is not a glob"),
        ("opnai:gpt: {}", "there is no provider `opnai`"),
        ("gpt-5*: {}", "`gpt-5*` names no provider"),
        ("openai:a: {price: {input: -1, output: 1}}", "-1 is less than the minimum of 0"),
        ("openai:a: {price: {input: 1}}", "missing key `output`"),
        ("openai:a: {price: {input: 1, output: 1, cached: 1}}", "unknown key `cached`"),
        ("openai:a: {profile: {native_output: sometimes}}", "never or without_tools or always"),
        ("openai:a: {profile: {thinking: bugdet}}", "unasked or budget or effort"),
        ("openai:a: {profile: {effort_levels: []}}", "effort_levels"),
        ("openai:a: {profile: {effort_levels: [some]}}", "none or minimal or low"),
        ("openai:a: {prices: {}}", "did you mean `price`?"),
    ] {
        let said = match manifest(&format!("models:\n  {entry}")) {
            Ok(_) => panic!("{entry} was accepted"),
            Err(said) => said,
        };
        assert!(said.contains(words) && said.contains("project.yaml, line 5, column"), "{entry}:\n{said}");
        assert!(!said.contains("null"), "{entry}:\n{said}");
    }
}

#[test]
fn a_provider_brings_no_keys() {
    let provider = |extra: &str| {
        format!("providers:\n  acme: {{api: openai-chat, base_url: 'https://acme.test/v1', {extra}}}")
    };
    let loaded = manifest(&provider("api_key_env: ACME_KEY, headers: {x-team: a}"));
    let loaded = loaded.unwrap_or_else(|said| panic!("{said}"));
    assert_eq!(loaded.providers["acme"].api_key_env.as_deref(), Some("ACME_KEY"));
    for (extra, words) in [
        ("headers: {authorization: Bearer x}", "`api_key_env` of a provider"),
        ("api_key_env: sk-secret-value", "must be the name of a variable"),
    ] {
        let said = manifest(&provider(extra)).err().unwrap();
        assert!(said.contains(words), "{extra}:\n{said}");
    }
    let said = manifest("providers:\n  acme: {api: openai-chat, base_url: 'https://me:pw@acme.test'}");
    assert!(said.err().unwrap().contains("`base_url` holds a user name or password"));
}
