use llm_do_macros::tool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Query {
    text: String,
}

#[derive(serde::Serialize)]
struct Row {
    text: String,
}

/// Takes what cannot be written and gives what cannot be read.
#[tool]
async fn search(query: Query) -> Vec<Row> {
    vec![Row { text: query.text }]
}

fn main() {}
