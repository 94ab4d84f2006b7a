//! A project of Python files in a directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use llm_do_core::{Tool, Toolset};
use llm_do_project::{Code, CodeProblem, ProjectFiles, WantedClass, WantedCode, WantedFunction};
use llm_do_python::{PythonSettings, python_code};
use llm_do_testing::TestDir;
use llm_do_tools::ToolsetEnv;

/// A directory with Python files that vanishes with its value.
pub(crate) struct Folder {
    directory: TestDir,
    pub(crate) settings: PythonSettings,
    pub(crate) interpreter: Option<String>,
    pub(crate) classes: Vec<WantedClass>,
    pub(crate) entry: Option<WantedFunction>,
    token: String,
}

/// A variable by which the processes of a test are found.
const TOKEN: &str = "LLM_DO_TEST_TOKEN";

impl Folder {
    /// A directory with one file, `tools.py`.
    pub(crate) fn of(source: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let token = format!("{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let mut settings = PythonSettings {
            cache: Some(std::env::temp_dir().join(format!("llm-do-python-it-cache-{}", std::process::id()))),
            ..PythonSettings::default()
        };
        settings.environment.push((TOKEN.into(), token.clone().into()));
        let directory = TestDir::new();
        let folder = Self { directory, settings, interpreter: None, classes: Vec::new(), entry: None, token };
        folder.file("tools.py", source);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        self.directory.write(name, text);
        self
    }

    pub(crate) fn load(&self) -> Code {
        self.try_load().map_err(|problems| panic!("the files do not load: {problems:#?}")).unwrap()
    }

    pub(crate) fn try_load(&self) -> Result<Code, Vec<CodeProblem>> {
        self.try_load_files(&["tools.py"])
    }

    pub(crate) fn try_load_files(&self, files: &[&str]) -> Result<Code, Vec<CodeProblem>> {
        let files: Vec<PathBuf> = files.iter().map(|file| self.directory.join(file)).collect();
        self.try_load_paths(self.path(), &files)
    }

    pub(crate) fn try_load_paths(&self, root: &Path, files: &[PathBuf]) -> Result<Code, Vec<CodeProblem>> {
        let own = ProjectFiles::default();
        let wanted = WantedCode {
            variables: &[],
            keys: &[],
            root,
            interpreter: self.interpreter.as_deref(),
            load_limit: None,
            files,
            classes: &self.classes,
            entry: self.entry.as_ref(),
            own: &own,
        };
        let env = ToolsetEnv { directory: self.path().to_owned(), ..ToolsetEnv::default() };
        python_code(wanted, &env, &self.settings)
    }

    /// The processes that were started for this folder and still run.
    pub(crate) fn processes(&self) -> Vec<String> {
        let needle = format!("{TOKEN}={}\0", self.token);
        let entries = fs::read_dir("/proc").unwrap().flatten();
        let is_ours = |path: &Path| {
            let environment = fs::read(path.join("environ")).unwrap_or_default();
            environment.windows(needle.len()).any(|part| part == needle.as_bytes())
        };
        let alive = |path: &Path| {
            let stat = fs::read_to_string(path.join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
        };
        let ours = entries.map(|entry| entry.path()).filter(|path| is_ours(path) && alive(path));
        ours.map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " "))
            .collect()
    }

    /// Sees that nothing is left of the processes, soon.
    pub(crate) fn assert_no_processes(&self) {
        let start = Instant::now();
        while !self.processes().is_empty() && start.elapsed() < Duration::from_secs(1) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.processes(), Vec::<String>::new());
    }
}

/// Finds things in code by name.
pub(crate) trait Named {
    fn tool(&self, name: &str) -> Arc<dyn Tool>;
    fn toolset(&self, name: &str) -> Arc<dyn Toolset>;
}

impl Named for Code {
    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let found = self.tools.iter().find(|tool| tool.value.definition().name == name);
        found.unwrap_or_else(|| panic!("no tool `{name}`")).value.clone()
    }

    fn toolset(&self, name: &str) -> Arc<dyn Toolset> {
        let found = self.toolsets.iter().find(|toolset| *toolset.value.name() == name);
        found.unwrap_or_else(|| panic!("no toolset `{name}`")).value.clone()
    }
}
