//! The environment in which commands run: the directory, the programs that are found, and the variables.

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::root::Root;
use super::settings::ShellSettings;
use crate::toolset_error::ToolsetError;

/// The directories in which programs are found, in this order; never the project, never the caller's `PATH`.
pub(crate) const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// The directory, programs and variables of commands.
#[derive(Debug, Clone)]
pub(crate) struct ExecutionEnv {
    pub(crate) root: Root,
    directories: Vec<PathBuf>,
    environment: BTreeMap<String, String>,
}

impl ExecutionEnv {
    /// Checks what the settings say about directories and variables.
    pub(crate) fn new(project: &Path, settings: &ShellSettings) -> Result<Self, ToolsetError> {
        let project = Root::new(project)?;
        let root = Root::new(&project.path().join(&settings.root))?;
        if !root.path().starts_with(project.path()) {
            return Err(ToolsetError::RootOutside {
                root: settings.root.clone(),
                base: project.path().to_path_buf(),
            });
        }
        let added =
            settings.program_directories.iter().map(|directory| program_directory(directory, &project));
        let system = SYSTEM_DIRECTORIES.iter().map(|directory| Ok(PathBuf::from(directory)));
        let directories = system.chain(added).collect::<Result<Vec<_>, ToolsetError>>()?;
        let environment = environment(&directories, &settings.environment)?;
        Ok(Self { root, directories, environment })
    }

    /// Finds a program by its bare name, or by its path in one of the directories.
    pub(crate) fn find(&self, word: &str) -> Result<PathBuf, String> {
        let named = |directory: &PathBuf| match word.rsplit_once('/') {
            Some((path, name)) => (directory == Path::new(path)).then(|| directory.join(name)),
            None => Some(directory.join(word)),
        };
        let mut candidates = self.directories.iter().filter_map(named);
        candidates.find(|path| self.may_run(path)).ok_or_else(|| {
            let searched: Vec<String> =
                self.directories.iter().map(|path| path.display().to_string()).collect();
            format!("the program `{word}` is not installed in {}", searched.join(", "))
        })
    }

    /// A program is an executable file that not everybody may change, and none that lies in the root behind
    /// a link.
    fn may_run(&self, path: &Path) -> bool {
        let executable = path.metadata().is_ok_and(|data| {
            let mode = data.permissions().mode();
            data.is_file() && mode & 0o111 != 0 && mode & 0o002 == 0
        });
        executable && path.canonicalize().is_ok_and(|target| !target.starts_with(self.root.path()))
    }

    /// Returns the directories in which programs are found.
    pub(crate) fn directories(&self) -> &[PathBuf] {
        &self.directories
    }

    /// Returns all variables that a program sees.
    pub(crate) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }
}

fn program_directory(directory: &Path, project: &Root) -> Result<PathBuf, ToolsetError> {
    let invalid = |problem: String| {
        ToolsetError::Setting(format!("`program_directories`: `{}` {problem}", directory.display()))
    };
    if !directory.is_absolute() {
        return Err(invalid("is not absolute".to_owned()));
    }
    let resolved = directory.canonicalize().map_err(|error| invalid(format!("cannot be used: {error}")))?;
    if resolved.starts_with(project.path()) {
        return Err(invalid("is in the project, whose files are not trusted".to_owned()));
    }
    check_owners(&resolved).map_err(invalid)?;
    Ok(resolved)
}

/// Checks that nobody but the user and root can put a program into a directory: not into the directory itself, nor by
/// replacing one of those above it. Temporary directories are refused with this, since everybody can write to them.
fn check_owners(directory: &Path) -> Result<(), String> {
    let user = rustix::process::geteuid().as_raw();
    for ancestor in directory.ancestors() {
        let data = ancestor.metadata().map_err(|error| format!("cannot be read: {error}"))?;
        let shown = ancestor.display();
        if data.uid() != user && data.uid() != 0 {
            return Err(format!("is not safe: `{shown}` belongs to another user (id {})", data.uid()));
        }
        if data.mode() & 0o002 != 0 {
            return Err(format!("is not safe: everybody can write to `{shown}`"));
        }
        let is_own_group = data.gid() == rustix::process::getegid().as_raw() || data.gid() == 0;
        if data.mode() & 0o020 != 0 && !is_own_group {
            return Err(format!("is not safe: the group {} can write to `{shown}`", data.gid()));
        }
    }
    Ok(())
}

