//! Whose files they are. A file that somebody else can change may be something else at the next run.

use std::path::{Path, PathBuf};

/// A file that belongs to somebody else, or that others can write to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignFile {
    /// The file.
    pub path: PathBuf,
    /// Its owner.
    pub owner: u32,
    /// Whether others can write to it.
    pub writable_by_others: bool,
}

impl std::fmt::Display for ForeignFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.to_string_lossy();
        let shown = llm_do_core::visible_line(&path);
        match self.writable_by_others {
            true => write!(f, "others can write to {shown}"),
            false => write!(f, "{shown} belongs to the user {}", self.owner),
        }
    }
}

/// Returns the files that belong neither to the user nor to root (nor to `accepted`), or that others can write to.
#[cfg(unix)]
pub fn foreign_files<'p>(
    paths: impl IntoIterator<Item = &'p Path>,
    accepted: Option<u32>,
) -> Vec<ForeignFile> {
    use std::os::unix::fs::MetadataExt;
    let user = rustix::process::geteuid().as_raw();
    let judge = |path: &'p Path| {
        let metadata = path.metadata().ok()?;
        let owner = metadata.uid();
        let is_own = owner == user || owner == 0 || accepted == Some(owner);
        let writable_by_others = is_writable(metadata.mode(), metadata.gid());
        let foreign = ForeignFile { path: path.to_path_buf(), owner, writable_by_others };
        (!is_own || writable_by_others).then_some(foreign)
    };
    paths.into_iter().filter_map(judge).collect()
}

/// Returns the files that belong to somebody else. This system has no owners that llm-do knows.
#[cfg(not(unix))]
pub fn foreign_files<'p>(_: impl IntoIterator<Item = &'p Path>, _: Option<u32>) -> Vec<ForeignFile> {
    Vec::new()
}

/// Returns whether somebody besides the owner can write to a file. A sticky directory (`/tmp`) counts.
#[cfg(unix)]
pub fn is_writable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    path.metadata().is_ok_and(|metadata| is_writable(metadata.mode(), metadata.gid()))
}

/// Returns whether somebody besides the owner can write to a file. This system has no modes that llm-do knows.
#[cfg(not(unix))]
pub fn is_writable_by_others(_: &Path) -> bool {
    false
}

#[cfg(unix)]
fn is_writable(mode: u32, group: u32) -> bool {
    let groups = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    mode & 0o002 != 0 || (mode & 0o020 != 0 && !is_private_to(user, group, &users, &groups))
}

/// Returns whether a group has no member but one user, by the texts of `/etc/passwd` and `/etc/group`.
///
/// Many systems give each user such a group; a file that only it can write is the user's alone.
pub fn is_private_to(user: u32, group: u32, users: &str, groups: &str) -> bool {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let users: Vec<Vec<String>> = users.lines().map(fields).filter(|fields| fields.len() >= 4).collect();
    let number = |text: &str| text.parse::<u32>().ok();
    let Some(own) = users.iter().find(|fields| number(&fields[2]) == Some(user)) else { return false };
    let is_others = |fields: &&Vec<String>| number(&fields[3]) == Some(group) && fields[2] != own[2];
    let Some(entry) =
        groups.lines().map(fields).find(|fields| fields.len() >= 4 && number(&fields[2]) == Some(group))
    else {
        return false;
    };
    let members = entry[3].split(',').filter(|member| !member.is_empty());
    users.iter().find(is_others).is_none() && members.into_iter().all(|member| member == own[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &str = "root:x:0:0::/root:/bin/sh\nada:x:1000:1000::/home/ada:/bin/sh\nbob:x:1001:1001::/:/bin/sh\n\
                         eve:x:1002:100::/:/bin/sh\nkim:x:1003:100::/:/bin/sh\n";
    const GROUPS: &str = "ada:x:1000:\nbob:x:1001:ada\nusers:x:100:\nteam:x:200:ada,bob\nsolo:x:201:ada\n";

    #[test]
    fn a_group_of_one_user_is_private() {
        assert!(is_private_to(1000, 1000, USERS, GROUPS));
        assert!(is_private_to(1000, 201, USERS, GROUPS));
        for (user, group) in [(1000, 1001), (1000, 200), (1002, 100), (1000, 999), (4711, 1000)] {
            assert!(!is_private_to(user, group, USERS, GROUPS), "{user} {group}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn files_that_others_can_write_to_are_foreign() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.py");
        std::fs::write(&path, "").unwrap();
        assert_eq!(foreign_files([folder.path(), path.as_path()], None), []);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
        let found = foreign_files([path.as_path()], None);
        assert!(found[0].writable_by_others);
        assert!(found[0].to_string().starts_with("others can write to "));
    }
}
