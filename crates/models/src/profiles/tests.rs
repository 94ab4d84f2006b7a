//! Tests of the table of profiles.

use llm_do_core::NativeOutput::{self, Always, Never, WithoutTools};
use llm_do_core::ThinkingStyle::{self, Budget, Effort, Unasked};

use super::table::NOTHING;
use super::*;
use crate::provider::{PROTOCOLS, built_in, providers};

fn profile(name: &str) -> ModelProfile {
    let (provider, model) = name.split_once(':').unwrap();
    profile_of(built_in(provider).unwrap().protocol, provider, model, &[])
}

#[test]
fn known_models_are_asked_as_they_want() {
    let rows: &[(&str, NativeOutput, bool, ThinkingStyle)] = &[
        ("anthropic:claude-opus-5-5", Always, false, Effort),
        ("anthropic:claude-haiku-5-5-20261001", Always, false, Effort),
        ("anthropic:claude-opus-4-7", Always, false, Effort),
        ("anthropic:claude-sonnet-4-6", Always, true, Effort),
        ("anthropic:claude-opus-4-6", Always, true, Effort),
        ("anthropic:claude-opus-4-5-20251101", Always, true, Budget),
        ("anthropic:claude-sonnet-4-5", Always, true, Budget),
        ("anthropic:claude-haiku-4-5-20251001", Always, true, Budget),
        ("anthropic:claude-opus-4-1-20250805", Always, true, Budget),
        ("anthropic:claude-opus-4-20250514", Never, true, Budget),
        ("anthropic:claude-sonnet-4-0", Never, true, Budget),
        ("anthropic:claude-3-7-sonnet-latest", Never, true, Budget),
        ("anthropic:claude-3-5-haiku-latest", Never, true, Unasked),
        ("openai:gpt-6.1-sol", Always, true, Effort),
        ("openai:gpt-7", Always, false, Effort),
        ("openai:gpt-5.1", Always, true, Effort),
        ("openai:gpt-5", Always, false, Effort),
        ("openai:gpt-5-chat-latest", Always, true, Unasked),
        ("openai:gpt-4.1-mini", Always, true, Unasked),
        ("openai:gpt-4o", Always, true, Unasked),
        ("openai:ft:gpt-4o-mini:acme::1", Always, true, Unasked),
        ("openai-chat:gpt-4o-2024-05-13", Never, true, Unasked),
        ("openai-chat:gpt-4-1106-preview", Never, true, Unasked),
        ("openai-chat:gpt-3.5-turbo", Never, true, Unasked),
        ("openai:o3", Always, false, Effort),
        ("openai-chat:o1-mini", Never, false, Unasked),
        ("azure:gpt-5-mini", Always, false, Effort),
        ("azure:my-deployment", Never, true, Unasked),
        ("gemini:gemini-4-argon", Always, true, Effort),
        ("gemini:gemini-3-pro-preview", Always, true, Effort),
        ("gemini:gemini-2.5-flash", WithoutTools, true, Budget),
        ("gemini:gemini-2.0-flash", WithoutTools, true, Unasked),
        ("groq:llama-3.3-70b-versatile", Never, true, Unasked),
        ("groq:openai/gpt-oss-120b", Never, true, Effort),
        ("deepseek:deepseek-chat", Never, true, Unasked),
        ("mistral:mistral-large-latest", Never, true, Unasked),
        ("xai:grok-4.5", Always, true, Effort),
        ("openrouter:openai/gpt-5", Always, false, Effort),
        ("openrouter:anthropic/claude-sonnet-4.5", Never, true, Effort),
        ("openrouter:meta-llama/llama-4-scout", Never, true, Effort),
        ("ollama:gpt-oss:20b", WithoutTools, true, Effort),
        ("llamacpp:qwen3", WithoutTools, true, Unasked),
        ("vllm:Qwen/Qwen3-8B", WithoutTools, true, Unasked),
    ];
    for (name, native, sampling, thinking) in rows {
        let found = profile(name);
        assert_eq!(
            (found.native_output, found.sampling, found.thinking),
            (*native, *sampling, *thinking),
            "{name}"
        );
    }
}

