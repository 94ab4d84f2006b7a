//! The file that keeps agreements: what is found again, what is refused, and two writers at once.

use std::fs;
use std::path::{Path, PathBuf};

use llm_do_trust::{
    DirectoryIdentity, Location, Lookup, Power, Powers, StoreError, TrustEntry, TrustSource, TrustStore,
    is_too_wide,
};

struct Place {
    folder: tempfile::TempDir,
    store: TrustStore,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = TrustStore::new(Some(folder.path().join("state")));
        Self { folder, store }
    }

    fn project(&self, name: &str) -> PathBuf {
        let path = self.folder.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn agree(&self, directory: &Path, powers: &Powers) {
        let entry = TrustEntry::new(
            &DirectoryIdentity::read(directory).unwrap(),
            powers.to_vec(),
            TrustSource::Command,
        );
        self.store.record(entry).unwrap();
    }

    fn look_up(&self, directory: &Path, powers: &Powers) -> Lookup {
        self.store.look_up(&DirectoryIdentity::read(directory).unwrap(), powers).unwrap()
    }

    fn file(&self) -> PathBuf {
        self.store.path().unwrap()
    }
}

fn powers(names: &[&str]) -> Powers {
    let location = Location { file: "main.agent".into(), line: None, key: "env_info".to_owned() };
    names.iter().map(|name| (Power::Variable { name: (*name).to_owned() }, location.clone())).collect()
}

#[test]
fn a_subset_is_trusted_and_a_superset_names_the_difference() {
    let place = Place::new();
    let project = place.project("project");
    assert_eq!(place.look_up(&project, &powers(&["A"])), Lookup::Unknown);
    place.agree(&project, &powers(&["A", "B"]));
    assert!(matches!(place.look_up(&project, &powers(&["B"])), Lookup::Trusted(_)));
    let Lookup::Beyond(_, changes) = place.look_up(&project, &powers(&["B", "C"])) else { panic!() };
    assert_eq!(changes.new.len(), 1);
    assert_eq!(changes.new[0].power, Power::Variable { name: "C".to_owned() });
    assert!(place.store.revoke(&project).unwrap());
    assert!(!place.store.revoke(&project).unwrap());
    assert_eq!(place.look_up(&project, &powers(&["A"])), Lookup::Unknown);
}

#[test]
fn a_directory_that_was_replaced_or_moved_is_another_one() {
    let place = Place::new();
    let project = place.project("project");
    place.agree(&project, &powers(&["A"]));
    let moved = project.with_file_name("moved");
    fs::rename(&project, &moved).unwrap();
    assert_eq!(place.look_up(&moved, &powers(&["A"])), Lookup::Unknown);
    fs::create_dir(&project).unwrap();
    assert_eq!(place.look_up(&project, &powers(&["A"])), Lookup::Replaced);
}

#[cfg(unix)]
#[test]
fn a_link_is_what_it_points_to() {
    let place = Place::new();
    let project = place.project("project");
    place.agree(&project, &powers(&["A"]));
    let link = project.with_file_name("link");
    std::os::unix::fs::symlink(&project, &link).unwrap();
    assert!(matches!(place.look_up(&link, &powers(&["A"])), Lookup::Trusted(_)));
}

#[cfg(unix)]
#[test]
fn a_path_that_is_not_utf8_is_kept() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    let root = place.project("root");
    let project = root.join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&project).unwrap();
    place.agree(&project, &powers(&["A"]));
    assert!(matches!(place.look_up(&project, &powers(&["A"])), Lookup::Trusted(_)));
    assert!(fs::read_to_string(place.file()).unwrap().contains("path_bytes"));
}

#[test]
fn everything_below_is_trusted_only_if_somebody_said_so() {
    let place = Place::new();
    let (above, below) = (place.project("mono"), place.project("mono/a/b"));
    let mut entry =
        TrustEntry::new(&DirectoryIdentity::read(&above).unwrap(), Vec::new(), TrustSource::Command);
    place.store.record(entry.clone()).unwrap();
    assert_eq!(place.look_up(&below, &powers(&["A"])), Lookup::Unknown);
    entry.below = true;
    place.store.record(entry).unwrap();
    assert!(matches!(place.look_up(&below, &powers(&["A"])), Lookup::Trusted(_)));
    assert_eq!(place.look_up(&place.project("monorail"), &powers(&["A"])), Lookup::Unknown);
}

