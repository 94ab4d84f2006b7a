//! `#[tool]` and `#[toolset]`.
