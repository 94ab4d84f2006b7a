//! What the program that embeds the library brings: toolsets and typed inputs for agents in files.

use std::collections::HashSet;
use std::path::Path;

use crate::catalog::{EmbeddingProgram, ProgramInput};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::span_of;
use crate::read::agent::Agent;
use crate::suggest::suggest;

/// The input that the embedding program gives to an agent. It is an error if the file declares one too.
pub(crate) fn input_of<'a>(
    agent: &Agent,
    catalog: &'a dyn EmbeddingProgram,
    out: &mut Diagnostics,
) -> Option<&'a ProgramInput> {
    let header = &agent.header;
    let given = catalog.program_inputs().iter().find(|input| input.agent == header.name.as_str())?;
    let own = [
        ("input_schema", header.input_schema.is_some()),
        ("input_model_ref", header.input_model_ref.is_some()),
    ];
    for (key, _) in own.into_iter().filter(|(_, is_set)| *is_set) {
        let message = format!("`{key}`: the program already defines the input of agent `{}`", header.name);
        let span = span_of(&agent.file.header, key);
        out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint("keep one of them"));
    }
    Some(given)
}

/// Reports toolsets that the embedding program adds twice, and typed inputs for agents that no file defines.
pub(crate) fn check(agents: &[Agent], catalog: &dyn EmbeddingProgram, root: &Path, out: &mut Diagnostics) {
    let mut seen = HashSet::new();
    for toolset in catalog.program_toolsets().iter().filter(|toolset| !seen.insert(toolset.name())) {
        let message = format!("the program adds two toolsets with the name `{}`", toolset.name());
        out.push(Diagnostic::error(root, message).with_hint("rename one of them"));
    }
    let names: Vec<&str> = agents.iter().map(|agent| agent.header.name.as_str()).collect();
    for input in catalog.program_inputs().iter().filter(|input| !names.contains(&input.agent.as_str())) {
        let message =
            format!("the program gives an input to the agent `{}`, which no file defines", input.agent);
        out.push(Diagnostic::error(root, message).with_hint(suggest(&input.agent, names.iter().copied())));
    }
}
