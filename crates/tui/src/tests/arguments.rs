//! What a person approves is what runs, sign by sign: random arguments go through a real runtime, and are read back
//! from the rows on which they were approved.

use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use llm_do::approval::{Answer, Approval, ApprovalRequest, Approver, ApproverError};
use llm_do::testing::{Script, asks_raw, says};
use llm_do::{AgentSpec, Output, Payload, Project, Runtime};
use llm_do_core::{parse_strict, visible};
use llm_do_testing::{Chance, FunctionTool};
use ratatui::buffer::Buffer;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::driver::{A_WHILE, Driver, options};
use crate::UiOptions;
use crate::question::{OpenQuestion, QuestionReply, QuestionSubject};

const SEED: u64 = 0x7e57;
const CASES: &str = "LLM_DO_TUI_ARGUMENTS";

/// Hands questions to the UI under test.
struct ToTheTestScreen(UnboundedSender<OpenQuestion>);

impl Approver for ToTheTestScreen {
    fn decide<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, Result<Answer, ApproverError>> {
        let (reply, answer) = oneshot::channel();
        let subject = QuestionSubject::Approval(Box::new(request.clone()));
        let sent = self.0.send(OpenQuestion { subject, reply: QuestionReply::Approval(reply) });
        Box::pin(async move {
            assert!(sent.is_ok(), "the test still listens");
            answer.await.map_err(|_| ApproverError("no answer".to_owned()))
        })
    }
}

/// A runtime whose tool `record` must ask and writes down what it got.
struct Bench {
    runtime: Runtime,
    questions: UnboundedReceiver<OpenQuestion>,
    got: Arc<Mutex<Vec<Value>>>,
}

impl Bench {
    fn new() -> Self {
        let (sender, questions) = unbounded_channel();
        let got: Arc<Mutex<Vec<Value>>> = Arc::default();
        let record = {
            let got = got.clone();
            FunctionTool::new("record", move |input, _call| {
                got.lock().unwrap().push(input);
                std::future::ready(Ok(Output::text("recorded")))
            })
            .define(|definition| definition.approval = Approval::Ask)
        };
        let main = AgentSpec::new("main", "Use `record`.").tool("record");
        let project = Project::builder().agent(main).tool(record).build().unwrap();
        let runtime = Runtime::builder(project).approver(ToTheTestScreen(sender)).build().unwrap();
        Self { runtime, questions, got }
    }

    /// Runs a call with these arguments, approves it on a screen of this size, and returns what was read there.
    async fn approve(&mut self, arguments: &Value, size: (u16, u16)) -> (String, Value) {
        let model = Script::new([asks_raw("record", arguments.to_string()), says("done")]);
        let mut run = self.runtime.run("main", "go").model(model).start();
        let question = tokio::select! {
            question = self.questions.recv() => question.unwrap(),
            report = &mut run => panic!("nothing was asked for {arguments}: {:?}", report.map(|report| report.trace().to_string())),
        };
        let mut driver = Driver::new(UiOptions { chat: false, awaits_input: false, ..options() }, size);
        driver.app.question(question);
        driver.wait(A_WHILE);
        let rows = read_and_allow(&mut driver);
        run.await.unwrap();
        let got = self.got.lock().unwrap().pop().unwrap();
        (arguments_of(&rows, usize::from(size.0) - 2), got)
    }
}

/// Scrolls through a question page by page, keeps its rows and allows it as soon as that is possible.
fn read_and_allow(driver: &mut Driver) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let mut top = 0;
    loop {
        let (buffer, _) = driver.frame();
        assert_harmless(&buffer);
        let page = panel_rows(&buffer);
        rows.truncate(top);
        rows.extend(page.iter().cloned());
        driver.press("y");
        let (buffer, _) = driver.frame();
        let Some(unseen) = unseen(&buffer) else { return rows };
        driver.press("<Space>");
        top = (top + page.len() - 1).min(top + unseen);
    }
}

/// How many rows are still to be seen; none where the question is gone.
fn unseen(buffer: &Buffer) -> Option<usize> {
    let title = title_row(buffer)?;
    let footer = row_text(buffer, buffer.area.height - 2);
    let number = footer.split(' ').next().and_then(|word| word.parse().ok());
    Some(number.unwrap_or_else(|| panic!("row {title}: no hint in `{footer}`")))
}

fn title_row(buffer: &Buffer) -> Option<u16> {
    (0..buffer.area.height).find(|y| row_text(buffer, *y).starts_with("━━ approval"))
}

fn panel_rows(buffer: &Buffer) -> Vec<String> {
    let title = title_row(buffer).expect("a question");
    (title + 1..buffer.area.height - 2).map(|y| row_text(buffer, y)).collect()
}

fn row_text(buffer: &Buffer, y: u16) -> String {
    let mut text = String::new();
    let mut covered = 0;
    for x in 0..buffer.area.width {
        let symbol = buffer[(x, y)].symbol();
        if covered == 0 {
            text.push_str(symbol);
            covered = ratatui::buffer::CellWidth::cell_width(symbol).max(1);
        }
        covered -= 1;
    }
    text
}

/// The text of the arguments from the rows of a question: two blanks begin a line, the mark goes on with it.
fn arguments_of(rows: &[String], room: usize) -> String {
    let start = rows.iter().position(|row| row.starts_with("── arguments")).expect("arguments") + 1;
    let is_argument = |row: &&String| row.starts_with("  ") || row.starts_with("↪ ");
    let mut text = String::new();
    for row in rows[start..].iter().take_while(is_argument) {
        match row.strip_prefix("↪ ") {
            Some(row) => text.push_str(seen_part(row, room)),
            None => {
                text.push('\n');
                text.push_str(seen_part(&row[2..], room));
            }
        }
    }
    text
}

