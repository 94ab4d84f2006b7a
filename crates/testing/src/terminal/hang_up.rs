//! A terminal that goes away, as when a window is closed or a connection breaks.

use std::io::Read;
use std::process::{Command, ExitStatus};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::Command as PtyCommand;

use super::LIMIT;

/// Runs a program on a terminal until it has written a text, takes the terminal away, and waits for its end.
///
/// Panics where the program goes on for half a minute.
#[track_caller]
pub fn hang_up(command: Command, text: &str) -> ExitStatus {
    let (mut pty, pts) = pty_process::blocking::open().expect("a terminal");
    pty.resize(Size::new(24, 80)).expect("a terminal has a size");
    let mut child = PtyCommand::from(command).spawn(pts).expect("the program starts");
    let (mut written, mut buffer) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&written).contains(text) {
        let length = pty.read(&mut buffer).expect("the program waits for the end");
        written.extend_from_slice(&buffer[..length]);
    }
    drop(pty);
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if begun.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("the program goes on without its terminal");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}
