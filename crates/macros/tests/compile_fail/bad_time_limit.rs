use llm_do_macros::tool;

/// Has no unit.
#[tool(time_limit = "30")]
async fn unitless() {}

/// Has an unknown unit.
#[tool(time_limit = "30 seconds")]
async fn wordy() {}

/// Never has time.
#[tool(time_limit = "0s")]
async fn timeless() {}

/// Has more time than there is.
#[tool(time_limit = "99999999999999999999h")]
async fn endless() {}

fn main() {}
