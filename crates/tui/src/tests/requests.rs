//! Questions as the tools of this project ask them.

use llm_do_core::{
    Access, ApprovalRequest, Exhausted, ExtensionRequest, Quantity, Scope, ShownAttachment, Subject,
};
use serde_json::{Value, json};

/// A question about a tool with these arguments.
pub(super) fn request(tool: &str, arguments: Value) -> ApprovalRequest {
    ApprovalRequest {
        id: "1/t9".into(),
        path: format!("main > {tool}"),
        agent: "main".into(),
        name: tool.into(),
        own_name: None,
        toolset: None,
        arguments: arguments.into(),
        access: Access::Write,
        description: format!("calls {tool}"),
        reason: format!("`{tool}` must ask before it runs"),
        preview: None,
        subjects: Vec::new(),
        attachments: Vec::new(),
        scopes: vec![Scope::Tool],
        edit_problem: None,
        digest: None,
        expires: None,
    }
}

/// A file is written over.
pub(super) fn write() -> ApprovalRequest {
    let diff = "--- notes/plan.md\n+++ notes/plan.md\n@@ -1,4 +1,4 @@\n # Plan\n-- buy a boat\n+- rent a boat, and ask \
                first whether the harbour has room for it in the second week of July\n - sail\n \tindented";
    ApprovalRequest {
        path: "main > organise() > namer > write_file".to_owned(),
        agent: "namer".into(),
        toolset: Some("files".into()),
        description: "write 112 bytes over `notes/plan.md`".to_owned(),
        reason: "writing below `notes` asks".to_owned(),
        preview: Some(diff.to_owned()),
        subjects: vec![Subject::Path("notes/plan.md".to_owned())],
        scopes: vec![Scope::Directory("notes".to_owned()), Scope::Tool],
        ..request(
            "write_file",
            json!({"path": "notes/plan.md", "content": "# Plan\n- rent a boat\n- sail\n"}),
        )
    }
}

/// A command is run.
pub(super) fn shell() -> ApprovalRequest {
    let words = ["cargo", "test", "--workspace"].map(str::to_owned).to_vec();
    ApprovalRequest {
        description: "run `cargo test --workspace` in `crates/core`".to_owned(),
        reason: "no rule of the shell allows it".to_owned(),
        subjects: vec![Subject::Command(words.clone())],
        scopes: vec![Scope::CommandPrefix(words[..2].to_vec()), Scope::Tool],
        ..request("run_command", json!({"command": "cargo test --workspace", "directory": "crates/core"}))
    }
}

/// An agent is given files.
pub(super) fn files() -> ApprovalRequest {
    let picture = ShownAttachment {
        name: "/home/ann/pictures/harbour.png".to_owned(),
        media_type: Some("image/png".to_owned()),
        bytes: 120_345,
    };
    let table = ShownAttachment { name: "berths.bin".to_owned(), media_type: None, bytes: 12 };
    ApprovalRequest {
        description: "ask the agent `seer`, with 2 files".to_owned(),
        attachments: vec![picture, table],
        ..request("seer", json!({"input": "What is on this?"}))
    }
}

/// Nothing here is what it seems.
pub(super) fn deceitful() -> ApprovalRequest {
    request(
        "send\u{200b}",
        json!({"to": "аdmin@example.org", "text": "\u{1b}[2Jhi\u{202e}gnp.exe\u{200b}", "path": "notes\u{2044}a"}),
    )
}

/// Arguments of many rows.
pub(super) fn long() -> ApprovalRequest {
    let lines: Vec<String> = (1..=60).map(|number| format!("line {number} of a long list")).collect();
    request("store", json!({"lines": lines, "note": "x".repeat(200)}))
}

/// A budget is used up.
pub(super) fn extension(what: Quantity) -> ExtensionRequest {
    let (limit, used, needed) = match what {
        Quantity::Cost => (500_000_000, 480_000_000, 60_000_000),
        Quantity::Tokens => (100_000, 98_000, 4_000),
        Quantity::ToolCalls => (10, 10, 1),
        Quantity::Requests => (1_000, 1_000, 1),
    };
    let exhausted = Exhausted { what, owner: Exhausted::THE_RUN.to_owned(), limit, used, needed };
    ExtensionRequest { path: "main > writer".to_owned(), exhausted }
}
