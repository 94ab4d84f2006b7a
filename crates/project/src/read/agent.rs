//! Agents whose headers were checked against their format.

use crate::diagnostic::Diagnostics;
use crate::format::front_matter::{Header, HeaderDocument};
use crate::format::schema;
use crate::read::agent_file::AgentFile;

/// An agent with where it comes from.
pub(crate) struct Agent {
    pub(crate) file: AgentFile,
    pub(crate) header: Header,
}

impl Agent {
    /// Returns the header with its document.
    pub(crate) fn document(&self) -> HeaderDocument<'_> {
        HeaderDocument { source: &self.file.source, node: &self.file.header, header: &self.header }
    }

    /// Returns whether an agent or code created it: it says so, and lies where such agents are kept.
    pub(crate) fn is_generated(&self) -> bool {
        self.header.generated && self.file.generated
    }

    /// Returns whether a run may start with it although the manifest does not name it.
    pub(crate) fn may_be_entry(&self) -> bool {
        !self.is_generated() && !self.file.is_linked
    }
}

/// The agents of a project, and the names of those whose header is wrong: they exist, and it is said already
/// what is wrong with them.
pub(crate) struct Headers {
    pub(crate) agents: Vec<Agent>,
    pub(crate) unread: Vec<String>,
}

/// Checks the headers of agent files against their format.
pub(crate) fn read_headers(files: Vec<AgentFile>, out: &mut Diagnostics) -> Headers {
    let mut headers = Headers { agents: Vec::new(), unread: Vec::new() };
    for file in files {
        match schema::read(&file.source, &file.header, out) {
            Some(header) => headers.agents.push(Agent { file, header }),
            None => headers.unread.extend(file.written_name().map(str::to_owned)),
        }
    }
    headers
}
