//! Reads agents that are created while a project runs, as if they had been there when it was loaded.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use llm_do_core::{AgentSpec, Name};

use crate::catalog::Catalog;
use crate::code::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{NodeContent, span_of};
use crate::format::manifest::ManifestFile;
use crate::format::schema;
use crate::link::KnownCode;
use crate::link::LinkedAgents;
use crate::link::ModelNames;
use crate::link::{Listed, Toolsets};
use crate::link::{agent_spec, check_agent_names, check_names, expand_aliases};
use crate::loaded::LoadedProject;
use crate::project_files::ProjectFiles;
use crate::read::GENERATED;
use crate::read::agent::Agent;
use crate::read::agent_file;
use crate::source::SourceFile;

/// Where the agents of a project are kept that agents and code create, and what they are linked against.
#[derive(Clone)]
pub struct Workshop {
    pub(crate) root: PathBuf,
    pub(crate) directory: PathBuf,
    pub(crate) manifest: Option<Arc<ManifestFile>>,
    pub(crate) files: ProjectFiles,
    pub(crate) code: Option<Arc<Code>>,
    pub(crate) catalog: Arc<dyn Catalog>,
}

impl LoadedProject {
    /// Returns the workshop in which agents are created while the project runs. They may name what the catalog
    /// knows with which the project was loaded.
    pub fn workshop(&self) -> Workshop {
        Workshop {
            root: self.root.clone(),
            directory: self.generated.clone(),
            manifest: self.manifest.clone(),
            files: self.files.clone(),
            code: self.code.clone(),
            catalog: self.catalog.clone(),
        }
    }
}

/// No generated agent file is larger than this.
const MAX_BYTES: usize = 256 * 1024;

/// A flag in the header of an agent file; nothing where the header cannot be read.
fn flag(text: &str, key: &str) -> Option<bool> {
    let file = agent_file::read(SourceFile::new("", text)).ok()?;
    Some(file.header.field(key).is_some_and(|field| matches!(field.value.content, NodeContent::Bool(true))))
}

impl Workshop {
    /// Makes a workshop for a project that is not made of files, with its agents below `agents/generated` of its directory.
    pub fn new(root: impl Into<PathBuf>, catalog: Arc<dyn Catalog>) -> Self {
        Self {
            root: root.into(),
            directory: PathBuf::from(GENERATED),
            manifest: None,
            files: ProjectFiles::default(),
            code: None,
            catalog,
        }
    }

    /// Returns the directory of the project.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the path of a generated agent's file, relative to the project.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.agent"))
    }

    /// Returns whether the text of an agent file says that an agent or code created it.
    pub fn is_generated(&self, text: &str) -> bool {
        flag(text, "generated") == Some(true)
    }

    /// Returns whether an agent file may be replaced by force only. One that cannot be read is left alone.
    pub fn is_locked(&self, text: &str) -> bool {
        flag(text, "locked").unwrap_or(true)
    }

    /// Reads the text of a generated agent, or says everything that is wrong with it. The others are the agents
    /// that it may name.
    pub fn read(&self, name: &str, text: &str, others: &[Name]) -> Result<AgentSpec, Diagnostics> {
        let mut out = Diagnostics::default();
        let spec = self.try_read(name, text, others, &mut out);
        match spec {
            Some(spec) if !out.has_errors() => Ok(spec),
            _ => Err(out),
        }
    }

    fn try_read(&self, name: &str, text: &str, others: &[Name], out: &mut Diagnostics) -> Option<AgentSpec> {
        let source = SourceFile::new(self.path_of(name), text);
        if text.len() > MAX_BYTES {
            let message = format!("the agent file would have {} bytes, more than {MAX_BYTES}", text.len());
            out.push(Diagnostic::error(&source.path, message).with_hint("write shorter instructions"));
            return None;
        }
        let file = agent_file::read(source).map_err(|diagnostic| out.push(*diagnostic)).ok()?;
        let header = schema::read(&file.source, &file.header, out)?;
        let mut agent = [Agent { file: file.generated(), header }];
        expand_aliases(&mut agent[0], &*self.catalog);
        if agent[0].header.name != name {
            let message = format!("the agent in `{name}.agent` is named `{}`", agent[0].header.name);
            out.push(Diagnostic::error(&agent[0].file.source.path, message));
        }
        let others: Vec<String> = others.iter().filter(|other| *other != name).map(Name::to_string).collect();
        let (manifest, catalog) = (self.manifest.as_deref(), &*self.catalog);
        check_names(&agent, catalog, out);
        let code = self.code.as_deref().map_or(KnownCode::Absent, |code| KnownCode::Run(code, &[]));
        ModelNames::new(manifest, code, catalog, &self.root).check_agent(&agent[0], out);
        refuse_classes(&agent[0], out);
        refuse_files(&agent[0], out);
        let linked = LinkedAgents::new();
        let listed = Listed { manifest, root: &self.root, files: &self.files, code, linked: &linked };
        let mut toolsets = Toolsets::new(listed, &agent, &others, catalog, out);
        let mut spec = agent_spec(&agent[0], listed, &mut toolsets, out);
        toolsets.give_own(&mut spec);
        check_agent_names(None, &agent, &others, code, out);
        Some(spec)
    }
}

/// Classes are found when a project is loaded.
fn refuse_classes(agent: &Agent, out: &mut Diagnostics) {
    for (key, reference, _) in agent.header.classes() {
        let message =
            format!("`{key}` names the class `{reference}`, but created agents cannot use Python classes");
        let span = span_of(&agent.file.header, key);
        let hint = "write the schema as JSON Schema under `input_schema` or `output_schema`";
        out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint(hint));
    }
}

/// What reaches beyond the toolsets of its creator is written by persons.
fn refuse_files(agent: &Agent, out: &mut Diagnostics) {
    let header = &agent.header;
    let written = [
        ("programs", !header.programs.is_empty()),
        ("preload", !header.preload.is_empty()),
        ("env_info", header.env_info.is_some()),
        ("tuning", header.tuning.is_some()),
        ("tools", header.tools.iter().any(|entry| entry.is_reworded())),
    ];
    for (key, _) in written.into_iter().filter(|(_, is_written)| *is_written) {
        let message = format!("`{key}` is not allowed in a created agent: only a person may write it");
        let span = span_of(&agent.file.header, key);
        out.push(Diagnostic::error_at(&agent.file.source, &span, message).with_hint("remove it"));
    }
}