/// A row without the blanks that fill it up; a row of blanks alone is full of them.
fn seen_part(row: &str, room: usize) -> &str {
    let seen = row.trim_end_matches(' ');
    if seen.is_empty() { &row[..room.min(row.len())] } else { seen }
}

/// Nothing that is drawn moves the cursor, turns the reading direction or cannot be seen.
fn assert_harmless(buffer: &Buffer) {
    for cell in &buffer.content {
        assert_eq!(
            visible(cell.symbol()),
            cell.symbol(),
            "a cell holds what a terminal obeys or nobody sees"
        );
        assert!(ratatui::buffer::CellWidth::cell_width(cell.symbol()) > 0, "{:?}", cell.symbol());
    }
}

/// Values that are meant to deceive, to break rows, or to be read as something else.
struct Values(Chance);

impl Values {
    fn object(&mut self, depth: usize) -> Value {
        let mut map = Map::new();
        for _ in 0..self.0.below(5) {
            let key = if self.0.percent(50) { self.word() } else { self.text() };
            map.insert(key, self.value(depth));
        }
        Value::Object(map)
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.0.below(if depth > 0 { 8 } else { 5 }) {
            0 => self.number(),
            1 => [Value::Null, true.into(), false.into(), json!(""), json!({}), json!([])][self.0.below(6)]
                .clone(),
            2..5 => Value::String(self.text()),
            5 => Value::Array((0..self.0.below(4)).map(|_| self.value(depth - 1)).collect()),
            _ => self.object(depth - 1),
        }
    }

    fn number(&mut self) -> Value {
        match self.0.below(6) {
            0 => json!(i64::MIN),
            1 => json!(i64::MAX),
            2 => json!(self.0.bits() >> 1),
            3 => json!(-0.0),
            4 => json!(1e300),
            _ => json!(self.0.below(1_000_000) as f64 / 1024.0),
        }
    }

    fn word(&mut self) -> String {
        (*self.0.one_of(&[
            "path",
            "command",
            "input",
            "a b",
            "",
            "key.with.dots",
            "$ref",
            "__proto__",
            "\"",
            "\\",
        ]))
        .to_owned()
    }

    fn text(&mut self) -> String {
        let pieces = match self.0.below(20) {
            0 => 300,
            1..4 => 60,
            _ => 8,
        };
        (0..self.0.below(pieces)).map(|_| self.piece()).collect()
    }

    fn piece(&mut self) -> String {
        const ODD: &[&str] = &[
            "\u{1b}[2J",
            "\u{1b}]0;title\u{7}",
            "\u{1b}[31m",
            "\r",
            "\n",
            "\t",
            "\0",
            "\u{7f}",
            "\u{9b}31m",
            "\u{202e}",
            "\u{2066}",
            "\u{200b}",
            "\u{200d}",
            "\u{feff}",
            "\u{e0041}",
            "\u{fe0f}",
            "\u{2028}",
            "\u{a0}",
            "\u{3000}",
            "\u{ad}",
            "\u{301}",
            "e\u{301}\u{302}\u{303}",
            "а",
            "ο",
            "漢字",
            "👩\u{200d}🚀",
            "🇩🇪",
            "👍🏽",
            "ﷺ",
            "นำ้",
            "हिन्दी",
            "**bold**",
            "`code`",
            "<b>",
            "[y] once",
            "↪ ",
            "── arguments ──",
            "━━ approval",
            "\\n",
            "\\u0041",
            "\\\\",
            "\"",
            "\",\n  \"path\": \"/etc\"",
            "{",
            "}",
            "          ",
            "                                        ",
            "\u{10ffff}",
            "\u{fdd0}",
            "ｆｕｌｌ",
            "\u{1160}",
            "각",
            "\u{0e33}",
            "Ⅷ",
            "ʼ",
            "¨",
            "\u{20dd}",
            "\u{a8fa}",
            "\u{1161}",
            "\u{11a8}",
        ];
        match self.0.below(40) {
            0..9 => (*self.0.one_of(ODD)).to_owned(),
            9 => format!("क{}", "\u{93e}".repeat(self.0.below(60))),
            10..20 => " ".repeat(self.0.below(3)),
            20..30 => {
                let number = u32::try_from(self.0.below(0x11_0000)).unwrap();
                char::from_u32(number).map(String::from).unwrap_or_default()
            }
            _ => "abcdefghij klmnopqrst"[..self.0.below(21)].to_owned(),
        }
    }
}

#[test]
fn the_approved_text_is_what_runs() {
    let cases = std::env::var(CASES).ok().and_then(|number| number.parse().ok()).unwrap_or(1_000);
    let executor = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    executor.block_on(async {
        let mut bench = Bench::new();
        for case in 0..cases {
            let mut chance = Chance::at(SEED, &[&case.to_string()]);
            let size =
                [chance.between(30, 140), chance.between(8, 40)].map(|side| u16::try_from(side).unwrap());
            let depth = if chance.percent(5) { 30 } else { 3 };
            let arguments = Values(chance).object(depth);
            let (read, got) = bench.approve(&arguments, size.into()).await;
            let at = format!("case {case} of seed {SEED:#x} on {size:?}: {arguments}\n{read}");
            let read = parse_strict(&read).unwrap_or_else(|error| panic!("{error}: {at}"));
            assert_eq!(Payload::new(read).text(), Payload::new(got.clone()).text(), "{at}");
            assert_eq!(Payload::new(arguments).text(), Payload::new(got).text(), "{at}");
        }
    });
}
