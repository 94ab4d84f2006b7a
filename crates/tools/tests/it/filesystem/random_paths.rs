//! Random trees with links, random paths: the kernel says what each of them names below the root.

use std::fs;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;

use llm_do_core::Failure;
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mknodat, openat2};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::filesystem::support::{Folder, Gate};
use llm_do_testing::Chance;

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const PATHS_PER_TREE: usize = 50;

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    File(String),
    Directory,
    Pipe,
    Missing,
    NotADirectory,
    Outside,
    Loop,
}

impl Named {
    /// Asks the kernel, which follows links and parent steps only below the root.
    fn by_kernel(root: &OwnedFd, path: &str) -> Self {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Ok(found) => Self::of(&found),
            Err(Errno::XDEV) => Self::Outside,
            Err(Errno::LOOP) => Self::Loop,
            Err(Errno::NOENT) => Self::Missing,
            Err(Errno::NOTDIR) => Self::NotADirectory,
            // Something was renamed meanwhile, anywhere: the kernel asks to be asked again.
            Err(Errno::AGAIN) => Self::by_kernel(root, path),
            Err(other) => panic!("`{path}`: {other}"),
        }
    }

    fn of(found: &OwnedFd) -> Self {
        match FileType::from_raw_mode(fstat(found).unwrap().st_mode) {
            FileType::Directory => Self::Directory,
            FileType::Fifo => Self::Pipe,
            FileType::RegularFile => {
                use std::os::fd::AsRawFd;
                let mut text = String::new();
                let path = format!("/proc/self/fd/{}", found.as_raw_fd());
                fs::File::open(path).unwrap().read_to_string(&mut text).unwrap();
                Self::File(text)
            }
            other => panic!("{other:?}"),
        }
    }

    fn by_tool(result: &Result<Value, Failure>) -> Self {
        let failure = match result {
            Ok(value) => return Self::File(value["content"].as_str().unwrap().to_owned()),
            Err(failure) => &failure.message,
        };
        let words = [
            ("leads out of the root", Self::Outside),
            ("too many links", Self::Loop),
            ("does not exist", Self::Missing),
            ("is not a directory", Self::NotADirectory),
            ("is a directory", Self::Directory),
            ("is a named pipe", Self::Pipe),
        ];
        let found = words.into_iter().find(|(words, _)| failure.contains(words));
        found.unwrap_or_else(|| panic!("{failure}")).1
    }
}

/// A random tree below the root, and another one outside that has the same names.
struct Tree {
    folder: Folder,
    /// The paths of the tree below the root.
    entries: Vec<String>,
}

impl Tree {
    fn plant(chance: &mut Chance) -> Self {
        let mut tree = Self { folder: Folder::new(), entries: vec!["a".to_owned()] };
        for number in 0..8 {
            let path = tree.folder.path("outside").join(chance.one_of(&NAMES)).join(chance.one_of(&NAMES));
            let _ = fs::create_dir_all(path.parent().unwrap());
            let _ = fs::write(path, format!("outside {number}"));
        }
        for number in 0..24 {
            let directories: String =
                (0..chance.below(3)).map(|_| format!("{}/", chance.one_of(&NAMES))).collect();
            let _ = fs::create_dir_all(tree.folder.root().join(&directories));
            let path = format!("{directories}{}", chance.one_of(&NAMES));
            tree.add(chance, path, number);
        }
        tree
    }

    /// Adds an entry, where there is room for it.
    fn add(&mut self, chance: &mut Chance, path: String, number: usize) {
        let place = self.folder.root().join(&path);
        if place.symlink_metadata().is_ok() || !place.parent().unwrap().is_dir() {
            return;
        }
        match chance.below(10) {
            0..4 => drop(fs::write(place, format!("root {number}"))),
            4 => drop(fs::create_dir(place)),
            5 => drop(mknodat(CWD, place, FileType::Fifo, Mode::RUSR, 0)),
            _ => drop(symlink(self.target(chance, &path), place)),
        }
        self.entries.push(path);
    }

    /// Where a link points to: often to an entry, sometimes out by one step too many.
    fn target(&self, chance: &mut Chance, link: &str) -> String {
        let up = "../".repeat(link.matches('/').count());
        match chance.below(12) {
            0 => self.folder.path("outside").to_string_lossy().into_owned(),
            1 => self.folder.root().join(chance.one_of(&NAMES)).to_string_lossy().into_owned(),
            2 => format!("{up}../outside/{}", chance.one_of(&NAMES)),
            3 => format!("{up}../root/{}", chance.one_of(&self.entries)),
            4..8 => format!("{up}{}", chance.one_of(&self.entries)),
            _ => relative(chance),
        }
    }