#[test]
fn wide_directories_are_named_as_such() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    assert!(is_too_wide(Path::new("/"), None).is_some());
    assert!(is_too_wide(&home, Some(&home)).is_some());
    assert!(is_too_wide(home.parent().unwrap(), Some(&home)).is_some());
    assert!(is_too_wide(&std::env::temp_dir(), None).is_some());
}

/// Whatever is wrong with the file: there is no trust, it is said, and the file is kept when the next entry is written.
fn assert_ignored_and_kept(place: &Place, project: &Path) {
    let error = place.store.look_up(&DirectoryIdentity::read(project).unwrap(), &powers(&["A"])).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    place.agree(project, &powers(&["A"]));
    assert!(matches!(place.look_up(project, &powers(&["A"])), Lookup::Trusted(_)));
    assert!(place.file().with_extension("json.damaged-1").symlink_metadata().is_ok());
}

#[test]
fn a_damaged_file_is_no_trust_and_is_kept_aside() {
    for text in [
        "",
        "{",
        "[]",
        r#"{"version": 2, "entries": []}"#,
        r#"{"version": 1, "entries": [], "more": 1}"#,
        r#"{"version": 1, "entries": [{"path": "/"}]}"#,
        "\u{fffd}\0",
    ] {
        let place = Place::new();
        let project = place.project("project");
        place.agree(&project, &powers(&["A"]));
        fs::write(place.file(), text).unwrap();
        assert_ignored_and_kept(&place, &project);
    }
}

#[cfg(unix)]
#[test]
fn a_link_or_a_file_that_others_can_write_is_no_trust() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let project = place.project("project");
    place.agree(&project, &powers(&["A"]));
    fs::set_permissions(place.file(), fs::Permissions::from_mode(0o666)).unwrap();
    assert_ignored_and_kept(&place, &project);

    let place = Place::new();
    let project = place.project("project");
    place.agree(&project, &powers(&["A"]));
    let elsewhere = place.project("elsewhere").join("trust.json");
    fs::rename(place.file(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, place.file()).unwrap();
    assert_ignored_and_kept(&place, &project);
}

#[cfg(unix)]
#[test]
fn the_file_is_readable_by_the_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.agree(&place.project("project"), &powers(&["A"]));
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&place.file()), 0o600);
    assert_eq!(mode(place.file().parent().unwrap()), 0o700);
}

#[test]
fn without_a_directory_nothing_is_remembered_and_that_is_said() {
    let place = Place::new();
    let identity = DirectoryIdentity::read(&place.project("project")).unwrap();
    let store = TrustStore::new(None);
    assert_eq!(store.look_up(&identity, &powers(&["A"])).unwrap(), Lookup::Unknown);
    let entry = TrustEntry::new(&identity, Vec::new(), TrustSource::Command);
    assert!(matches!(store.record(entry), Err(StoreError::NoDirectory)));
}

#[test]
fn two_writers_lose_nothing() {
    let place = Place::new();
    let projects: Vec<PathBuf> = (0..40).map(|number| place.project(&format!("p{number}"))).collect();
    std::thread::scope(|scope| {
        for half in projects.chunks(20) {
            let place = &place;
            scope.spawn(move || half.iter().for_each(|project| place.agree(project, &powers(&["A"]))));
        }
    });
    assert_eq!(place.store.entries().unwrap().len(), 40);
}

#[test]
fn a_worktree_is_trusted_for_the_powers_of_its_main_checkout() {
    let place = Place::new();
    let (main, linked) = (place.project("main"), place.project("linked"));
    let registered = place.project("main/.git/worktrees/linked");
    fs::write(linked.join(".git"), format!("gitdir: {}\n", registered.display())).unwrap();
    place.agree(&main, &powers(&["A"]));
    assert_eq!(place.look_up(&linked, &powers(&["A"])), Lookup::Unknown);
    fs::write(registered.join("gitdir"), format!("{}\n", linked.join(".git").display())).unwrap();
    assert!(matches!(place.look_up(&linked, &powers(&["A"])), Lookup::Trusted(_)));
    assert_eq!(place.look_up(&linked, &powers(&["A", "B"])), Lookup::Unknown);
}
