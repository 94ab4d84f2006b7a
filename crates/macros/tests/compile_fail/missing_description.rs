use llm_do_macros::tool;

#[tool]
async fn undescribed() {}

///
#[tool]
async fn empty() {}

#[tool(description = " ")]
async fn blank() {}

fn main() {}
