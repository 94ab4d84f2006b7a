use std::process::Command;

use super::{Key, Signal, TerminalModes, TerminalSession};

fn shell(line: &str) -> TerminalSession {
    sized(line, 40, 6)
}

fn sized(line: &str, columns: u16, rows: u16) -> TerminalSession {
    let mut command = Command::new("sh");
    command.args(["-c", line]).env("TERM", "xterm-256color");
    TerminalSession::spawn(command, columns, rows)
}

#[test]
fn a_program_finds_a_terminal_of_the_size_asked_for() {
    let session = sized("stty size; tty -s && test -t 0 && test -t 1 && test -t 2 && echo all three", 81, 25);
    session.wait_for("25 81");
    session.wait_for("all three");
    assert_eq!(session.wait_exit(), 0);
}

#[test]
fn the_program_gets_no_descriptors_beside_the_terminal() {
    let usual = Command::new("ls").arg("/proc/self/fd").output().unwrap();
    let session = shell("ls /proc/self/fd | cat");
    assert_eq!(session.wait_exit(), 0);
    assert_eq!(session.scrollback_text().trim_end(), String::from_utf8(usual.stdout).unwrap().trim_end());
}

#[test]
fn what_is_typed_is_read_and_echoed() {
    let session = shell("read -r line; echo \"<$line>\"");
    session.keys("hello");
    session.wait_for("hello");
    session.key(Key::Enter);
    session.wait_for("<hello>");
    assert_eq!(session.screen_text().trim_end(), "hello\n<hello>");
    assert_eq!(session.wait_exit(), 0);
}

#[test]
fn keys_are_what_xterm_sends() {
    let line = "stty raw -echo; printf ready; head -c 31 | od -An -c -w40; stty sane";
    let session = sized(line, 140, 6);
    session.wait_for("ready");
    for key in [Key::Up, Key::PageUp, Key::F(1), Key::F(5), Key::BackTab, Key::Ctrl('c'), Key::Alt('x')] {
        session.key(key);
    }
    for key in [Key::Delete, Key::Backspace, Key::Enter, Key::Esc, Key::Tab, Key::Char('é')] {
        session.key(key);
    }
    assert_eq!(session.wait_exit(), 0);
    let shown = session.screen_text().split_whitespace().collect::<Vec<_>>().join(" ");
    let expected =
        "033 [ A 033 [ 5 ~ 033 O P 033 [ 1 5 ~ 033 [ Z 003 033 x 033 [ 3 ~ 177 \\r 033 \\t 303 251";
    assert!(shown.contains(expected), "{shown}");
}

#[test]
fn arrows_follow_the_mode_of_the_program() {
    let session = shell("stty raw -echo; printf '\\033[?1hready'; head -c 3 | od -An -c; stty sane");
    session.wait_for("ready");
    session.key(Key::Left);
    session.wait_for("033   O   D");
}

#[test]
fn a_paste_is_bracketed_where_the_program_asked_for_it() {
    let line = "stty raw -echo; printf '\\033[?2004hready'; head -c 15 | od -An -c -w40; stty sane";
    let session = sized(line, 80, 6);
    session.wait_for("ready");
    session.paste("a\nb");
    session.wait_for("033   [   2   0   0   ~   a  \\r   b 033   [   2   0   1   ~");
    assert!(session.screen().bracketed_paste());
    let plain = shell("read -r line; echo \"<$line>\"");
    plain.paste("one line\n");
    plain.wait_for("<one line>");
}

#[test]
fn a_paste_larger_than_the_terminal_takes_at_once_arrives_whole() {
    let session = sized("stty raw -echo; printf ready; yes | head -c 100000; head -c 300000 | wc -c", 80, 24);
    session.wait_for("ready");
    session.paste(&"x".repeat(300_000));
    session.wait_for("300000");
}

#[test]
fn questions_to_the_terminal_are_answered_as_xterm_does() {
    let ask = |question: &str, length: usize| {
        let line = format!(
            "stty raw -echo; printf '  {question}'; head -c {length} | od -An -c -w80; stty sane; echo"
        );
        let session = sized(&line, 120, 5);
        assert_eq!(session.wait_exit(), 0);
        session.screen_text().split_whitespace().collect::<Vec<_>>().join("")
    };
    assert_eq!(ask("\\033[6n", 6), "033[1;3R");
    assert_eq!(ask("\\033[18t", 10), "033[8;5;120t");
    assert_eq!(ask("\\033[c", 7), "033[?64;1");
    assert_eq!(ask("\\033]11;?\\007", 24), "033]11;rgb:1b1b/1d1d/2323033");
    assert_eq!(ask("\\033[?u\\033[5n", 4), "033[0n", "the kitty protocol is not known");
}

#[test]
fn a_resize_reaches_the_program_and_the_screen() {
    let session = shell("trap 'stty size' WINCH; echo ready; while :; do sleep 0.1; done");
    session.wait_for("ready");
    session.resize(100, 30);
    session.wait_for("30 100");
    assert_eq!(session.screen().size().1.get(), 100);
}

