//! What the Responses endpoint has issued: reasoning, and responses that it stores.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::json::{items, text};

/// The reasoning and the responses of an account.
#[derive(Debug, Clone, Default)]
pub(crate) struct IssuedReasoning {
    pub(super) encrypted: HashSet<String>,
    /// By the id of a reasoning item: the item that followed it, by id and call id.
    pub(super) followers: HashMap<String, Option<Follower>>,
    /// By encrypted content: the id of the reasoning item.
    pub(super) reasoning_ids: HashMap<String, String>,
    /// By the id of an item: the reasoning item that came before it.
    pub(super) reasoning_before: HashMap<String, String>,
    /// By the id of a stored response: its items.
    pub(super) stored: HashMap<String, StoredResponse>,
}

/// The item after a reasoning item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Follower {
    pub(super) kind: String,
    pub(super) id: String,
    pub(super) call_id: String,
}

/// What a request that continues a response may refer to.
#[derive(Debug, Clone, Default)]
pub(super) struct StoredResponse {
    pub(super) calls: HashSet<String>,
    pub(super) items: HashSet<String>,
}

impl IssuedReasoning {
    pub(crate) fn remember(&mut self, response: &Value) {
        let output = items(response, "output");
        for (index, item) in output.iter().enumerate().filter(|(_, item)| item["type"] == "reasoning") {
            let encrypted = text(item, "encrypted_content").to_owned();
            let next = output[index + 1..].iter().find(|item| item["type"] != "reasoning");
            self.followers.insert(text(item, "id").to_owned(), next.map(follower));
            if let Some(next) = next {
                self.reasoning_before.insert(text(next, "id").to_owned(), text(item, "id").to_owned());
            }
            if !encrypted.is_empty() {
                self.reasoning_ids.insert(encrypted.clone(), text(item, "id").to_owned());
                self.encrypted.insert(encrypted);
            }
        }
        if response["store"] != false {
            let texts =
                |key: &str| output.iter().filter_map(|item| item[key].as_str()).map(str::to_owned).collect();
            let stored = StoredResponse { calls: texts("call_id"), items: texts("id") };
            self.stored.insert(text(response, "id").to_owned(), stored);
        }
    }
}

fn follower(item: &Value) -> Follower {
    let owned = |key: &str| text(item, key).to_owned();
    Follower { kind: owned("type"), id: owned("id"), call_id: owned("call_id") }
}
