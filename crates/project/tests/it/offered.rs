//! What models are offered: input schemas, server-side tools and names, checked before a provider refuses them.

use llm_do_project::{LoadedProject, load};
use llm_do_testing::TestDir;
use serde_json::json;

use crate::parts::Names;

/// Loads agents by name, each with the rest of its header.
fn project(agents: &[(&str, &str)]) -> Result<LoadedProject, String> {
    let folder = TestDir::new();
    for (name, header) in agents {
        folder.write(format!("{name}.agent"), format!("---\nname: {name}\n{header}\n---\nDo it.\n"));
    }
    load(folder.path(), &Names).map_err(|diagnostics| diagnostics.to_string())
}

#[track_caller]
fn notices(agents: &[(&str, &str)]) -> Vec<String> {
    let loaded = project(agents).unwrap_or_else(|text| panic!("{text}"));
    loaded.notices.notices().map(ToString::to_string).collect()
}

#[track_caller]
fn refused(agents: &[(&str, &str)]) -> String {
    project(agents).err().unwrap()
}

#[test]
fn an_input_schema_without_a_type_is_one_of_an_object() {
    let header = "model: test:echo\ninput_schema: {properties: {topic: {type: string}}}";
    let loaded = project(&[("main", header)]).unwrap_or_else(|text| panic!("{text}"));
    let outline = loaded.project.outline();
    let input = outline[0].agent.as_ref().unwrap().input.clone().unwrap();
    assert_eq!(*input.source(), json!({"properties": {"topic": {"type": "string"}}, "type": "object"}));
    assert!(loaded.notices.0.is_empty(), "{}", loaded.notices);
}

#[test]
fn a_combiner_at_the_top_of_an_input_schema_is_reported_with_its_line() {
    for key in ["oneOf", "anyOf", "allOf"] {
        let header =
            format!("model: test:echo\ninput_schema:\n  {key}:\n    - properties: {{a: {{type: string}}}}");
        let found = notices(&[("main", &header)]);
        let expected = format!("`input_schema` has `{key}` at its top");
        assert!(found.len() == 1 && found[0].contains(&expected), "{found:?}");
        assert!(found[0].contains("line 5") && found[0].contains("hint: list the fields"), "{}", found[0]);
    }
}

#[test]
fn an_input_schema_that_allows_more_than_objects_is_refused() {
    let schemas = [
        ("{type: string}", "allows `string`"),
        ("{type: [object, 'null']}", r#"allows ["object","null"]"#),
        ("{anyOf: [{type: object}, {type: array}]}", "allows `array`"),
        ("{const: 3}", "allows the value 3"),
        ("{$ref: '#/$defs/T', $defs: {T: {type: integer}}}", "allows `integer`"),
        (
            "{allOf: [{oneOf: [{type: object}, {$ref: '#/$defs/T'}]}], $defs: {T: {type: 'null'}}}",
            "allows `null`",
        ),
    ];
    for (schema, expected) in schemas {
        let text = refused(&[("main", &format!("model: test:echo\ninput_schema: {schema}"))]);
        assert!(text.contains("must be of type `object`") && text.contains(expected), "{text}");
        assert!(text.contains("main.agent, line 4") && text.contains("hint: write `type: object`"), "{text}");
    }
}

#[test]
fn contradictory_server_side_tools_are_refused() {
    let tools = "model: test:echo\nserver_side_tools:\n";
    let twice = format!("{tools}  - tool_type: web_search\n  - tool_type: web_search\n    max_uses: 3");
    let text = refused(&[("main", &twice)]);
    assert!(
        text.contains("`server_side_tools` lists `web_search` twice") && text.contains("line 6"),
        "{text}"
    );
    let both = format!(
        "{tools}  - tool_type: web_fetch\n    allowed_domains: [a.org]\n    blocked_domains: [b.org]"
    );
    let text = refused(&[("main", &both)]);
    assert!(text.contains("`web_fetch` has both `allowed_domains` and `blocked_domains`"), "{text}");
    assert!(text.contains("hint: keep one of them"), "{text}");
}

#[test]
fn a_server_side_tool_named_like_a_tool_of_the_agent_is_refused() {
    let main =
        "entry: true\nmodel: test:echo\ntoolsets: [web_search]\nserver_side_tools: [{tool_type: web_search}]";
    let text = refused(&[("main", main), ("web_search", "model: test:echo")]);
    assert!(text.contains("`web_search` is both a server-side tool and a tool of agent `main`"), "{text}");
    assert!(text.contains("main.agent, line 6") && text.contains("hint: "), "{text}");
}

#[test]
fn a_name_that_gemini_refuses_is_reported_where_gemini_may_be_asked() {
    let agents = |model: &'static str| [("main", model), ("7zip", "model: test:echo")];
    let listed = "entry: true\ntoolsets: [7zip]";
    let found = notices(&agents(listed));
    assert!(found.len() == 1 && found[0].contains("Gemini models are not offered `7zip`"), "{found:?}");
    assert!(found[0].contains("main.agent, line 4"), "{}", found[0]);
    let found = notices(&agents("entry: true\nmodel: test:echo\ntoolsets: [7zip]"));
    assert_eq!(found, Vec::<String>::new());
    let fallback = "entry: true\nmodel: test:echo\nfallback_models: ['test:gemini']\ntoolsets: [7zip]";
    assert_eq!(notices(&agents(fallback)).len(), 1);
}

#[test]
fn a_parameter_that_claude_refuses_is_reported_where_claude_may_be_asked() {
    let sizes =
        "model: test:echo\ninput_schema: {properties: {größe: {type: string}, a.b-c: {type: string}}}";
    let found = notices(&[("main", "entry: true\ntoolsets: [sizes]"), ("sizes", sizes)]);
    assert!(found.len() == 1 && found[0].contains("the parameter name `größe` of `sizes`"), "{found:?}");
    assert!(found[0].contains("hint: use 1 to 64 letters"), "{}", found[0]);
    let main = "entry: true\nmodel: test:echo\ntoolsets: [sizes]";
    assert_eq!(notices(&[("main", main), ("sizes", sizes)]), Vec::<String>::new());
}
