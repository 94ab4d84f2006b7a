//! The facts about its environment that an agent can ask for under `env_info`.

/// A fact, in the order in which facts are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fact {
    WorkingDirectory,
    Platform,
    Date,
    Hostname,
    Username,
    Git,
    FileMap,
}

impl Fact {
    /// All facts in their order.
    pub(crate) const ALL: [Self; 7] = [
        Self::WorkingDirectory,
        Self::Platform,
        Self::Date,
        Self::Hostname,
        Self::Username,
        Self::Git,
        Self::FileMap,
    ];

    /// Returns the name that files use.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::WorkingDirectory => "working_directory",
            Self::Platform => "platform",
            Self::Date => "date",
            Self::Hostname => "hostname",
            Self::Username => "username",
            Self::Git => "git",
            Self::FileMap => "file_map",
        }
    }

    /// Returns the fact with a name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fact| fact.as_str() == name)
    }
}
