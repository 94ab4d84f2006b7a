//! The context values that tools of a project need, and those that the project provides.

use llm_do_core::NeedSpec;
use llm_do_runtime::LinkError;

use crate::code::CodeProblem;
use crate::create::Workshop;
use crate::diagnostic::{Diagnostics, Severity};
use crate::loaded::LoadedProject;

impl LoadedProject {
    /// Returns whether the project provides a context value: the manifest those under `context`, the project itself
    /// the workshop in which agents are created.
    pub fn provides(&self, need: &NeedSpec) -> bool {
        need.is_built_in()
            || *need == NeedSpec::typed::<Workshop>()
            || self.context.keys().any(|name| *need == NeedSpec::named(name.as_str()))
    }

    /// Reports the tools of Python files that need a context value which the project does not provide. A program that
    /// embeds the project may still provide it; the command line cannot.
    pub fn missing_needs(&self) -> Diagnostics {
        let mut found = Diagnostics::default();
        for tool in self.code.iter().flat_map(|code| &code.tools) {
            let definition = tool.value.definition();
            for need in definition.needs.iter().filter(|need| !self.provides(need)) {
                let (name, provided) = (definition.name.clone(), Vec::new());
                let error = LinkError::MissingNeed { tool: name, need: need.clone(), provided };
                let hint = Some(format!("add `{}` under `context` of the manifest", need.label()));
                let problem =
                    CodeProblem { location: Some(tool.location.clone()), message: error.to_string(), hint };
                found.push(problem.into_diagnostic(Severity::Error, &self.root));
            }
        }
        found
    }
}
