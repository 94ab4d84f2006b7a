//! Repositories that name a program in every way that git knows: none of them runs it.
//!
//! `LLM_DO_SHELL_REPOSITORIES` says how many there are at most; without it every other one is tried.
//!
//! Each is shown to be a trap that closes under plain git, where that can be shown without a terminal or a
//! network; plain git is run without privileges.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use futures::stream::{self, StreamExt};
use llm_do_core::Approval::PreApproved;

use crate::shell::support::{Folder, assess, number, read_only, run, unprivileged};

/// A setting that names a program, written `EVIL`; what else it needs; and what closes the trap.
struct Setting {
    key: &'static str,
    others: &'static [(&'static str, &'static str)],
    attributes: &'static str,
    plain: &'static str,
}

const fn setting(key: &'static str, plain: &'static str) -> Setting {
    Setting { key, others: &[], attributes: "", plain }
}

/// Settings that the listed commands of git would obey.
const OF_READERS: [Setting; 10] = [
    setting("core.fsmonitor", "git status"),
    setting("diff.external", "git diff"),
    Setting { attributes: "* diff=x", ..setting("diff.x.command", "git diff") },
    Setting { attributes: "* diff=x", ..setting("diff.x.textconv", "git log -p") },
    Setting { attributes: "* filter=x", ..setting("filter.x.clean", "git diff") },
    Setting { attributes: "* filter=x", ..setting("filter.x.process", "git diff") },
    Setting { others: &[("log.showSignature", "true")], ..setting("gpg.program", "git log signed") },
    Setting { others: &[("log.showSignature", "true")], ..setting("gpg.openpgp.program", "git show signed") },
    Setting {
        others: &[("log.diffMerges", "remerge")],
        attributes: "* merge=x",
        ..setting("merge.x.driver", "git log -p -m")
    },
    Setting { others: PROMISOR, ..setting("core.sshCommand", "git log -p --all") },
];

/// What makes git fetch an object that is missing.
const PROMISOR: &[(&str, &str)] = &[
    ("core.repositoryFormatVersion", "1"),
    ("extensions.partialClone", "origin"),
    ("remote.origin.promisor", "true"),
    ("remote.origin.url", "ssh://example.invalid/x"),
];

/// Settings that other commands of git obey, and the listed ones must not.
#[rustfmt::skip]
const OF_OTHERS: [Setting; 24] = [
    setting("core.pager", "script -qec 'git log' /dev/null"),
    setting("pager.status", "script -qec 'git status' /dev/null"),
    setting("pager.diff", "script -qec 'git diff' /dev/null"),
    setting("pager.show", "script -qec 'git show' /dev/null"),
    setting("core.editor", "git commit --allow-empty"),
    setting("sequence.editor", "git rebase -i HEAD --autostash"),
    setting("core.sshCommand", "git ls-remote ssh://example.invalid/x"),
    setting("core.gitProxy", "git ls-remote git://example.invalid/x"),
    setting("core.askPass", ""),
    setting("credential.helper", "printf 'protocol=https\\nhost=x\\n\\n' | git credential fill"),
    setting("interactive.diffFilter", "printf 'q\\n' | git -c color.ui=always add -p"),
    setting("trailer.x.command", "git interpret-trailers --trailer x=1 < /dev/null"),
    setting("trailer.x.cmd", "git interpret-trailers --trailer x=1 < /dev/null"),
    setting("alias.x", "git x"),
    setting("alias.log", ""),
    Setting { others: &[("remote.origin.url", ".")], ..setting("remote.origin.uploadpack", "git fetch origin") },
    Setting { others: &[("remote.origin.url", ".")], ..setting("remote.origin.receivepack", "git push origin main:y") },
    setting("difftool.x.cmd", "git difftool -y -t x"),
    setting("tar.x.command", "git archive --format=x HEAD"),
    Setting { attributes: "* filter=x", ..setting("filter.x.smudge", "rm a.txt; git checkout a.txt") },
    Setting { others: &[("commit.gpgSign", "true")], ..setting("gpg.program", "git commit --allow-empty -m x") },
    Setting { others: &[("gpg.format", "ssh"), ("log.showSignature", "true"), ("user.signingKey", "x")],
        ..setting("gpg.ssh.program", "git commit --allow-empty -S -m x") },
    Setting { others: &[("gpg.format", "x509"), ("log.showSignature", "true")],
        ..setting("gpg.x509.program", "git commit --allow-empty -S -m x") },
    setting("core.alternateRefsCommand", "git log --alternate-refs"),
];

