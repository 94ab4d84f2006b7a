//! Which file systems can hold a record.
//!
//! The processes that use a record share memory and locks through it. File systems over a network, or in another process,
//! do not give both.

use std::path::Path;

/// Their numbers, as statfs(2) gives them.
#[cfg(target_os = "linux")]
const UNSAFE: &[(u64, &str)] = &[
    (0x6969, "NFS"),
    (0x517b, "SMB"),
    (0xff53_4d42, "SMB"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x00c3_6400, "Ceph"),
    (0x5346_414f, "AFS"),
    (0x0bd0_0bd0, "Lustre"),
];

/// Returns the kind of the file system of a path, if it cannot hold a record safely. Of a path that does not exist yet, the
/// nearest directory above it counts.
#[cfg(target_os = "linux")]
pub fn unsafe_file_system(path: impl AsRef<Path>) -> Option<&'static str> {
    let path = path.as_ref();
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let found = absolute.ancestors().find_map(|part| rustix::fs::statfs(part).ok())?;
    // The field is signed or not, depending on the architecture; numbers above 2^31 arrive sign-extended.
    kind((found.f_type as u64) & 0xffff_ffff)
}

/// Returns the kind of the file system of a path, if it cannot hold a record safely: on this system, that is not known.
#[cfg(not(target_os = "linux"))]
pub fn unsafe_file_system(_path: impl AsRef<Path>) -> Option<&'static str> {
    None
}

#[cfg(target_os = "linux")]
fn kind(number: u64) -> Option<&'static str> {
    UNSAFE.iter().find(|(unsafe_number, _)| *unsafe_number == number).map(|(_, name)| *name)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_other_machines_and_processes_are_unsafe() {
        for (number, name) in [
            (0x6969, Some("NFS")),
            (0xff53_4d42, Some("SMB")),
            (0xfe53_4d42, Some("SMB")),
            (0x0102_1997, Some("9p")),
            (0x6573_5546, Some("FUSE")),
            // ext4, xfs, btrfs, tmpfs, overlayfs, zfs
            (0xef53, None),
            (0x5846_5342, None),
            (0x9123_683e, None),
            (0x0102_1994, None),
            (0x794c_7630, None),
            (0x2fc1_2fc1, None),
        ] {
            assert_eq!(kind(number), name, "{number:x}");
        }
    }

    #[test]
    fn a_path_that_does_not_exist_is_judged_by_the_directory_above_it() {
        assert_eq!(unsafe_file_system("/proc/self/none/record.db"), unsafe_file_system("/proc"));
        assert_eq!(unsafe_file_system("none/record.db"), unsafe_file_system("."));
    }
}