    /// A path to be tried: an entry, with something before or after it.
    fn path(&self, chance: &mut Chance) -> String {
        let entry = chance.one_of(&self.entries);
        match chance.below(8) {
            0 => relative(chance),
            1 => format!("{}/../{entry}", chance.one_of(&self.entries)),
            2 => format!("{}/{}{entry}", chance.one_of(&NAMES), "../".repeat(1 + chance.below(2))),
            3 => format!("./{entry}//"),
            4 => format!("{entry}/{}", relative(chance)),
            _ => entry.clone(),
        }
    }
}

/// A path of names, parent steps, dots and slashes too many.
fn relative(chance: &mut Chance) -> String {
    let parts = ["..", ".", "", "outside", "root"];
    let mut path = String::new();
    for index in 0..1 + chance.below(5) {
        if index > 0 {
            path.push('/');
        }
        let part = if chance.below(3) == 0 { chance.one_of(&parts) } else { chance.one_of(&NAMES) };
        // An empty first part would make the path absolute.
        path.push_str(if path.is_empty() && part.is_empty() { "a" } else { part });
    }
    if chance.below(10) == 0 {
        path.push('/');
    }
    path
}

/// What stands outside, to be compared.
fn outside(folder: &Folder) -> Vec<(String, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut open = vec![folder.path("outside")];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let kind = entry.file_type().unwrap();
            let bytes = kind.is_file().then(|| fs::read(entry.path()).unwrap());
            found.push((entry.path().to_string_lossy().into_owned(), bytes));
            if kind.is_dir() {
                open.push(entry.path());
            }
        }
    }
    found.sort();
    found
}

async fn check_read(gate: &Gate, root: &OwnedFd, path: &str, folder: &Folder) -> Named {
    let expected = Named::by_kernel(root, path);
    let read = gate.call("read_file", json!({"path": path})).await;
    assert_eq!(Named::by_tool(&read), expected, "`{path}`");
    // An absolute path below the root means the same.
    let absolute = format!("{}/{path}", folder.root().display());
    let read = gate.call("read_file", json!({"path": absolute})).await;
    assert_eq!(Named::by_tool(&read), expected, "`{absolute}`");
    expected
}

async fn check_write(gate: &Gate, root: &OwnedFd, path: &str) {
    let before = Named::by_kernel(root, path);
    let written = gate.call("write_file", json!({"path": path, "content": "NEW"})).await;
    match written {
        Ok(_) => assert_eq!(Named::by_kernel(root, path), Named::File("NEW".into()), "`{path}`"),
        Err(_) => assert_eq!(Named::by_kernel(root, path), before, "`{path}`"),
    }
}

async fn check_tree(seed: u64) -> [usize; 3] {
    let mut chance = Chance::new(seed);
    let tree = Tree::plant(&mut chance);
    let folder = &tree.folder;
    let gate = folder.gate();
    let root: OwnedFd = fs::File::open(folder.root()).unwrap().into();
    let outside_before = outside(folder);
    let mut counts = [0; 3];
    for number in 0..PATHS_PER_TREE {
        let path = tree.path(&mut chance);
        match check_read(&gate, &root, &path, folder).await {
            Named::File(_) => counts[0] += 1,
            Named::Outside => counts[1] += 1,
            _ => counts[2] += 1,
        }
        if number % 5 == 4 {
            check_write(&gate, &root, &path).await;
        }
    }
    assert_eq!(outside(folder), outside_before);
    counts
}

fn cases() -> usize {
    let wanted = std::env::var("LLM_DO_PATH_CASES").ok().and_then(|text| text.parse().ok());
    wanted.unwrap_or(5_000).clamp(PATHS_PER_TREE, 1_000_000)
}

#[tokio::test]
async fn the_tools_and_the_kernel_agree_on_what_a_path_names() {
    let mut counts = [0; 3];
    for seed in 0..(cases() / PATHS_PER_TREE) as u64 {
        let tree = tokio::spawn(check_tree(seed)).await;
        let found = tree.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        counts.iter_mut().zip(found).for_each(|(sum, count)| *sum += count);
    }
    let [files, escapes, others] = counts;
    // A generator that finds no files or no ways out would test nothing.
    assert!(
        files * 20 > others && escapes * 20 > others,
        "{files} files, {escapes} escapes, {others} others"
    );
}
