//! What the decoders must do, on exchanges written here and, where they are at hand, on recorded ones.

mod accepted;
mod conversations;
mod exchanges;
mod failures;
mod follow_up;
mod generated_files;
mod hostile;
mod moved;
mod offered;
mod prefix;
mod provider;
mod read_request;
mod recorded;
mod requests;
mod server_calls;

use llm_do_core::{ModelError, ModelPart, ModelResponse, Origin, Usage};
use serde_json::Value;

use super::{Api, Decoder};

/// What a decoder made of a body.
#[derive(Debug, Clone, PartialEq)]
struct Decoded {
    response: Result<ModelResponse, ModelError>,
    /// The text and the thinking that were given out on the way.
    text: String,
    thinking: String,
}

fn decoder(api: Api) -> Decoder {
    decoder_for(api, "acme")
}

fn decoder_for(api: Api, provider: &str) -> Decoder {
    Decoder::new(api, Origin { provider: provider.into(), model: "m".into(), data: Value::Null })
}

fn decode(api: Api, body: impl AsRef<[u8]>) -> Decoded {
    decode_pieces(api, [body.as_ref()])
}

fn decode_pieces<'a>(api: Api, pieces: impl IntoIterator<Item = &'a [u8]>) -> Decoded {
    let mut decoder = decoder(api);
    let mut parts = Vec::new();
    for piece in pieces {
        if decoder.push(piece, &mut parts).is_err() {
            break;
        }
    }
    let response = decoder.finish(&mut parts);
    let said = |of: fn(&ModelPart) -> Option<&str>| parts.iter().filter_map(of).collect::<String>();
    let text = said(|part| if let ModelPart::Text(text) = part { Some(text) } else { None });
    let thinking = said(|part| if let ModelPart::Thinking(text) = part { Some(text) } else { None });
    Decoded { response, text, thinking }
}

fn usage(input: u64, output: u64, cache_read: u64, cache_write: u64, reasoning: u64) -> Usage {
    Usage { requests: 1, input, output, cache_read, cache_write, reasoning, ..Usage::default() }
}

/// Numbers that look random and are always the same.
struct Numbers(fastrand::Rng);

impl Numbers {
    fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    fn below(&mut self, end: usize) -> usize {
        self.0.usize(..end.max(1))
    }

    /// Cuts a body at up to twelve places.
    fn split<'a>(&mut self, body: &'a [u8]) -> Vec<&'a [u8]> {
        let mut places: Vec<usize> = (0..=self.below(12)).map(|_| self.below(body.len() + 1)).collect();
        places.extend([0, body.len()]);
        places.sort_unstable();
        places.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
    }
}

/// Reads how often something is tried.
fn times(variable: &str, default: usize) -> usize {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
