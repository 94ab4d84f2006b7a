//! The reach of a project as text and as a Mermaid graph.

use std::collections::HashSet;
use std::fmt::{self, Write};

use llm_do_core::{Approval, Name};

use crate::reach::{Reach, ReachedCall, ReachedKind, ReachedProvider};

impl fmt::Display for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut drawn = HashSet::new();
        writeln!(f, "{}", self.heading(&self.entry))?;
        self.draw(f, &self.entry, "", &mut drawn)?;
        writeln!(f)?;
        let tools: Vec<&ReachedCall> = self
            .calls
            .iter()
            .filter(|call| call.kind != ReachedKind::Agent && call.refused.is_none() && !call.manual_only)
            .collect();
        let count = |approval| tools.iter().filter(|call| call.approval == approval).count();
        writeln!(
            f,
            "agents: {}, at most {} deep (limit {})",
            self.agents.len(),
            self.worst_depth,
            self.max_depth
        )?;
        write!(
            f,
            "tools: {} run freely, {} ask first, {} are blocked",
            count(Approval::PreApproved),
            count(Approval::Ask),
            count(Approval::Blocked)
        )?;
        let manual = self.calls.iter().filter(|call| call.manual_only).count();
        if manual > 0 {
            write!(f, "; {manual} not for models")?;
        }
        for provider in &self.providers {
            write!(f, "\nprovider {}: {}", provider.name, provider.describe())?;
        }
        if !self.code.is_empty() {
            write!(f, "\ncode that is run when the project is loaded: {}", self.code.join(", "))?;
        }
        if !self.code_variables.is_empty() {
            write!(f, "\nkeys of model providers that it sees: {}", self.code_variables.join(", "))?;
        }
        Ok(())
    }
}

impl Reach {
    fn heading(&self, agent: &Name) -> String {
        let Some(agent) = self.agents.iter().find(|other| other.name == *agent) else {
            return agent.to_string();
        };
        let model = agent.model.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
        let recursive = if agent.recursive { ", recursive" } else { "" };
        if agent.depth == 0 {
            return format!("{}  (function)", agent.name);
        }
        format!(
            "{}  (agent, depth {}, {} access{model}{recursive})",
            agent.name,
            agent.depth,
            agent.access.as_str()
        )
    }

    /// Draws what an agent can call. Each agent is opened once.
    fn draw(
        &self,
        f: &mut fmt::Formatter<'_>,
        agent: &Name,
        indent: &str,
        drawn: &mut HashSet<Name>,
    ) -> fmt::Result {
        drawn.insert(agent.clone());
        let calls: Vec<&ReachedCall> = self.calls.iter().filter(|call| call.agent == *agent).collect();
        for (index, call) in calls.iter().enumerate() {
            let is_last = index + 1 == calls.len();
            let (branch, below) = if is_last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
            let opens = call.kind == ReachedKind::Agent && call.is_open() && !drawn.contains(&call.name);
            writeln!(f, "{indent}{branch}{}", self.line(call, opens))?;
            if opens {
                self.draw(f, &call.name, &format!("{indent}{below}"), drawn)?;
            }
        }
        Ok(())
    }

    fn line(&self, call: &ReachedCall, opens: bool) -> String {
        let what = match call.kind {
            ReachedKind::Agent if opens => self.heading(&call.name),
            ReachedKind::Agent if call.recursive => format!("{}  (agent, again)", call.name),
            ReachedKind::Agent if call.is_open() => format!("{}  (agent, see elsewhere)", call.name),
            ReachedKind::Agent => format!("{}  (agent)", call.name),
            ReachedKind::Tool => match &call.toolset {
                Some(toolset) => format!("{}  ({toolset}, {} access)", call.name, call.access.as_str()),
                None => format!("{}  (tool, {} access)", call.name, call.access.as_str()),
            },
            ReachedKind::ServerTool => format!("{}  (at the provider)", call.name),
        };
        let by_code = if call.by_code { ", called by code" } else { "" };
        format!("{what}: {}{by_code}", call.fate())
    }

    /// Draws the reach as a Mermaid flowchart.
    pub fn mermaid(&self) -> String {
        let mut text = String::from("flowchart TD\n");
        let id = |name: &Name| {
            let index = self.agents.iter().position(|agent| agent.name == *name);
            index.map_or_else(|| "unreached".to_owned(), |index| format!("agent{index}"))
        };
        for (index, agent) in self.agents.iter().enumerate() {
            let _ = writeln!(text, "    agent{index}[\"{}\"]", escaped(&agent.name));
        }
        for (index, call) in self.calls.iter().enumerate() {
            let from = id(&call.agent);
            let label = escaped(&call.fate());
            let arrow = if call.by_code { "-.->" } else { "-->" };
            let to = match call.kind {
                ReachedKind::Agent if call.is_open() => id(&call.name),
                ReachedKind::Agent => format!("call{index}[\"{}\"]", escaped(&call.name)),
                _ => format!("call{index}([\"{}\"])", escaped(&call.name)),
            };
            let _ = writeln!(text, "    {from} {arrow}|\"{label}\"| {to}");
        }
        for (index, provider) in self.providers.iter().enumerate() {
            let label = format!("{} at {}", provider.name, provider.base_url);
            let _ = writeln!(text, "    provider{index}[/\"{}\"/]", escaped(&label));
            for agent in &provider.agents {
                let key = escaped(&provider.key_message());
                let _ = writeln!(text, "    {} ==>|\"{key}\"| provider{index}", id(agent));
            }
        }
        text
    }
}

impl ReachedProvider {
    fn describe(&self) -> String {
        let agents: Vec<&str> = self.agents.iter().map(Name::as_str).collect();
        let used = match agents.as_slice() {
            [] => "no agent names its models".to_owned(),
            agents => format!("asked by {}", agents.join(", ")),
        };
        format!("{} {}, {used}", self.base_url, self.key_message())
    }

    fn key_message(&self) -> String {
        match &self.api_key_env {
            Some(variable) => format!("is sent the value of {variable}"),
            None => "is sent no key".to_owned(),
        }
    }
}

impl ReachedCall {
    /// Returns whether the call can ever be made.
    fn is_open(&self) -> bool {
        self.refused.is_none() && self.approval != Approval::Blocked
    }

    /// What happens to such a call, in words.
    fn fate(&self) -> String {
        if let Some(reason) = &self.refused {
            return format!("refused, {reason}");
        }
        let fate = self.approval_message();
        if self.manual_only { format!("manual-only, {fate}") } else { fate }
    }

    fn approval_message(&self) -> String {
        let message = match self.approval {
            Approval::PreApproved if self.asks_with_attachments => "runs freely, asks with attachments",
            Approval::PreApproved => "runs freely",
            Approval::Ask if self.judged_by_tool => "runs, asks or is blocked as the tool judges the call",
            Approval::Ask => "asks first",
            Approval::Blocked => "blocked",
        };
        let decided = match self.decided_by {
            "rule" => " by a rule",
            "mode" => " by the approval mode",
            "policy" => " by the policy for agents",
            _ => "",
        };
        let notes: String = self.notes.iter().map(|note| format!("; {note}")).collect();
        format!("{message}{decided}{notes}")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}
