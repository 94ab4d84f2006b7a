//! The model that the user chose, and which agents it is for.

use llm_do::project::LoadedProject;

use crate::command_error::CommandError;
use crate::model_name;

/// The model that the user names.
pub(crate) enum ChosenModel {
    /// By the flag: for the entry agent, whatever its file says, and for agents that name none.
    Flag(String),
    /// By the environment or the configuration: only for agents that name none.
    Default(String),
}

impl ChosenModel {
    /// The name as it was written, or in full once it is completed.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Flag(name) | Self::Default(name) => name,
        }
    }

    /// The model by its full name.
    pub(crate) fn completed(self, project: &LoadedProject) -> Result<Self, CommandError> {
        let name = model_name::completed(self.name(), Some(project))?;
        Ok(match self {
            Self::Flag(_) => Self::Flag(name),
            Self::Default(_) => Self::Default(name),
        })
    }

    /// The model of an agent that is run: the flag, its own, the environment's, the project's.
    pub(crate) fn effective(
        chosen: Option<&Self>,
        own: Option<String>,
        of_project: Option<&str>,
    ) -> Option<String> {
        match (chosen, own) {
            (Some(Self::Flag(name)), _) => Some(name.clone()),
            (_, Some(own)) => Some(own),
            (Some(Self::Default(name)), None) => Some(name.clone()),
            (None, None) => of_project.map(str::to_owned),
        }
    }
}

/// Names the agents that keep a model of their own although the user chose one.
pub(crate) fn other_models(project: &LoadedProject, chosen: &str) -> Option<String> {
    let outlines = project.project.outline();
    let agents = outlines.iter().filter_map(|outline| outline.agent.as_ref());
    let own = agents.filter(|spec| spec.name != project.entry).filter_map(|spec| {
        let model = spec.model.as_ref()?.name();
        (model != chosen).then(|| format!("{} ({model})", spec.name))
    });
    let own: Vec<String> = own.collect();
    (!own.is_empty()).then(|| format!("agents with a model of their own: {}", own.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flag_goes_before_the_file_and_the_file_before_the_environment() {
        let flag = ChosenModel::Flag("flag".to_owned());
        let variable = ChosenModel::Default("variable".to_owned());
        for (chosen, own, of_project, expected) in [
            (Some(&flag), Some("own"), Some("project"), Some("flag")),
            (Some(&flag), None, None, Some("flag")),
            (Some(&variable), Some("own"), Some("project"), Some("own")),
            (Some(&variable), None, Some("project"), Some("variable")),
            (None, Some("own"), Some("project"), Some("own")),
            (None, None, Some("project"), Some("project")),
            (None, None, None, None),
        ] {
            let effective = ChosenModel::effective(chosen, own.map(str::to_owned), of_project);
            assert_eq!(effective.as_deref(), expected);
        }
    }
}
