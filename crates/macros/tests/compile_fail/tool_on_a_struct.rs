/// Is no function.
#[llm_do_macros::tool]
pub struct Counter {
    count: u32,
}

fn main() {}
