//! Runs as pages and diagrams, and single calls.

use crate::support::{Ran, Sandbox};

/// A run whose values try to be markup.
fn hostile() -> Sandbox {
    let text = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \u{2028}";
    let quoted = serde_json::to_string(text).unwrap();
    let sandbox = Sandbox::asking().file(
        "script.yaml",
        &format!("mode: by_turn\nreplies:\n  - ask: {{helper: {{input: {quoted}}}}}\n  - say: {quoted}\n"),
    );
    sandbox.run(&["run", ".", text, "-a", "all"]).ended(0);
    sandbox
}

fn page(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let shown: Ran = sandbox.run(&[&["show", "last", "--output", "html"], arguments].concat());
    shown.ended(0).stdout
}

#[test]
fn the_page_of_a_run_holds_its_calls_and_nothing_that_it_could_obey() {
    let page = page(&hostile(), &[]);
    assert!(page.starts_with("<!doctype html>\n<html"), "{page}");
    // The data and the script of the page itself.
    assert_eq!(page.matches("<script").count(), 2);
    assert_eq!(page.matches("</script>").count(), 2);
    assert!(!page.contains("<img") && !page.contains("http:") && !page.contains("https:"), "{page}");
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    let calls = data["calls"].as_array().unwrap();
    let names: Vec<&str> = calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
    assert_eq!((names.as_slice(), &data["cut"]), (&["main", "helper"][..], &0.into()));
    assert!(calls[1]["input"].as_str().unwrap().contains("<img src=x onerror=alert(2)>"));
    assert_eq!(data["run"]["status"], "done");
}

#[test]
fn a_page_of_too_many_calls_says_how_many_it_leaves_out() {
    let sandbox = Sandbox::echo();
    sandbox.run(&["run", ".", "hello"]).ended(0);
    let connection = rusqlite::Connection::open(sandbox.state().join("llm-do/record.db")).unwrap();
    // 6,000 calls more, each with the beginning of the first one.
    connection
        .execute_batch(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
             INSERT INTO calls (stream, id, key, parent, depth, path, agent)
                SELECT stream, 1000 + i, key || '/t1/tool/' || i, key, 1, path, agent FROM calls, n WHERE key = '1';
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
             INSERT INTO events (stream, seq, call, key, time, body)
                SELECT stream, 1000 + i, 1000 + i, NULL, time, body FROM events, n
                WHERE body LIKE '%\"call_started\"%' AND stream = 1 AND seq < 1000;",
        )
        .unwrap();
    let page = page(&sandbox, &[]);
    let data = page.split("id=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: serde_json::Value = serde_json::from_str(data).unwrap();
    assert_eq!((data["calls"].as_array().unwrap().len(), &data["cut"]), (5_000, &1_001.into()));
    assert!(page.contains("more calls are not shown"));
    let diagram = sandbox.run(&["show", "last", "--output", "mermaid"]).ended(0).stdout;
    assert!(diagram.contains("more[\"5601 more calls\"]"), "{}", &diagram[..400]);
}

#[test]
fn the_calls_of_a_run_are_drawn_as_a_diagram() {
    let diagram = sandbox_with_failure().run(&["show", "last", "--output", "mermaid"]).ended(0).stdout;
    let expected = "flowchart TD\n    c0[\"agent main\"]\n    c1[\"agent helper\"]:::failed\n    c0 --> c1\n";
    assert!(diagram.starts_with(expected), "{diagram}");
}

/// A run in which a call was denied.
fn sandbox_with_failure() -> Sandbox {
    let sandbox = Sandbox::asking();
    sandbox.run(&["run", ".", "go", "-a", "none"]);
    sandbox
}

#[test]
fn one_call_is_shown_in_full() {
    let sandbox = hostile();
    let json = sandbox.run(&["show", "last", "--output", "json"]).json();
    let key = json["calls"][0]["calls"][0]["key"].as_str().unwrap().to_owned();
    let text = sandbox.run(&["show", "last", "--call", &key]).ended(0).stdout;
    assert!(text.contains(&format!("call     {key}\nagent    helper\npath     main > helper\n")), "{text}");
    assert!(text.contains("\napproval allowed by "), "{text}");
    assert!(text.contains("\ninput\n") && text.contains("\noutput\n"), "{text}");
    assert!(!text.contains('\u{2028}'), "{text}");
    let object = sandbox.run(&["show", "last", "--call", &key, "--output", "json"]).ended(0).json();
    assert_eq!(object, json["calls"][0]["calls"][0]);
    let lines = sandbox.run(&["show", "last", "--call", &key, "--output", "jsonl"]).ended(0).lines();
    assert!(lines.len() > 3 && lines.iter().all(|line| line["call"] == key.as_str()), "{lines:?}");
    let drawn = page(&sandbox, &["--call", &key]);
    assert!(!drawn.contains(r#""name":"main""#) && drawn.contains(r#""name":"helper""#));

    let denied = sandbox_with_failure();
    let text = denied.run(&["show", "last", "--call", "1"]).ended(0).stdout;
    assert!(text.contains("\ncalls\nagent helper "), "{text}");
    let text = denied.run(&["show", "last", "--call", &key]).ended(0).stdout;
    assert!(text.contains("\napproval refused: ") && text.contains("\nerror\n"), "{text}");
    let unknown = denied.run(&["show", "last", "--call", "1/x"]).ended(2);
    assert!(unknown.stderr.contains("has no call `1/x`"), "{unknown:?}");
}
