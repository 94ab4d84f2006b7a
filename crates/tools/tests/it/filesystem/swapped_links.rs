//! Another program swaps files for links and pipes while the tools run: nothing outside is seen or changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use serde_json::{Value, json};

use crate::filesystem::support::{Folder, names};

const SECRET: &str = "OUTSIDE-SECRET";

/// Exchanges names until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    count: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(root: PathBuf, pairs: &'static [(&str, &str)]) -> Self {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (stopped, counter) = (stop.clone(), count.clone());
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for (one, other) in pairs {
                    let (one, other) = (root.join(one), root.join(other));
                    let _ = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                std::thread::yield_now();
            }
        });
        Self { stop, count, thread: Some(thread) }
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn plant() -> Folder {
    let folder = Folder::new()
        .file("d/f.txt", "INSIDE")
        .link("other_d", "../outside")
        .file("g.txt", "INSIDE")
        .link("other_g", "../outside/f.txt")
        .file("p.txt", "INSIDE")
        .file("e/f.txt", "INSIDE")
        .file("kept/f.txt", "INSIDE")
        .link("other_e", "kept");
    mknodat(CWD, folder.root().join("other_p"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    folder.put("outside/f.txt", SECRET);
    folder
}

fn operation(number: usize) -> (&'static str, Value) {
    match number % 11 {
        0 => ("read_file", json!({"path": "d/f.txt"})),
        1 => ("read_file", json!({"path": "g.txt"})),
        2 => ("read_file", json!({"path": "p.txt"})),
        3 => ("write_file", json!({"path": "d/f.txt", "content": format!("INSIDE {number}")})),
        4 => ("write_file", json!({"path": format!("d/new/{number}.txt"), "content": "INSIDE"})),
        5 => ("write_file", json!({"path": "g.txt", "content": format!("INSIDE {number}")})),
        6 => ("edit_file", json!({"path": "d/f.txt", "edits": [{"old": "INSIDE", "new": "INSIDE"}]})),
        7 => ("list_files", json!({})),
        8 => ("list_files", json!({"path": "d"})),
        9 => ("write_file", json!({"path": format!("e/{number}.txt"), "content": "INSIDE"})),
        _ => ("search_files", json!({"pattern": "SECRET|INSIDE"})),
    }
}

fn is_untouched(outside: &Path) -> bool {
    names(outside) == ["f.txt"] && fs::read_to_string(outside.join("f.txt")).unwrap() == SECRET
}

fn operations() -> usize {
    let wanted = std::env::var("LLM_DO_SWAP_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(1_000).clamp(100, 100_000)
}

#[tokio::test]
async fn swapped_links_lead_no_operation_out_of_the_root() {
    let folder = plant();
    let gate = folder.gate();
    let pairs: &[_] = &[("d", "other_d"), ("g.txt", "other_g"), ("p.txt", "other_p"), ("e", "other_e")];
    let swapper = Swapper::start(folder.root(), pairs);
    let (mut done, mut refused) = (0, 0);
    for number in 0..operations() {
        let (tool, arguments) = operation(number);
        let start = Instant::now();
        let result = gate.call(tool, arguments).await;
        assert!(start.elapsed() < Duration::from_secs(5), "operation {number} was held up");
        let text = format!("{result:?}");
        assert!(!text.contains(SECRET), "operation {number} saw what is outside: {text}");
        assert!(is_untouched(&folder.path("outside")), "operation {number} changed what is outside");
        if let Ok(answer) = &result
            && let Some(path) = answer["path"].as_str().filter(|path| path.starts_with("e/"))
        {
            let elsewhere = folder.root().join(path.replace("e/", "kept/"));
            assert!(!elsewhere.exists(), "operation {number} wrote elsewhere than it says: {path}");
        }
        if result.is_ok() { done += 1 } else { refused += 1 }
    }
    let swaps = swapper.count.load(Ordering::Relaxed);
    // Without both there was no race to win.
    assert!(done > 0 && refused > 0 && swaps > 100, "{done} done, {refused} refused, {swaps} swaps");
}
