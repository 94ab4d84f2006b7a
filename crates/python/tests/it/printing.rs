//! What Python code prints: every line is told exactly once, whoever prints it and whenever.

use std::sync::{Arc, Mutex};

use llm_do_core::{AgentSpec, Approval, Model, ModelError, Models, NoModels, NoticeSink, Remark};
use llm_do_models::{asks, says};
use llm_do_testing::{Chance, TestCall, TestProject, TestReply, needs};
use serde_json::json;

use crate::support::{Folder, Named};

/// A sink that records what it is sent.
pub(crate) fn recording() -> (NoticeSink, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let taken = seen.clone();
    let sink = NoticeSink::new(move |text| {
        taken.lock().unwrap().push(text);
        Ok(())
    });
    (sink, seen)
}

fn lines(reply: &TestReply) -> Vec<String> {
    let line = |remark| match remark {
        Remark::Stderr(text) | Remark::Notice(text) => Some(text),
        Remark::Progress(_) => None,
    };
    reply.remarks().into_iter().filter_map(line).collect()
}

#[needs(python)]
#[tokio::test]
async fn prints_of_threads_and_executors_belong_to_the_oldest_running_call() {
    let folder = Folder::of(
        r#"
import asyncio, threading
from concurrent.futures import ThreadPoolExecutor
def thread():
    worker = threading.Thread(target=print, args=("from a thread",))
    worker.start()
    worker.join()
async def executor():
    await asyncio.get_running_loop().run_in_executor(None, print, "from an executor")
def pool():
    with ThreadPoolExecutor() as threads:
        list(threads.map(print, ["from a pool"]))
TOOLS = [thread, executor, pool]
"#,
    );
    let code = folder.load();
    for (tool, line) in
        [("thread", "from a thread"), ("executor", "from an executor"), ("pool", "from a pool")]
    {
        let reply = TestCall::new().run(code.tool(tool), json!({})).await;
        assert_eq!(lines(&reply), [line]);
    }
}

#[needs(python)]
#[tokio::test]
async fn what_is_printed_while_no_call_runs_is_not_lost() {
    let mut folder = Folder::of(
        r#"
import atexit, threading
print("at import")
go, done = threading.Event(), threading.Event()
def later():
    go.wait()
    print("between calls")
    done.set()
threading.Thread(target=later, daemon=True).start()
atexit.register(print, "at exit")
def finish():
    threading.Timer(0, go.set).start()
def wait():
    done.wait()
TOOLS = [finish, wait]
"#,
    );
    let (notices, seen) = recording();
    folder.settings.notices = notices;
    let code = folder.load();
    let first = TestCall::new().run(code.tool("finish"), json!({})).await;
    let second = TestCall::new().run(code.tool("wait"), json!({})).await;
    drop(code);
    let mut all = [lines(&first), lines(&second), seen.lock().unwrap().clone()].concat();
    all.sort();
    assert_eq!(all, ["at exit", "at import", "between calls"]);
}

/// Calls that print from tasks, threads and executors, in pieces and at once; some writers outlive their call.
const RANDOM: &str = r#"
import asyncio, os, random, sys, threading, time
left = []
def pause(chance):
    if chance.random() < 0.3:
        time.sleep(chance.random() / 500)
def write(chance, line):
    way = chance.randrange(4)
    if way == 0:
        print(line)
    elif way == 1:
        middle = chance.randrange(len(line))
        sys.stdout.write(line[:middle])
        pause(chance)
        print(line[middle:], file=sys.stdout)
    elif way == 2:
        sys.stderr.write(line + "\n")
    else:
        os.write(2, (line + "\n").encode())
def write_all(seed, lines):
    chance = random.Random(seed)
    for line in lines:
        write(chance, line)
        pause(chance)
async def write_in_task(seed, lines):
    chance = random.Random(seed)
    for line in lines:
        middle = chance.randrange(len(line))
        print(line[:middle], end="")
        await asyncio.sleep(chance.random() / 500)
        print(line[middle:])
async def play(seed: int, writers: list) -> None:
    chance, loop, waited = random.Random(seed), asyncio.get_running_loop(), []
    for number, (kind, outlives, lines) in enumerate(writers):
        given = (seed + number, lines)
        if kind == "thread":
            thread = threading.Thread(target=write_all, args=given)
            thread.start()
            left.append(thread)
            if not outlives:
                waited.append(asyncio.to_thread(thread.join))
        else:
            if kind == "task":
                work = loop.create_task(write_in_task(*given))
            elif kind == "executor":
                work = loop.run_in_executor(None, write_all, *given)
            else:
                work = loop.create_task(asyncio.to_thread(write_all, *given))
            left.append(work)
            if not outlives:
                waited.append(work)
        await asyncio.sleep(chance.random() / 500)
    await asyncio.gather(*waited)
