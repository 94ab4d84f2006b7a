//! Models for llm-do.
