
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);

function add(parent, name, text, className) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

function addCut(parent) {
  if (data.cut > 0) {
    add(parent, "p", `This page ends here: ${data.cut} more calls are not shown.`, "cut");
  }
}

function drawRun(run) {
  document.title = `llm-do run ${run.run_id.slice(0, 8)}`;
  add(document.body, "h1", `${run.entry}: ${run.title}`);
  const list = add(document.body, "dl");
  for (const name of ["run_id", "status", "error", "project", "began", "ended", "tokens_in", "tokens_out", "cost_usd"]) {
    if (run[name] === null || run[name] === undefined) continue;
    add(list, "dt", name);
    add(list, "dd", String(run[name]));
  }
}

function drawCall(call, parent) {
  const state = call.error !== null ? "failed" : call.output === null ? "open-end" : "";
  const details = add(parent, "details", undefined, state);
  const summary = add(details, "summary");
  add(summary, "span", `${call.kind} `, "kind");
  add(summary, "b", call.name);
  const open = call.waits ? "waits for an answer" : "no end";
  const time = call.ms === null ? open : `${call.ms} ms`;
  const tokens = call.tokens > 0 ? `, ${call.tokens} tokens` : "";
  add(summary, "span", `  ${time}${tokens}  ${call.key}`, "note");
  for (const part of ["input", "output", "error"]) {
    if (call[part] === null) continue;
    add(details, "div", part);
    add(details, "pre", call[part]);
  }
  return details;
}

drawRun(data.run);
addCut(document.body);
// A call comes before those below it.
const drawn = [];
for (const call of data.calls) {
  while (drawn.length > 0 && !call.key.startsWith(`${drawn[drawn.length - 1].key}/`)) drawn.pop();
  const parent = drawn.length > 0 ? drawn[drawn.length - 1].element : document.body;
  drawn.push({ key: call.key, element: drawCall(call, parent) });
}
addCut(document.body);
