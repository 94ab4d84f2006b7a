//! The cache of unpacked sources: nothing that somebody else put there is run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use llm_do_testing::needs;

use crate::support::Folder;

const ADD: &str = "from llm_do.runtime import AgentArgs\ndef add(a: int, b: int) -> int:\n    return a + b\nTOOLS = [add]\n";

/// Compiles a source with one more statement, so that Python takes the result for the compiled source unseen.
const PLANT: &str = "
import importlib.util, os, py_compile, sys
source, marker = sys.argv[1:]
target = importlib.util.cache_from_source(source)
os.makedirs(os.path.dirname(target), exist_ok=True)
with open(source) as file, open(marker + '.py', 'w') as evil:
    evil.write('open(%r, \"w\").close()\\n' % marker + file.read())
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
py_compile.compile(marker + '.py', cfile=target, doraise=True, invalidation_mode=mode)
";

/// A project with a cache of its own, in which the sources are unpacked.
fn unpacked() -> (Folder, PathBuf) {
    let mut folder = Folder::of(ADD);
    let cache = folder.path().join("cache/llm-do/python");
    folder.settings.cache = Some(cache.clone());
    drop(folder.load());
    let directory = fs::read_dir(&cache).unwrap().next().unwrap().unwrap().path();
    (folder, directory)
}

/// Plants compiled files beside sources that every start imports, and returns what they would make.
fn plant(folder: &Folder, directory: &Path) -> PathBuf {
    let marker = folder.path().join("ran");
    for source in ["host/llm_do_host/main.py", "host/llm_do_host/load.py", "names/llm_do/__init__.py"] {
        let mut python = Command::new("python3");
        let status = python.args(["-c", PLANT]).arg(directory.join(source)).arg(&marker).status();
        assert!(status.unwrap().success());
    }
    marker
}

#[needs(python)]
#[test]
fn a_compiled_file_that_somebody_planted_is_not_run() {
    let (folder, directory) = unpacked();
    let marker = plant(&folder, &directory);
    drop(folder.load());
    assert!(!marker.exists(), "planted code was run");
    assert!(!directory.join("host/llm_do_host/__pycache__").exists(), "it is removed too");
}

#[needs(python)]
#[test]
fn a_compiled_file_that_is_planted_after_the_sources_were_compared_is_not_run() {
    let (folder, directory) = unpacked();
    let marker = plant(&folder, &directory);
    let mut python = Command::new("python3");
    let status = python.arg(directory.join("start.py")).stdin(Stdio::null()).stderr(Stdio::null()).status();
    assert!(!marker.exists(), "planted code was run ({status:?})");
}

#[needs(python)]
#[test]
fn no_compiled_file_is_left_in_the_cache() {
    let (mut folder, directory) = unpacked();
    folder.settings.environment.retain(|(name, _)| name != "PYTHONDONTWRITEBYTECODE");
    drop(folder.load());
    let mut pending = vec![directory];
    while let Some(directory) = pending.pop() {
        assert!(!directory.ends_with("__pycache__"), "{}", directory.display());
        let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        pending.extend(entries.filter(|path| path.is_dir()));
    }
}

#[needs(python)]
#[test]
fn a_cache_that_others_can_write_to_is_refused_with_the_way_out() {
    let (folder, _) = unpacked();
    for parent in ["cache", "cache/llm-do", "cache/llm-do/python"] {
        let parent = folder.path().join(parent);
        fs::set_permissions(&parent, fs::Permissions::from_mode(0o777)).unwrap();
        let problems = folder.try_load().err().expect("a problem");
        let expected = format!("others can write to {}", parent.display());
        assert!(problems[0].message.contains(&expected), "{problems:?}");
        assert!(problems[0].hint.as_ref().unwrap().contains("XDG_CACHE_HOME"), "{problems:?}");
        fs::set_permissions(&parent, fs::Permissions::from_mode(0o700)).unwrap();
    }
    drop(folder.load());
}
