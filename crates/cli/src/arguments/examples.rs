//! What `--help` prints after the flags of each command.

pub(super) const EXAMPLES: &str = "\
Examples:
  llm-do init hello                         create a project
  llm-do run hello \"Good morning\"           run it
  llm-do hello \"Good morning\"               the same, in short
  cd hello && llm-do run \"Good morning\"     PATH is optional inside a project
  cat notes.txt | llm-do run summary.agent  take the input from a pipe
  cat err.log | llm-do run hello \"Why?\"     add the pipe to the prompt
  llm-do check hello --reach                show what it can touch

`llm-do COMMAND --help` explains the flags of a command.

Exit codes:
  0    done                                5    denied
  1    failed                              6    answer does not fit its schema
  2    bad usage or a bad project          124  out of time (`--timeout`)
  3    provider or network failed          130  interrupted
  4    a limit was reached                 141  stdout was closed early
  75   parked: waits for answers           143  terminated (SIGTERM)
  129  hung up (SIGHUP)";

pub(super) const PATH_OR_PROMPT: &str = "\
A single argument is PATH if it names an existing file or directory or looks like a path (`a/b`, `x.agent`). \
Otherwise it is the prompt, for the project of the current directory. `-p TEXT` is always the prompt.";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  llm-do run hello \"Good morning\"
  llm-do run hello \"Translate\" --attach letter.pdf --model openai:gpt-5
  llm-do run plan.agent --input-json '{\"topic\": \"Rust\"}' --output json
  llm-do run ci \"Fix the tests\" --approve all --max-cost 0.50 --timeout 10m";

pub(super) const CHAT_EXAMPLES: &str = "\
Examples:
  llm-do chat hello
  llm-do chat hello \"What is in this picture?\" --attach cat.png
  llm-do chat --continue                           the newest chat with this project
  llm-do chat --fork 01a1e5f7 --at 2               a copy of a chat, up to its turn 2

/help lists the commands of a chat.";

pub(super) const CHECK_EXAMPLES: &str = "\
Examples:
  llm-do check hello                               every problem, with its line
  llm-do check hello --reach                       what it can touch
  llm-do check hello --reach --output mermaid      the same as a graph
  llm-do check hello --set agents.main.model=test  with a changed key";

pub(super) const LIST_EXAMPLES: &str = "\
Examples:
  llm-do list hello
  llm-do list hello --output json | jq '.tools[].name'";

pub(super) const CALL_EXAMPLES: &str = "\
Examples:
  llm-do call hello read_file --input-json '{\"path\": \"a.txt\"}' --dry-run
  llm-do call hello reviewer --input-json '{\"input\": \"Be strict.\"}'
  echo \"Be strict.\" | llm-do call hello reviewer";

pub(super) const INIT_EXAMPLES: &str = "\
Examples:
  llm-do init hello
  llm-do init tools --template python";

pub(super) const MODELS_EXAMPLES: &str = "\
Examples:
  llm-do models                        providers, and which keys are set
  llm-do models --list anthropic       its models, with prices
  llm-do models -m openai:gpt-5        what one model can do and costs";

pub(super) const TRUST_EXAMPLES: &str = "\
Examples:
  llm-do trust hello              show its powers, and ask
  llm-do trust hello --revoke     stop trusting it
  llm-do trust --list             show what you trust";

pub(super) const SCHEMA_EXAMPLES: &str = "\
Examples:
  llm-do schema manifest > project.schema.json
  llm-do schema output";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Examples:
  llm-do doctor
  llm-do doctor --model anthropic:claude-sonnet-4-5";

pub(super) const COMPLETION_EXAMPLES: &str = "\
Examples:
  llm-do completions bash > ~/.local/share/bash-completion/completions/llm-do
  llm-do completions fish > ~/.config/fish/completions/llm-do.fish";

pub(super) const CONFIG_EXAMPLES: &str = "\
Without a command, all settings are printed with their origin.

Examples:
  llm-do config
  llm-do config set model anthropic:claude-sonnet-4-5
  llm-do config set aliases.fast openai:gpt-5-mini";

pub(super) const AUTH_EXAMPLES: &str = "\
Examples:
  llm-do auth login openai
  pass show openai | llm-do auth login openai --stdin
  llm-do auth list";

pub(super) const RESUME_EXAMPLES: &str = "\
What is recorded as done is not done again, and what was spent counts. The run keeps its limits, and its approval mode or a \
stricter one; limits that are given replace its own.

Examples:
  llm-do resume last
  llm-do resume 01a1e5f7 --max-cost 2
  llm-do resume last --diff --changed recorded";

pub(super) const APPROVALS_EXAMPLES: &str = "\
A run with `--approve park` ends at such a question; a run that is still going on takes the answer at once.

Examples:
  llm-do approvals
  llm-do approvals 01a1e5f7-3c9a          all of one question, with its preview
  llm-do approvals --output json | jq -r '.[].id'";

pub(super) const CHATS_EXAMPLES: &str = "\
Examples:
  llm-do chats
  llm-do chats --search invoice
  llm-do chats 01a1e5f7                   what was said in it
  llm-do chat --resume 01a1e5f7           continue it";

pub(super) const FORGET_EXAMPLES: &str = "\
Examples:
  llm-do chats forget 01a1e5f7";

pub(super) const APPROVE_EXAMPLES: &str = "\
Examples:
  llm-do approve 01a1e5f7-3c9a
  llm-do approve 01a1e5f7-3c9a --edit '{\"path\": \"other.txt\"}'
  llm-do approve 01a1e5f7-3c9a --session 1
  llm-do resume --all-answered            continue what has all its answers";

pub(super) const DENY_EXAMPLES: &str = "\
Examples:
  llm-do deny 01a1e5f7-3c9a --reason \"ask the customer first\"";

pub(super) const RUNS_EXAMPLES: &str = "\
Examples:
  llm-do runs
  llm-do runs --status cut_off --since 7d
  llm-do runs --project . --output json | jq -r '.[].run_id'";

pub(super) const SHOW_EXAMPLES: &str = "\
Examples:
  llm-do show last
  llm-do show last --output html > run.html
  llm-do show 01a1e5f7 --call 1/t1/tool/0
  llm-do show 01a1e5f7 --output jsonl";

pub(super) const USAGE_EXAMPLES: &str = "\
Examples:
  llm-do usage --by day --since 7d
  llm-do usage --by agent --output json";

pub(super) const PRUNE_EXAMPLES: &str = "\
Examples:
  llm-do runs prune --older-than 30d
  llm-do runs prune --status cut_off --older-than 7d --dry-run";

pub(super) const REPAIR_EXAMPLES: &str = "\
A damaged record is set aside by the next run, and a new one begins. A run is copied up to the first event that cannot be read. \
One that was cut so cannot be resumed: what it did after that is not known.

Examples:
  llm-do runs repair
  llm-do runs repair ~/.local/state/llm-do/record.db.damaged-20261119T101500Z";
