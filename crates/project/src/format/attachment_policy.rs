//! Which files agents take: what their headers say, and before them the manifest.

use std::path::{Component, Path};

use llm_do_core::{AttachmentPolicy, AttachmentSource, Payload, input_attachments};
use serde_json::Value;

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Node, span_of};
use crate::format::front_matter::HeaderDocument;
use crate::format::manifest::AttachmentSection;
use crate::format::manifest::ManifestFile;
use crate::source::{SourceFile, Span};

/// The key of the section, in headers and below `runtime` of manifests.
const KEY: &str = "attachment_policy";

/// Reads the policy of an agent: each key from its header, else from the manifest, else the usual.
pub(crate) fn policy(
    own: Option<&AttachmentSection>,
    general: Option<&AttachmentSection>,
) -> AttachmentPolicy {
    let usual = AttachmentPolicy::default();
    let sections = || own.into_iter().chain(general);
    AttachmentPolicy {
        max_attachments: sections()
            .find_map(|section| section.max_attachments)
            .unwrap_or(usual.max_attachments),
        max_total_bytes: sections()
            .find_map(|section| section.max_total_bytes)
            .unwrap_or(usual.max_total_bytes),
        allowed_suffixes: lowered(sections().find_map(|section| section.allowed_suffixes.as_ref())),
        denied_suffixes: lowered(sections().find_map(|section| section.denied_suffixes.as_ref())),
    }
}

impl AttachmentSection {
    /// Returns the policy that is written, with the usual for what is not.
    pub fn policy(&self) -> AttachmentPolicy {
        policy(Some(self), None)
    }
}

fn lowered(suffixes: Option<&Vec<String>>) -> Vec<String> {
    suffixes.into_iter().flatten().map(|suffix| suffix.to_lowercase()).collect()
}

/// Checks the endings that an agent names.
pub(crate) fn check_agent(agent: HeaderDocument<'_>, out: &mut Diagnostics) {
    let section = agent.header.attachment_policy.as_ref();
    check_suffixes(agent.source, agent.node, section, out);
}

/// Checks the endings that a manifest names, and where the files of the entry lie.
pub(crate) fn check_manifest(file: &ManifestFile, root: &Path, out: &mut Diagnostics) {
    if let Some(runtime) = file.node.field("runtime") {
        let section = file.manifest.runtime.attachment_policy.as_ref();
        check_suffixes(&file.source, &runtime.value, section, out);
    }
    check_entry(file, root, out);
}

fn check_suffixes(
    source: &SourceFile,
    node: &Node,
    section: Option<&AttachmentSection>,
    out: &mut Diagnostics,
) {
    let Some(section) = section else { return };
    let span = node.field(KEY);
    let lists =
        [("allowed_suffixes", &section.allowed_suffixes), ("denied_suffixes", &section.denied_suffixes)];
    for (key, suffixes) in lists {
        let is_bad = |suffix: &&String| suffix.len() < 2 || !suffix.starts_with('.') || suffix.contains('/');
        let Some(bad) = suffixes.iter().flatten().find(is_bad) else { continue };
        let span = span.map_or(Span::START, |field| span_of(&field.value, key));
        let message = format!("`{key}`: `{bad}` is not a suffix of a file name");
        let hint = format!("begin with a dot: `.{}`", bad.trim_start_matches(['.', '*', '/']));
        out.push(Diagnostic::error_at(source, &span, message).with_hint(hint));
    }
}

/// A project that somebody cloned does not choose files of theirs: those of `entry.args` lie inside it.
fn check_entry(file: &ManifestFile, root: &Path, out: &mut Diagnostics) {
    let Some(args) = &file.manifest.entry.args else { return };
    let span = file.node.field("entry").map_or(Span::START, |entry| span_of(&entry.value, "args"));
    for attachment in input_attachments(&Payload::new(Value::Object(args.clone()))) {
        let AttachmentSource::Path(path) = attachment.source else { continue };
        if lies_outside(root, &path) {
            let message =
                format!("`entry.args` attaches `{}`, which lies outside the project", path.display());
            let hint = "copy the file into the project, or give it with `--attach`";
            out.push(Diagnostic::error_at(&file.source, &span, message).with_hint(hint));
        }
    }
}

fn lies_outside(root: &Path, path: &Path) -> bool {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if !path.components().all(plain) {
        return true;
    }
    match (root.canonicalize(), root.join(path).canonicalize()) {
        (Ok(root), Ok(real)) => !real.starts_with(root),
        // What does not exist is said when it is read; a link that leads nowhere may lead somewhere then.
        _ => root.join(path).is_symlink(),
    }
}
