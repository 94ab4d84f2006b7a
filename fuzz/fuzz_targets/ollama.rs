//! Bodies of any bytes as answers of Ollama, and the requests that follow them.

#![no_main]

use libfuzzer_sys::fuzz_target;
use llm_do_models::fuzzing::check;

fuzz_target!(|bytes: &[u8]| check("ollama", bytes));
