//! A server that is not there, or not where it was said to be.

use std::net::TcpListener;

use llm_do_testing::needs;

use crate::local_model::server::{Local, project, shared};

#[test]
fn a_server_that_is_not_there_is_a_fault_of_the_provider() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let sandbox = project(&format!("http://{free}"));
    let ran = sandbox.run(&["run", ".", "Good morning!"]).ended(3).said("");
    ran.told(&format!("error: network error: nothing listens at {free}; start the server, or change"));
}

#[needs(model)]
#[test]
fn a_path_that_the_server_does_not_have_is_a_fault_of_the_provider() {
    let address = shared();
    let sandbox = project(&format!("{address}/nowhere"));
    let ran = sandbox.run(&["run", ".", "Good morning!"]).ended(3).said("").told("File Not Found");
    ran.told(&format!("`smollm2` was asked for at {address}/nowhere/v1/chat/completions"));
}

#[needs(model)]
#[test]
fn a_prompt_that_is_too_long_is_refused_with_the_words_of_the_server() {
    let local = Local::new("local-chat");
    let local = local.file("long.txt", &"word ".repeat(6_000));
    local.run(&["run", "Read it.", "--attach", "long.txt"]).ended(3).said("").told("context size");
}

#[needs(model)]
#[test]
fn a_picture_that_the_model_does_not_take_is_refused_at_once_or_left_out_with_a_notice() {
    let local = Local::new("local-chat");
    local.write("dot.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    let arguments = ["run", "What is this?", "--attach", "dot.png"];
    local.run(&arguments).ended(0).told("the attachment `dot.png` (image/png) is left out");
    let blind = ["--set", "models[\"local-chat:*\"].profile.images=true"];
    let refused = local.run(&[&arguments[..], &blind[..]].concat()).said("");
    let refused = refused.told("image input is not supported");
    assert!(refused.code != Some(0) && !refused.stderr.contains("asking again"), "{refused:?}");
}
