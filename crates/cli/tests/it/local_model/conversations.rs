//! What is sent beside one prompt: the turns before it, and files.

use llm_do_testing::needs;

use crate::local_model::server::{Events, Local, PROTOCOLS};

#[needs(model)]
#[test]
fn the_second_turn_of_a_chat_brings_the_first_one_along() {
    for protocol in PROTOCOLS {
        let local = Local::new(protocol);
        let lines = b"Hello, my name is Ada.\nWhat is my name?\n";
        let events = Events(local.run_with(&["chat", "--output", "jsonl"], lines).ended(0).lines());
        assert!(events.answers().iter().all(|answer| !answer.trim().is_empty()), "{protocol}: {events:#?}");
        let &[first, second] = &events.input_tokens()[..] else { panic!("{protocol}: {events:#?}") };
        // The second prompt alone is shorter than the first.
        assert!(second > first + 10, "{protocol}: {first} and {second}");
    }
}

#[needs(model)]
#[test]
fn the_text_of_an_attached_file_reaches_the_model() {
    let text = "The harbour of the town is deep and calm. ".repeat(20);
    for protocol in PROTOCOLS {
        let local = Local::new(protocol);
        let local = local.file("harbour.txt", &text);
        let events = local.events(&["How is the harbour?", "--attach", "harbour.txt"]);
        assert!(events.input_tokens()[0] > 200, "{protocol}: {:?}", events.input_tokens());
        assert!(!events.answers()[0].is_empty(), "{protocol}");
    }
}
