//! Settings that a real model must obey.

use llm_do_testing::needs;

use crate::local_model::server::Local;

#[needs(model)]
#[test]
fn an_answer_that_reaches_its_limit_is_given_with_a_notice() {
    // The server does not tell it in Responses.
    for protocol in ["local-chat", "local-messages"] {
        let local = Local::new(protocol);
        let tight = ["--set", "agents.greeter.model_settings.max_tokens=4"];
        let ran = local.run(&["run", "Tell me a long story.", tight[0], tight[1]]).ended(0);
        let ran = ran.told("the answer was cut off at the output limit");
        assert!(!ran.stdout.trim().is_empty(), "{protocol}: {ran:?}");
    }
}

#[needs(model)]
#[test]
fn a_stop_text_ends_the_answer() {
    for protocol in ["local-chat", "local-messages"] {
        let local = Local::new(protocol);
        let free = local.run(&["run", "Good morning!"]).ended(0).stdout;
        assert!(free.trim().contains(' '), "{protocol}: {free}");
        let stop = ["--set", "agents.greeter.model_settings.stop=[\" \"]"];
        let word = local.run(&["run", "Good morning!", stop[0], stop[1]]).ended(0).told_nothing().stdout;
        assert!(!word.trim().is_empty() && !word.trim().contains(' '), "{protocol}: {word}");
    }
}

#[needs(model)]
#[test]
fn a_setting_that_a_protocol_does_not_have_is_left_out_with_a_notice() {
    for (protocol, is_told) in [("local-chat", false), ("local-responses", true), ("local-messages", true)] {
        let local = Local::new(protocol);
        let seed = ["--set", "agents.greeter.model_settings.seed=1"];
        let ran = local.run(&["run", "Good morning!", seed[0], seed[1]]).ended(0);
        assert_eq!(ran.stderr.contains("the setting `seed` is left out"), is_told, "{protocol}: {ran:?}");
    }
}

#[needs(model)]
#[test]
fn an_answer_with_a_schema_is_enforced_by_the_server() {
    let local = Local::new("local-chat");
    let input = r#"{"input": "Hello, I am Ada, and I am very happy today!"}"#;
    let ran = local.run(&["call", "card", "--input-json", input]).ended(0).told_nothing();
    let card = ran.json();
    assert!(["glad", "neutral", "sad"].contains(&card["mood"].as_str().unwrap()), "{card}");
    assert!(card["name"].is_string() && card.as_object().unwrap().len() == 2, "{card}");
}
