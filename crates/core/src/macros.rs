//! Support for `#[tool]`.
