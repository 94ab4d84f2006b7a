//! The folder of a case: a project, and a place outside of it that must stay as it is.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use llm_do_testing::TestDir;

use crate::real_effects::calls::{PYTHON, Rule};

/// A folder that is removed at the end.
pub(crate) struct Folder(TestDir);

impl Folder {
    /// Makes the project and the place outside.
    pub(crate) fn new(seed: u64, rule: Rule) -> Self {
        let folder = Self(TestDir::named(&format!("effects-{seed}")));
        for directory in ["p/d", "p/.git/hooks", "o"] {
            fs::create_dir_all(folder.0.join(directory)).unwrap();
        }
        let (tools, toolsets, files) =
            ("tools: [note_plain, note_registered]\n", ", made, shared", "python_files: [tools.py]\n");
        let manifest = "version: 1\nentry: {agent: main}\nagent_files: [main.agent, helper.agent]\n";
        let main = format!(
            "{tools}toolsets: [filesystem_project, shell_file_ops, dynamic_agents, helper, main{toolsets}]\n"
        );
        let helper = format!("{tools}toolsets: [filesystem_project, shell_file_ops{toolsets}]\n");
        for (path, text) in [
            ("p/main.agent", format!("---\nname: main\n{main}{}---\nYou are main.\n", rule.line())),
            ("p/helper.agent", format!("---\nname: helper\n{helper}{}---\nYou help.\n", rule.line())),
            ("p/project.yaml", format!("{manifest}{files}")),
            ("p/tools.py", PYTHON.to_owned()),
            ("p/seed.txt", "BASE".to_owned()),
            ("o/secret.txt", "secret".to_owned()),
        ] {
            folder.0.write(path, text);
        }
        for number in 0..25 {
            folder.0.write(format!("p/m{number}.txt"), "movable");
        }
        symlink("../o", folder.0.join("p/link")).unwrap();
        symlink("../o/secret.txt", folder.0.join("p/out.txt")).unwrap();
        folder
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.0.join("p")
    }

    /// Everything outside the project.
    pub(crate) fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        for path in files_below(self.0.path()).into_iter().filter(|path| !path.starts_with(self.project())) {
            let content = fs::read(&path).unwrap();
            files.insert(path, content);
        }
        files
    }

    /// The marks that are found in the names and contents of files.
    pub(crate) fn marks(&self) -> BTreeSet<String> {
        (self.look())()
    }

    /// What finds the marks whenever it is asked.
    pub(crate) fn look(&self) -> Box<dyn Fn() -> BTreeSet<String> + Send + Sync> {
        let project = self.project();
        Box::new(move || files_below(&project).iter().flat_map(|path| marks_of(path)).collect())
    }
}

fn marks_of(path: &Path) -> Vec<String> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let content = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    [name, content].iter().flat_map(|text| marks_in(text)).collect()
}

/// A mark: `mark`, two numbers with an `x` between them, `m`, and an `e` where a person edited it.
pub(crate) fn marks_in(text: &str) -> Vec<String> {
    let mut marks = Vec::new();
    for (at, _) in text.match_indices("mark") {
        let rest = &text[at + 4..];
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != 'x').unwrap_or(rest.len());
        if rest[digits..].starts_with('m') {
            let edited = usize::from(rest[digits + 1..].starts_with('e'));
            marks.push(text[at..at + 4 + digits + 1 + edited].to_owned());
        }
    }
    marks
}

fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push(entry.path()),
                Ok(kind) if kind.is_file() => files.push(entry.path()),
                _ => {}
            }
        }
    }
    files
}