#[test]
fn rows_that_left_the_screen_are_kept() {
    let session = shell("seq 1 500; printf 'the end'");
    session.wait_for("the end");
    session.wait_for("499");
    let all = session.scrollback_text();
    let numbers: Vec<&str> = all.lines().take(500).collect();
    assert_eq!(numbers, (1..=500).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(session.screen_text(), "496\n497\n498\n499\n500\nthe end");
    assert_eq!(session.cursor(), (7, 5));
}

#[test]
fn a_text_is_found_also_when_it_scrolled_away_while_waiting() {
    let session = shell("for n in $(seq 1 50); do echo \"row $n\"; seq 1 20; done; echo over; read -r line");
    session.wait_for("row 1");
    session.wait_for("row 50");
    session.wait_for("row 25");
    session.wait_for_visible("over");
    assert!(!session.screen_text().contains("row"));
}

#[test]
fn the_alternate_screen_comes_and_goes() {
    let session =
        shell("printf 'below\\n\\033[?1049h\\033[Habove'; read -r line; printf '\\033[?1049l'; read -r line");
    session.wait_for_visible("above");
    assert!(session.is_alternate() && !session.screen_text().contains("below"));
    session.key(Key::Enter);
    session.wait_gone("above");
    assert!(!session.is_alternate() && session.screen_text().contains("below"));
}

#[test]
fn a_frame_is_seen_when_it_is_whole() {
    let session = shell("printf '\\033[?2026hhalf'; sleep 0.3; printf ' and half\\033[?2026l'; read -r line");
    session.wait_for("half");
    assert_eq!(session.screen_text().trim_end(), "half and half");
}

#[test]
fn the_modes_are_seen_as_the_program_left_them() {
    let tidy = shell("true");
    assert_eq!(tidy.wait_exit(), 0);
    assert_eq!(tidy.terminal_modes(), TerminalModes::NORMAL);
    let untidy = shell("stty raw -echo");
    assert_eq!(untidy.wait_exit(), 0);
    let modes = untidy.terminal_modes();
    assert!(!modes.canonical && !modes.echo && !modes.signals && !modes.output, "{modes:?}");
}

#[test]
fn the_output_is_kept_byte_by_byte_and_without_the_notes_of_the_harness() {
    let session = shell("printf '\\033[?2004hx\\033[?2004l'");
    assert_eq!(session.wait_exit(), 0);
    assert_eq!(session.raw_output(), b"\x1b[?2004hx\x1b[?2004l");
}

#[test]
fn exit_codes_and_signals_are_told() {
    assert_eq!(shell("exit 7").wait_exit(), 7);
    let session = shell("echo ready; read -r line");
    session.wait_for("ready");
    session.signal(Signal::TERM);
    assert_eq!(session.wait_exit(), 128 + 15);
}

/// Whether interrupts are ignored here, as in a program that a script started in the background: no shell can trap them.
fn interrupts_are_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask & 0b10 != 0
}

#[test]
#[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
fn ctrl_c_interrupts_the_program_alone() {
    if interrupts_are_ignored() {
        println!("skipped: interrupts are ignored in this process, and so in what it starts");
        return;
    }
    let session = shell("trap 'echo interrupted; exit 9' INT; echo ready; while :; do sleep 0.1; done");
    session.wait_for("ready");
    session.key(Key::Ctrl('c'));
    session.wait_for("interrupted");
    assert_eq!(session.wait_exit(), 9);
    let session = shell("echo ready; exec sleep 60");
    session.wait_for("ready");
    session.key(Key::Ctrl('c'));
    assert_eq!(session.wait_exit(), 128 + 2);
    assert_eq!(session.terminal_modes(), TerminalModes::NORMAL);
}

#[test]
fn a_stopped_program_can_be_resumed() {
    let mut session = shell("echo ready; read -r line; echo \"<$line>\"");
    session.wait_for("ready");
    session.key(Key::Ctrl('z'));
    session.wait_stopped();
    session.resume();
    session.keys("on\r");
    session.wait_for("<on>");
    assert_eq!(session.wait_exit(), 0);
    assert!(!session.scrollback_text().contains("Stopped"), "{}", session.scrollback_text());
}

#[test]
fn dropping_a_session_ends_its_program() {
    let session = shell("trap '' INT TERM HUP; echo ready; while :; do sleep 0.1; done");
    session.wait_for("ready");
    let pid = session.pid().unwrap();
    drop(session);
    let gone = (0..300).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        rustix::process::test_kill_process(pid).is_err()
    });
    assert!(gone, "{pid:?} still runs");
}

#[test]
#[should_panic(expected = "waited for `never`; the program is Exited(3), the terminal shows\n--- 40x6")]
fn waiting_for_what_cannot_come_fails_at_once_and_shows_the_screen() {
    let session = shell("echo something else; exit 3");
    session.wait_for("never");
}