async def settle() -> None:
    for work in left:
        if isinstance(work, threading.Thread):
            await asyncio.to_thread(work.join)
        else:
            await work
TOOLS = [play, settle]
"#;

/// The model is the list of lines that are printed: whatever the order, each of them is told exactly once.
///
/// `LLM_DO_PRINT_CASES` sets how many projects are tried.
#[needs(python)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_line_of_random_writers_is_told_exactly_once() {
    let wanted = std::env::var("LLM_DO_PRINT_CASES").ok().and_then(|cases| cases.parse().ok());
    for seed in 0..wanted.unwrap_or(4_u64) {
        let (mut expected, mut told) = random_case(seed).await;
        expected.sort();
        told.sort();
        assert_eq!(told, expected, "seed {seed}");
    }
}

/// Plays one random case; returns the lines that were printed and those that were told.
async fn random_case(seed: u64) -> (Vec<String>, Vec<String>) {
    let mut folder = Folder::of(RANDOM);
    let (notices, seen) = recording();
    folder.settings.notices = notices;
    let code = folder.load();
    let mut chance = Chance::new(seed);
    let mut expected = Vec::new();
    let mut calls = Vec::new();
    for call in 0..1 + chance.below(4) as u64 {
        let count = chance.below(6) as u64;
        let writers: Vec<_> =
            (0..count).map(|writer| random_writer(&mut chance, &[seed, call, writer])).collect();
        expected.extend(writers.iter().flat_map(|writer| writer.2.clone()));
        let input = json!({"seed": seed * 1000 + call, "writers": writers});
        calls.push(TestCall::new().run(code.tool("play"), input));
    }
    let mut replies = futures::future::join_all(calls).await;
    replies.push(TestCall::new().run(code.tool("settle"), json!({})).await);
    drop(code);
    for reply in &replies {
        assert!(reply.reply().is_ok(), "seed {seed}: {}", reply.error());
    }
    let told = replies.iter().flat_map(lines).chain(seen.lock().unwrap().clone()).collect();
    (expected, told)
}

/// A kind of writer, whether it outlives its call, and its lines.
fn random_writer(chance: &mut Chance, place: &[u64; 3]) -> (String, bool, Vec<String>) {
    let kind = *chance.one_of(&["task", "thread", "executor", "to_thread"]);
    let [seed, call, writer] = place;
    let lines = (0..=chance.below(8)).map(|line| format!("{seed}-{call}-{writer}-{line}")).collect();
    (kind.to_owned(), chance.below(3) == 0, lines)
}

/// A catalog that knows a key and no model.
struct KnowsKey;

impl Models for KnowsKey {
    fn resolve(&self, name: &str) -> Result<Arc<dyn Model>, ModelError> {
        NoModels.resolve(name)
    }

    fn secrets(&self) -> Vec<String> {
        vec!["sk-canary-0123456789".to_owned()]
    }
}

#[needs(python)]
#[tokio::test]
async fn a_known_key_is_removed_from_what_code_returns_raises_and_prints() {
    let folder = Folder::of(
        r#"
import base64
KEY = "sk-canary-" + "0123456789"
def returned(): return {"headers": [KEY, base64.b64encode(("x" + KEY).encode()).decode(), KEY.encode().hex()]}
def raised(): raise ValueError("401 for " + KEY)
def printed():
    print("the key is", KEY)
    return "printed"
TOOLS = [returned, raised, printed]
"#,
    );
    let code = folder.load();
    let names = ["returned", "raised", "printed"];
    let main = names.iter().fold(AgentSpec::new("main", "Work."), |main, name| main.tool(*name));
    let project = TestProject::new().agent(main.rule("*", Approval::PreApproved));
    let project = code.tools.iter().fold(project, |project, tool| project.tool(tool.value.clone()));
    let run = project
        .model_replies(names.map(|name| asks(name, json!({}))).into_iter().chain([says("Done.")]))
        .runtime(|builder| builder.models(KnowsKey))
        .run("go")
        .await;
    assert_eq!(&*run.answer(), "Done.", "{}", run.report().trace());
    let events = run.events().into_iter().map(|event| serde_json::to_string(&event).unwrap() + "\n");
    let all: String = events.collect();
    for form in ["canary-01234", "NhbmFyeS0wMTIz", "63616e6172792d30"] {
        assert!(!all.contains(form), "{form}: {all}");
    }
    assert_eq!(run.tool_results().iter().filter(|result| result.contains("[removed]")).count(), 2);
    assert!(all.contains("the key is [removed]"), "{all}");
}