/// Where the settings of a repository can stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Local,
    Included,
    IncludedHere,
    WorkingTree,
    /// `.git` is a file that names the directory.
    Elsewhere,
    /// A directory of the working tree that is a repository itself.
    Embedded,
}

use Place::{Elsewhere, Embedded, Included, IncludedHere, Local, WorkingTree};

struct Trap {
    folder: Folder,
    /// Where the repository is, below the root.
    directory: &'static str,
}

impl Trap {
    fn new(setting: &Setting, place: Place) -> Self {
        let directory = if place == Embedded { "inner" } else { "." };
        let trap = Self { folder: Folder::new(), directory };
        fs::create_dir_all(trap.root()).unwrap();
        let program = format!("#!/bin/sh\ntouch {}\n", trap.marker().display());
        fs::write(trap.program(), program).unwrap();
        fs::set_permissions(trap.program(), PermissionsExt::from_mode(0o755)).unwrap();
        trap.history();
        trap.configure(setting, place);
        trap
    }

    fn root(&self) -> PathBuf {
        self.folder.root().join(self.directory)
    }

    fn marker(&self) -> PathBuf {
        self.folder.path("marker")
    }

    fn program(&self) -> PathBuf {
        self.folder.path("evil")
    }

    fn git(&self, arguments: &[&str]) {
        self.folder.git(&format!("root/{}", self.directory), arguments);
    }

    /// A merge of two changes of one line, a commit that says it is signed, and a file that is changed.
    fn history(&self) {
        let write = |text: &str| fs::write(self.root().join("a.txt"), text).unwrap();
        self.git(&["init", "-q", "-b", "main", "."]);
        for (key, value) in [("user.name", "t"), ("user.email", "t@example.com")] {
            self.git(&["config", key, value]);
        }
        write("one\n");
        self.git(&["add", "a.txt"]);
        self.git(&["commit", "-qm", "first"]);
        self.git(&["checkout", "-qb", "side"]);
        write("side\n");
        self.git(&["commit", "-qam", "side"]);
        self.git(&["checkout", "-q", "main"]);
        write("main\n");
        self.git(&["commit", "-qam", "main"]);
        self.git(&["merge", "-q", "-s", "ours", "--no-edit", "side"]);
        let signed = "tree 4b825dc642cb6eb9a060e54bf8d69288fbee4904\nauthor t <t> 0 +0000\ncommitter t <t> 0 +0000\n\
            gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n";
        fs::write(self.folder.path("signed"), signed).unwrap();
        let path = self.folder.path("signed").display().to_string();
        let output = Command::new("git")
            .args(["hash-object", "-t", "commit", "-w", &path])
            .current_dir(self.root())
            .output()
            .unwrap();
        let id = String::from_utf8(output.stdout).unwrap();
        self.git(&["update-ref", "refs/heads/signed", id.trim()]);
        write("changed\n");
    }

    fn configure(&self, setting: &Setting, place: Place) {
        if !setting.attributes.is_empty() {
            fs::write(self.root().join(".git/info/attributes"), setting.attributes).unwrap();
            fs::write(self.root().join(".gitattributes"), setting.attributes).unwrap();
        }
        let program = self.program().display().to_string();
        let value = if setting.key.starts_with("alias") { format!("!{program}") } else { program };
        let file = match place {
            Local | Elsewhere | Embedded => ".git/config",
            WorkingTree => ".git/config.worktree",
            Included | IncludedHere => "more",
        };
        for (key, value) in setting.others.iter().copied().chain([(setting.key, value.as_str())]) {
            self.git(&["config", "-f", file, key, value]);
        }
        match place {
            Included => self.git(&["config", "include.path", "../more"]),
            IncludedHere => self.git(&["config", "includeIf.gitdir:**.path", "../more"]),
            WorkingTree => self.git(&["config", "extensions.worktreeConfig", "true"]),
            Elsewhere => {
                fs::rename(self.root().join(".git"), self.root().join("repository")).unwrap();
                fs::write(self.root().join(".git"), "gitdir: repository\n").unwrap();
            }
            Local | Embedded => {}
        }
        if setting.others == PROMISOR {
            // The object of `one` is missing.
            let objects = if place == Elsewhere { "repository/objects/56" } else { ".git/objects/56" };
            fs::remove_dir_all(self.root().join(objects)).unwrap();
        }
        if setting.key == "core.alternateRefsCommand" {
            fs::create_dir_all(self.root().join("other")).unwrap();
            let other = self.root().join("other").display().to_string();
            self.git(&["init", "-q", "--bare", &other]);
            fs::write(self.root().join(".git/objects/info/alternates"), format!("{other}/objects\n"))
                .unwrap();
        }
    }

