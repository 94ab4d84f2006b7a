//! Values that go into calls and come out of them: names, schemas, inputs, prompts, attachments.

pub use llm_do_core::{
    Accepted, AgentArgs, Attachment, AttachmentPolicy, AttachmentSource, Bytes, Content, Digest, Input,
    InputPart, Key, Name, Prompt, Schema, SchemaError, SchemaProblem, Template, TemplateError,
    input_attachments, schema_value_of,
};
pub use llm_do_runtime::PromptInput;