#[test]
fn what_models_look_at_and_which_tools_their_providers_run() {
    let looks = |name: &str| (profile(name).images, profile(name).documents);
    assert_eq!(looks("anthropic:claude-sonnet-4-5"), (true, true));
    assert_eq!(looks("anthropic:claude-2.1"), (false, false));
    assert_eq!(looks("anthropic:unheard-of"), (true, false));
    assert_eq!(looks("openai-chat:gpt-4-turbo"), (true, false));
    assert_eq!(looks("deepseek:deepseek-chat"), (false, false));
    assert_eq!(looks("groq:meta-llama/llama-4-scout-17b-16e-instruct"), (true, false));
    assert_eq!(looks("ollama:llava"), (true, false));
    assert_eq!(
        profile("anthropic:claude-sonnet-4-5").server_tools,
        ["web_search", "web_fetch", "code_execution"]
    );
    assert_eq!(profile("openai:gpt-5").server_tools, ["web_search", "code_execution", "image_generation"]);
    assert!(profile("openai-chat:gpt-5").server_tools.is_empty());
    assert!(profile("anthropic:claude-3-opus-latest").server_tools.is_empty());
    assert!(profile("gemini:gemma-3-27b-it").server_tools.is_empty());
}

#[test]
fn a_model_that_no_row_knows_gets_what_its_protocol_can() {
    for protocol in PROTOCOLS {
        let found = profile_of(protocol, "acme", "unheard-of", &[]);
        let runs_tools = matches!(*protocol, "anthropic" | "openai" | "gemini");
        assert!(found.sampling && found.server_tools.is_empty() != runs_tools, "{protocol}: {found:?}");
        assert_ne!(found.native_output == Always, *protocol != "openai", "{protocol}");
    }
}

#[test]
fn hosts_enforce_closed_objects_and_grammars_enforce_all() {
    let name = |closed: bool| {
        let all = providers().iter().map(|provider| provider.name);
        all.filter(|name| profile(&format!("{name}:m")).closed_output_only == closed).collect::<Vec<_>>()
    };
    assert_eq!(name(false), ["gemini", "ollama", "lmstudio", "llamacpp", "vllm"]);
    assert!(name(true).contains(&"anthropic") && name(true).contains(&"openrouter"));
}

#[test]
fn a_project_overrules_the_table_field_by_field() {
    let over = |pattern: &str, profile| ModelOverride { pattern: pattern.to_owned(), price: None, profile };
    let overrides = [
        over("google:gemini-2.5-*", ProfileOverride { images: Some(false), ..NOTHING }),
        over("gemini:*", ProfileOverride { images: Some(true), max_output: Some(9), ..NOTHING }),
        over("openai:*", ProfileOverride { sampling: Some(false), ..NOTHING }),
    ];
    let found = profile_of("gemini", "gemini", "gemini-2.5-pro", &overrides);
    let expected = ModelProfile { images: false, default_max_output: 9, ..profile("gemini:gemini-2.5-pro") };
    assert_eq!(found, expected);
}

#[test]
fn every_row_is_about_something_that_exists() {
    let names: Vec<&str> = providers().iter().map(|provider| provider.name).collect();
    for row in TABLE {
        let is_known = match row.of {
            RowScope::Protocol(name) => PROTOCOLS.contains(&name),
            RowScope::Provider(name) => names.contains(&name),
            RowScope::Anywhere => true,
        };
        assert!(is_known && !row.models.is_empty(), "{:?}", row.models);
        assert!(
            row.says != NOTHING || row.server_tools.is_some() || !row.rules.is_empty(),
            "{:?} says nothing",
            row.models
        );
    }
}

#[test]
fn stars_stand_for_anything() {
    for (text, pattern, fits) in [
        ("gpt-5-chat-latest", "gpt-5*-chat*", true),
        ("gpt-5.1-chat", "gpt-5*-chat*", true),
        ("gpt-5", "gpt-5*-chat*", false),
        ("größe", "g*e", true),
        ("", "*", true),
        ("a", "", false),
    ] {
        assert_eq!(matches(text, pattern), fits, "{text} {pattern}");
    }
}