/// Programs inherit nothing: they see these variables, and those of the settings.
fn environment(
    directories: &[PathBuf],
    given: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, ToolsetError> {
    let path = directories.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(":");
    let fixed = [("PATH", path.as_str()), ("LANG", "C.UTF-8"), ("TERM", "dumb")];
    let mut environment: BTreeMap<String, String> =
        fixed.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    for (name, value) in given {
        if let Some(reason) = problem(name, value) {
            return Err(ToolsetError::Setting(format!("`environment`: `{name}` {reason}")));
        }
        environment.insert(name.clone(), value.clone());
    }
    Ok(environment)
}

/// Why a variable may not be set: it changes what runs, or is a secret.
fn problem(name: &str, value: &str) -> Option<&'static str> {
    const CHANGES_WHAT_RUNS: &[&str] = &[
        "PATH",
        // Programs read their configuration there, and git runs what its configuration names.
        "HOME",
        "CARGO_HOME",
        "CLASSPATH",
        "CURL_HOME",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "INPUTRC",
        "LOCPATH",
        "NLSPATH",
        "PROMPT_COMMAND",
        "RUSTC",
        "TERMINFO",
        "TERMINFO_DIRS",
        "WGETRC",
        "ZDOTDIR",
        "IFS",
        "ENV",
        "SHELL",
        "SHELLOPTS",
        "BASHOPTS",
        "PAGER",
        "EDITOR",
        "VISUAL",
        "RIPGREP_CONFIG_PATH",
        "LESSOPEN",
        "LESSCLOSE",
    ];
    const FAMILIES: &[&str] = &[
        "LD_",
        "DYLD_",
        "GIT_",
        "BASH_",
        "LESS",
        "PERL",
        "PYTHON",
        "XDG_",
        "NODE_",
        "NPM_CONFIG_",
        "RUBY",
        "GEM_",
        "JAVA_",
        "_JAVA",
        "JDK_",
        "LUA_",
        "RUSTC_",
        "CARGO_BUILD_",
        "CARGO_TARGET_",
        "LLM_DO_",
    ];
    let upper = name.to_uppercase();
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        return Some("is not a variable");
    }
    if CHANGES_WHAT_RUNS.contains(&upper.as_str()) || FAMILIES.iter().any(|family| upper.starts_with(family))
    {
        return Some("may not be set: it changes what runs");
    }
    llm_do_core::secret_word(name)
        .map(|_| "may not be set: it looks like a secret, which every program would see")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env_with(change: impl FnOnce(&mut ShellSettings)) -> Result<ExecutionEnv, ToolsetError> {
        let mut settings = ShellSettings::default();
        change(&mut settings);
        ExecutionEnv::new(&std::env::temp_dir(), &settings)
    }

    #[test]
    fn variables_that_change_what_runs_or_look_like_secrets_are_refused() {
        let with =
            |name: &str| env_with(|settings| drop(settings.environment.insert(name.into(), "x".into())));
        for name in [
            "PATH",
            "LD_PRELOAD",
            "GIT_DIR",
            "BASH_ENV",
            "IFS",
            "MY_API_KEY",
            "token",
            "PGPASSWD",
            "AWS_CREDENTIALS",
            "PAGER",
            "",
            "A=B",
        ] {
            assert!(with(name).is_err(), "{name}");
        }
        for name in
            ["HOME", "XDG_CONFIG_HOME", "xdg_data_dirs", "NODE_OPTIONS", "RUBYOPT", "JAVA_TOOL_OPTIONS"]
        {
            assert!(with(name).is_err(), "{name}");
        }
        assert_eq!(with("CI").unwrap().environment()["CI"], "x");
    }

    #[test]
    fn directories_of_programs_are_absolute_and_outside_the_project() {
        let inside = std::env::temp_dir();
        for directory in ["bin", inside.to_str().unwrap(), "/no/such/directory"] {
            assert!(
                env_with(|settings| settings.program_directories.push(directory.into())).is_err(),
                "{directory}"
            );
        }
        let found = env_with(|settings| settings.program_directories.push("/usr/sbin".into())).unwrap();
        assert!(found.environment()["PATH"].ends_with(":/usr/sbin"));
    }

    #[test]
    fn directories_that_others_can_write_to_hold_no_programs() {
        let folder = llm_do_testing::TestDir::new();
        let refused = check_owners(folder.path()).unwrap_err();
        assert!(refused.contains("everybody can write to"), "{refused}");
        assert_eq!(check_owners(Path::new("/usr/sbin")), Ok(()));
    }

    #[test]
    fn the_root_stays_within_the_project() {
        assert!(
            env_with(|settings| settings.root = "..".into()).unwrap_err().to_string().contains("outside")
        );
    }

    #[test]
    fn programs_are_found_by_name_only_in_the_known_directories() {
        let env = env_with(|_| ()).unwrap();
        assert!(env.find("ls").is_ok());
        for word in ["./ls", "/tmp/ls", "no-such-program", "..", "", "../bin/ls", "/usr/bin/../bin/ls"] {
            assert!(env.find(word).is_err(), "{word}");
        }
    }
}
