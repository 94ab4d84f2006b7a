//! `llm-do usage`: what recorded runs cost.

use std::fmt::Write;

use llm_do_record::{UsageBy, UsageRow};
use serde_json::{Value, json};

use crate::arguments::{ListOutput, UsageArguments, UsageGroup};
use crate::command_error::CommandError;
use crate::exit::Exit;
use crate::output;
use crate::record::{self, cost};
use crate::text::visible_line;

/// Adds up what recorded requests used.
pub(crate) fn usage(arguments: &UsageArguments) -> Result<Exit, CommandError> {
    let by = match arguments.by {
        UsageGroup::Model => UsageBy::Model,
        UsageGroup::Agent => UsageBy::Agent,
        UsageGroup::Day => UsageBy::Day,
    };
    let rows = match record::reader(&arguments.record)? {
        Some(reader) => reader.usage(by, arguments.since).map_err(|error| record::failed(&error))?,
        None => Vec::new(),
    };
    match arguments.output {
        ListOutput::Json => {
            let list: Vec<Value> = rows.iter().map(object).collect();
            output::to_stdout(&serde_json::to_string_pretty(&list).unwrap_or_default());
        }
        ListOutput::Text if rows.is_empty() => output::to_stderr("nothing was used"),
        ListOutput::Text => drop(output::to_stdout(table(arguments.by, &rows).trim_end())),
    }
    Ok(Exit::Done)
}

fn table(by: UsageGroup, rows: &[UsageRow]) -> String {
    let title = match by {
        UsageGroup::Model => "model",
        UsageGroup::Agent => "agent",
        UsageGroup::Day => "day",
    };
    let names: Vec<String> = rows.iter().map(|row| visible_line(&row.name)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default().max(title.len());
    let mut text = format!(
        "{title:width$}  {:>8}  {:>12}  {:>12}  {:>10}\n",
        "requests", "tokens in", "tokens out", "cost"
    );
    for (row, name) in rows.iter().zip(names) {
        let cost = cost(row.cost, row.unpriced);
        let _ = writeln!(
            text,
            "{name:width$}  {:>8}  {:>12}  {:>12}  {cost:>10}",
            row.requests, row.input, row.output
        );
    }
    text
}

fn object(row: &UsageRow) -> Value {
    json!({
        "name": row.name,
        "requests": row.requests,
        "input": row.input,
        "output": row.output,
        "cache_read": row.cache_read,
        "cost_usd": (row.unpriced == 0).then(|| row.cost.dollars()),
        "known_cost_usd": row.cost.dollars(),
        "unpriced_requests": row.unpriced,
    })
}
