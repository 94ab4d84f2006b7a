use llm_do_macros::tool;

/// Is unsafe.
#[tool]
unsafe fn dangerous() {}

/// Is const.
#[tool]
const fn constant() {}

/// Is foreign.
#[tool]
extern "C" fn foreign() {}

/// Is variadic.
#[tool]
fn variadic(values: ...) {}

fn main() {}
