//! Models and providers that belong to the user, not to a project.
//!
//! They come from a configuration outside of every project, so they are not powers of a project, and no project
//! redeclares them. Reading such a configuration is up to the program.

use std::collections::BTreeMap;

use llm_do_core::ModelOverride;
use llm_do_models::{DeclaredProvider, StandardModels, StandardPrices};

/// The models and providers of the user.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UserModels {
    /// Other names for models, each with the model that it means.
    pub aliases: BTreeMap<String, String>,
    /// Providers besides the built-in ones.
    pub providers: Vec<DeclaredProvider>,
    /// Prices and abilities of single models. Abilities take precedence over those that a project states; a project's
    /// price counts only if it is higher.
    pub overrides: Vec<ModelOverride>,
}

impl UserModels {
    /// Adds everything to a catalog of models. What is added first takes precedence.
    pub fn add_to(&self, models: StandardModels) -> StandardModels {
        let aliases = self.aliases.iter();
        let models = aliases.fold(models, |models, (alias, model)| models.alias(alias, model));
        let models = self.providers.iter().cloned().fold(models, StandardModels::provider);
        models.overrides(self.overrides.clone())
    }

    /// Returns the prices of the user in place of the built-in ones, and those of a project where they are higher.
    pub fn prices(&self, project: impl IntoIterator<Item = ModelOverride>) -> StandardPrices {
        StandardPrices::new().with_own(self.overrides.clone()).with_overrides(project)
    }

    /// Returns the model of a name: that of an alias, or the name itself.
    pub fn resolve<'a>(&'a self, name: &'a str) -> &'a str {
        self.aliases.get(name).map_or(name, String::as_str)
    }

    /// Returns the variables that hold keys of the user's providers.
    pub(crate) fn key_variables(&self) -> impl Iterator<Item = &str> {
        self.providers.iter().filter_map(|provider| provider.key_env.as_deref())
    }
}
