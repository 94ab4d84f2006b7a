use llm_do_macros::tool;

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Progress {
    percent: u8,
}

/// Takes a type that only has the name of an injected one.
#[tool]
async fn report(_progress: Progress) {}

fn main() {}