    /// Runs all listed commands that would not ask, and returns how many there were.
    async fn read(&self, name: &str) -> u32 {
        let tool = read_only(&self.folder.root()).await;
        let mut allowed = 0;
        for command in [
            "git status",
            "git diff HEAD",
            "git log -p --all",
            "git log -m -p",
            "git show signed",
            "git log '--format=%G?'",
        ] {
            let command = command.replacen("git", &format!("git -C {}", self.directory), 1);
            if assess(&tool, &command).await.approval == PreApproved {
                allowed += 1;
                let _ = run(&tool, &command).await;
            }
            assert!(!self.marker().exists(), "{name}: `{command}` ran a program of the repository");
        }
        allowed
    }

    /// Runs plain git, and says whether the program of the repository ran.
    fn closes(&self, plain: &str) -> bool {
        let everything = self.folder.path(".");
        if rustix::process::geteuid().is_root() {
            let status = Command::new("chown").args(["-R", "65534:65534"]).arg(&everything).status().unwrap();
            assert!(status.success());
        }
        let mut command = unprivileged().unwrap();
        command.args(["timeout", "10", "sh", "-c", plain]).current_dir(self.root());
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("TERM", "xterm")
            .env_remove("GIT_PAGER")
            .env_remove("PAGER");
        let _ = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        self.marker().exists()
    }
}

struct Tally {
    allowed: u32,
    closed: Option<bool>,
    name: String,
}

async fn try_trap((setting, place): (&Setting, Place)) -> Tally {
    let trap = Trap::new(setting, place);
    let name = format!("{} ({place:?})", setting.key);
    let allowed = trap.read(&name).await;
    let can_try = !setting.plain.is_empty()
        && unprivileged().is_some()
        && (!setting.plain.starts_with("script") || std::path::Path::new("/usr/bin/script").exists());
    Tally { allowed, closed: can_try.then(|| trap.closes(setting.plain)), name }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_repository_runs_a_program_wherever_it_names_it() {
    let places = [Local, Included, IncludedHere, WorkingTree, Elsewhere, Embedded];
    let of_readers = OF_READERS.iter().flat_map(|setting| places.map(|place| (setting, place)));
    let all: Vec<_> = of_readers.chain(OF_OTHERS.iter().map(|setting| (setting, Local))).collect();
    let most = number("LLM_DO_SHELL_REPOSITORIES", 0);
    let step = if most == 0 { 2 } else { 1 };
    let chosen = all.into_iter().step_by(step).take(usize::try_from(most.max(42)).unwrap());
    let tallies: Vec<Tally> = stream::iter(chosen).map(try_trap).buffer_unordered(2).collect().await;
    let allowed: u32 = tallies.iter().map(|tally| tally.allowed).sum();
    let tried: Vec<&Tally> = tallies.iter().filter(|tally| tally.closed.is_some()).collect();
    let open: Vec<&str> =
        tried.iter().filter(|tally| tally.closed == Some(false)).map(|tally| tally.name.as_str()).collect();
    println!(
        "{} repositories, {allowed} commands ran at once, {} of {} traps close under plain git",
        tallies.len(),
        tried.len() - open.len(),
        tried.len()
    );
    assert!(allowed as usize > tallies.len(), "only {allowed} commands ran: the tests show little");
    assert_eq!(open, Vec::<&str>::new(), "traps that prove nothing");
}
