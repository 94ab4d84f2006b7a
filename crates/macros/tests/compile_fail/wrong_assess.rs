use llm_do_core::{Assessment, Payload};
use llm_do_macros::tool;

fn judge(_input: &Payload) -> Assessment {
    loop {}
}

/// Is judged by a function of another form.
#[tool(assess = judge)]
async fn act() {}

fn main() {}
