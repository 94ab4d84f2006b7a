use llm_do_macros::tool;

/// Has a wrong access.
#[tool(access = "execute")]
async fn execute() {}

/// Has a wrong approval.
#[tool(approval = "always")]
async fn always() {}

/// Has a wrong effect.
#[tool(effect = "twice")]
async fn twice() {}

/// Has no value.
#[tool(access)]
async fn valueless() {}

/// Has a value that is not a text.
#[tool(access = read)]
async fn no_text() {}

/// Has a value where none belongs.
#[tool(sequential = true)]
async fn sequential() {}

/// Has no function for its assessment.
#[tool(assess = 1)]
async fn assessed() {}

fn main() {}
