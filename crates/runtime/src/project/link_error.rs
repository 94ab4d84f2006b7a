//! What can be wrong with a project, and what to do about it.

use std::fmt;

use llm_do_core::{Name, NeedSpec, TemplateError};

/// Everything that is wrong with a project.
#[derive(Clone, PartialEq, Eq)]
pub struct LinkErrors(pub Vec<LinkError>);

/// One thing that is wrong with a project.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A name that cannot be called.
    #[error("the {kind} name `{name}` is not valid")]
    BadName {
        /// What it is the name of.
        kind: NameKind,
        /// The name.
        name: Name,
    },
    /// Two things share one name.
    #[error("the name `{name}` is used by {}", both(*first, *second))]
    Duplicate {
        /// The name.
        name: Name,
        /// What has it first.
        first: NameKind,
        /// What has it too.
        second: NameKind,
    },
    /// A new agent has the name of one that a person wrote.
    #[error("the agent `{name}` was written by a person and is never replaced")]
    Taken {
        /// The name.
        name: Name,
    },
    /// An agent lists something that does not exist.
    #[error("agent `{agent}` names the {kind} `{name}`, which does not exist")]
    Unknown {
        /// The agent.
        agent: Name,
        /// What it names.
        kind: NameKind,
        /// The name.
        name: Name,
        /// What may have been meant.
        nearest: Option<String>,
        /// What to do, if that is more than choosing another name.
        advice: Option<String>,
    },
    /// Two tools of one agent share a name.
    #[error("agent `{agent}` lists two tools with the name `{name}`: {first}, and {second}")]
    Collision {
        /// The agent.
        agent: Name,
        /// The name.
        name: Name,
        /// What has it first.
        first: String,
        /// What has it too.
        second: String,
    },
    /// A tool has a name that the runtime needs.
    #[error("agent `{agent}` has an output schema and lists a tool with the reserved name `{name}`")]
    ReservedName {
        /// The agent.
        agent: Name,
        /// The name.
        name: Name,
    },
    /// A name or glob cannot be read.
    #[error(
        "agent `{agent}` has an approval rule, agent name or manual-only tool that cannot be read: {reason}"
    )]
    BadGlob {
        /// The agent.
        agent: Name,
        /// What is wrong.
        reason: String,
    },
    /// A tool needs a context value that nobody provides.
    #[error("the tool `{tool}` needs the context value `{}`, which nobody provides", need.label())]
    MissingNeed {
        /// The tool.
        tool: Name,
        /// What it needs.
        need: NeedSpec,
        /// What is provided.
        provided: Vec<String>,
    },
    /// A toolset cannot be made with the settings of an agent.
    #[error("agent `{agent}`: toolset `{toolset}`: {reason}")]
    BadSettings {
        /// The agent.
        agent: Name,
        /// The toolset.
        toolset: Name,
        /// What is wrong.
        reason: String,
    },
    /// The prompt of an agent is not a usable template.
    #[error("agent `{agent}`: the prompt {error}")]
    BadPrompt {
        /// The agent.
        agent: Name,
        /// What is wrong.
        error: TemplateError,
        /// The field that may have been meant.
        nearest: Option<String>,
    },
    /// A policy for calls of agents names an agent that does not exist.
    #[error("the policy for calls of agents names the agent `{name}`, which does not exist")]
    UnknownOverride {
        /// The name.
        name: Name,
        /// What may have been meant.
        nearest: Option<String>,
    },
    /// A limit cannot be kept.
    #[error("{problem}")]
    BadLimit {
        /// What is wrong.
        problem: String,
        /// What to do.
        hint: String,
    },
}

impl LinkError {
    /// Says what can be done about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::BadName { .. } => Some("use 1 to 64 letters, digits, `_` and `-`".into()),
            Self::Duplicate { .. } => Some("rename one of them".into()),
            Self::Taken { .. } => Some("choose another name".into()),
            Self::Unknown { advice: Some(advice), .. } => Some(advice.clone()),
            Self::Unknown { nearest, .. } => nearest.as_ref().map(|near| format!("did you mean `{near}`?")),
            Self::BadSettings { .. } => None,
            Self::Collision { .. } => Some(
                "list only one of them, or give one toolset a `prefix`: `- shell_file_ops: {prefix: own_}`"
                    .into(),
            ),
            Self::ReservedName { .. } => {
                Some("rename the tool: the answer is given through that name".into())
            }
            Self::BadGlob { .. } => {
                Some("write a tool's name, `toolset.tool`, or a glob such as `write_*`".into())
            }
            Self::MissingNeed { need, provided, .. } => {
                let provided = if provided.is_empty() { "nothing".to_owned() } else { provided.join(", ") };
                Some(format!("{}; provided now: {provided}", need.how_to_provide()))
            }
            Self::UnknownOverride { nearest, .. } | Self::BadPrompt { nearest, .. } => {
                nearest.as_ref().map(|near| format!("did you mean `{near}`?"))
            }
            Self::BadLimit { hint, .. } => Some(hint.clone()),
        }
    }
}

/// What a name is the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameKind {
    /// An agent.
    Agent,
    /// An entry.
    Entry,
    /// A tool.
    Tool,
    /// A toolset.
    Toolset,
    /// An approval rule of an agent, which names a tool.
    ApprovalRule,
    /// A tool that only a person or code may call.
    ManualOnlyTool,
    /// A tool that an agent offers in another way.
    ChangedTool,
    /// A parameter of a tool.
    Parameter,
}

impl NameKind {
    /// Returns the kind as messages name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Entry => "entry",
            Self::Tool => "tool",
            Self::Toolset => "toolset",
            Self::ApprovalRule => "approval rule",
            Self::ManualOnlyTool => "manual-only tool",
            Self::ChangedTool => "changed tool",
            Self::Parameter => "parameter",
        }
    }
}

impl fmt::Display for NameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn both(first: NameKind, second: NameKind) -> String {
    match first == second {
        true => format!("two {first}s"),
        false => format!("both {} and {}", with_article(first), with_article(second)),
    }
}

fn with_article(kind: NameKind) -> String {
    let article = if kind.as_str().starts_with(['a', 'e']) { "an" } else { "a" };
    format!("{article} {kind}")
}

/// As people read it: a program whose `main` returns the error prints this.
impl fmt::Debug for LinkErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for LinkErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            let separator = if index > 0 { "\n" } else { "" };
            write!(f, "{separator}{problem}")?;
            if let Some(hint) = problem.hint() {
                write!(f, "\nhint: {hint}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for LinkErrors {}
