//! Loading: what is refused, and how it is said.

use std::time::Duration;

use llm_do_testing::needs;

use crate::printing::recording;
use crate::support::{Folder, Named};

fn first_problem(folder: &Folder) -> (String, Option<u32>) {
    let problems = folder.try_load().err().expect("a problem");
    let line = problems[0].location.as_ref().and_then(|place| place.line);
    (problems[0].message.clone(), line)
}

#[needs(python)]
#[test]
fn files_load_without_an_async_runtime_and_nothing_is_left_when_they_are_dropped() {
    let folder =
        Folder::of("def add(a: int, b: int) -> int:\n    'Adds.'\n    return a + b\nTOOLS = [add]\n");
    let code = folder.load();
    assert_eq!(code.tool("add").definition().description, "Adds.");
    assert!(!folder.processes().is_empty());
    drop(code);
    assert_eq!(folder.processes(), Vec::<String>::new());
}

#[needs(python)]
#[test]
fn an_error_of_a_file_is_a_problem_with_its_place() {
    let (message, line) = first_problem(&Folder::of("x = 1\ny = (\n"));
    assert!(line.is_some(), "{message}");
    let (message, line) = first_problem(&Folder::of("import json\nraise ValueError('not today')\n"));
    assert!(message.contains("not today"), "{message}");
    assert_eq!(line, Some(2));
}

#[needs(python)]
#[test]
fn a_crash_while_loading_is_a_problem_with_the_last_words() {
    for (source, words) in [
        ("import os\nos.write(2, b'cannot go on\\n')\nos._exit(3)\n", "exit code 3"),
        ("import os\nos.write(2, b'cannot go on\\n')\nos.kill(os.getpid(), 11)\n", "SIGSEGV"),
    ] {
        let folder = Folder::of(source);
        let (message, _) = first_problem(&folder);
        assert!(message.contains(words) && message.contains("cannot go on"), "{message}");
        folder.assert_no_processes();
    }
}

#[needs(python)]
#[test]
fn files_that_never_finish_loading_are_given_up() {
    for source in [
        "while True: pass\n",
        "import time\ntime.sleep(1000)\n",
        "import subprocess\nsubprocess.run(['sleep', '1000'])\n",
    ] {
        let mut folder = Folder::of(source);
        folder.settings.load_limit = Duration::from_millis(600);
        let (message, _) = first_problem(&folder);
        assert!(message.contains("took longer than 0.6 seconds"), "{message}");
        folder.assert_no_processes();
    }
}

#[needs(python)]
#[test]
fn a_slow_import_is_reported_and_names_the_file_and_the_key() {
    let mut folder = Folder::of("import time\ntime.sleep(1000)\n");
    let (notices, seen) = recording();
    folder.settings.notices = notices;
    folder.settings.load_limit = Duration::from_secs(8);
    let problems = folder.try_load().err().expect("a problem");
    assert!(problems[0].message.contains("importing `tools.py` took longer than 8 seconds"), "{problems:?}");
    assert!(problems[0].hint.as_deref().unwrap().contains("`python_load_seconds`"), "{problems:?}");
    let seen = seen.lock().unwrap();
    assert!(seen.iter().any(|text| text.starts_with("still importing tools.py (")), "{seen:?}");
}

#[needs(python)]
#[test]
fn a_path_that_is_not_utf8_is_the_reason() {
    use std::os::unix::ffi::OsStrExt;
    let folder = Folder::of("");
    let odd = folder.path().join(std::ffi::OsStr::from_bytes(b"odd-\xff"));
    std::fs::create_dir(&odd).unwrap();
    std::fs::write(odd.join("tools.py"), "TOOLS = []\n").unwrap();
    let problems = folder.try_load_paths(&odd, &[odd.join("tools.py")]).err().expect("a problem");
    let message = &problems[0].message;
    assert!(message.contains("not valid UTF-8") && message.contains("odd-"), "{problems:?}");
}

#[test]
fn a_program_that_is_no_python_is_a_problem() {
    let mut folder = Folder::of("");
    folder.interpreter = Some("/bin/false".to_owned());
    let (message, _) = first_problem(&folder);
    assert!(message.contains("/bin/false") && message.contains("exit code 1"), "{message}");
    folder.interpreter = Some("no-such-python".to_owned());
    assert!(first_problem(&folder).0.contains("`no-such-python`"));
}

#[test]
fn an_interpreter_that_talks_nonsense_is_a_problem() {
    use std::os::unix::fs::PermissionsExt;
    let mut folder = Folder::of("");
    folder.file("odd", "#!/bin/sh\necho hello >&0\nsleep 100\n");
    let odd = folder.path().join("odd");
    std::fs::set_permissions(&odd, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder.interpreter = Some("./odd".to_owned());
    let (message, _) = first_problem(&folder);
    assert!(message.contains("what is not a message") && message.contains("hello"), "{message}");
    folder.assert_no_processes();
}
