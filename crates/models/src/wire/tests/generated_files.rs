//! Files that models make: given to the caller, and never sent twice.

use llm_do_core::{Attachment, Message, Part};
use serde_json::{Value, json};

use super::super::Api;
use super::super::encode::Encoder;
use super::conversations::APIS;
use super::decoder_for;
use super::requests::{Asked, body, provider, target};

fn answer(api: Api, answer: &Value) -> Message {
    let mut decoder = decoder_for(api, provider(api));
    decoder.push(answer.to_string().as_bytes(), &mut Vec::new()).unwrap();
    Message::clone(&decoder.finish(&mut Vec::new()).unwrap().message)
}

fn files(message: &Message) -> Vec<Attachment> {
    let file = |part: &Part| match part {
        Part::Attachment(file) => Some(file.clone()),
        _ => None,
    };
    message.parts.iter().filter_map(file).collect()
}

fn responses_calls() -> Message {
    let call = |id: &str, result: Value, format: Value| {
        json!({"type": "image_generation_call", "id": id, "status": "completed", "result": result,
            "output_format": format})
    };
    let output = [
        call("i1", json!("UE5H"), Value::Null),
        call("i2", json!("SlBFRw=="), json!("jpeg")),
        call("i3", Value::Null, Value::Null),
        call("i4", json!("no base64"), Value::Null),
    ];
    answer(
        Api::OpenAiResponses,
        &json!({"object": "response", "id": "r", "status": "completed", "output": output}),
    )
}

fn gemini_calls() -> Message {
    let inline = |kind: &str| json!({"mimeType": kind, "data": "UE5H"});
    let parts = [
        json!({"text": "Here."}),
        json!({"inlineData": inline("image/webp"), "thought": true}),
        json!({"inlineData": inline("image/png"), "thoughtSignature": "s"}),
        json!({"inlineData": inline("audio/L16;rate=24000")}),
    ];
    answer(Api::Gemini, &json!({"candidates": [{"finishReason": "STOP", "content": {"parts": parts}}]}))
}

#[test]
fn files_in_answers_are_attachments_beside_the_blocks_that_hold_them() {
    let png = Attachment::bytes("image-1.png", "image/png", b"PNG".to_vec());
    let jpeg = Attachment::bytes("image-2.jpg", "image/jpeg", b"JPEG".to_vec());
    assert_eq!(files(&responses_calls()), [png.clone(), jpeg]);
    assert_eq!(responses_calls().parts.len(), 6, "every block is kept");
    let sound = Attachment::bytes("audio-2.l16", "audio/L16;rate=24000", b"PNG".to_vec());
    assert_eq!(files(&gemini_calls()), [png, sound]);
}

#[test]
fn no_api_is_sent_the_files_of_an_answer_a_second_time() {
    for api in APIS {
        for answer in [responses_calls(), gemini_calls()] {
            let sent = |answer: Message| {
                let asked = Asked::of([Message::user("Draw."), answer, Message::user("Thanks.")]);
                body(&Encoder::new(target(api)).encode(&asked.request()).unwrap())
            };
            let mut bare = answer.clone();
            bare.parts.retain(|part| !matches!(part, Part::Attachment(_)));
            assert!(bare.parts.len() < answer.parts.len());
            assert_eq!(sent(answer), sent(bare), "{api:?}");
        }
    }
}
