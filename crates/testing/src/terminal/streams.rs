//! The two threads between a terminal and a session.
//!
//! Keys are written by a thread of their own, since a terminal takes only so many until the program reads:
//! were they written by the one that reads, a program that writes before it reads would wait for ever.

use std::io::{Read, Write};
use std::sync::{Arc, mpsc};

use pty_process::blocking::Pty;

use super::state::Shared;

/// Starts the thread that types; it ends with the last sender, or with the terminal.
pub(super) fn write_in_background(pty: Arc<Pty>) -> mpsc::Sender<Vec<u8>> {
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    std::thread::spawn(move || {
        for bytes in receiver {
            if (&*pty).write_all(&bytes).is_err() {
                return;
            }
        }
    });
    sender
}

/// Starts the thread that reads; it ends when the terminal is closed from the other side.
pub(super) fn read_in_background(pty: Arc<Pty>, shared: Arc<Shared>, input: mpsc::Sender<Vec<u8>>) {
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        loop {
            match (&*pty).read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => answer(&input, shared.written(&buffer[..length])),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break, // Linux says so when the last process left the terminal
            }
        }
        shared.closed();
    });
}

fn answer(input: &mpsc::Sender<Vec<u8>>, replies: Vec<u8>) {
    if !replies.is_empty() {
        // Nobody is there to be answered when the writing thread has ended.
        let _ = input.send(replies);
    }
}
