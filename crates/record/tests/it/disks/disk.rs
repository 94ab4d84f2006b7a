//! What a disk may hold after the loss of power.
//!
//! What was synced is there. Of what was written since, anything may be: nothing, all, a beginning, or any of it in sectors
//! of 512 bytes. The name of a new file is there once the file or its directory was synced, as file systems of Linux with
//! a journal have it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use llm_do_testing::Chance;

use super::traced::DiskCall;

const SECTOR: usize = 512;

/// The files of a disk, with what is not safe yet.
#[derive(Default)]
pub(crate) struct Disk {
    files: BTreeMap<PathBuf, DiskFile>,
    /// Files that may still be there.
    removed: BTreeMap<PathBuf, DiskFile>,
}

#[derive(Default)]
struct DiskFile {
    has_safe_name: bool,
    synced: Vec<u8>,
    pending: Vec<DiskCall>,
}

/// What becomes of what is not safe.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Everything,
    Nothing,
    /// What was written last, the first of it in part.
    End,
    /// Any sectors of any writes.
    Sectors,
}

impl Disk {
    /// Takes a call that was made.
    pub(crate) fn take(&mut self, path: &Path, call: &DiskCall) {
        match call {
            DiskCall::Create => {
                self.removed.remove(path);
                self.files.entry(path.to_owned()).or_default();
            }
            DiskCall::Remove => {
                let file = self.files.remove(path);
                self.removed.extend(file.map(|file| (path.to_owned(), file)));
            }
            DiskCall::Sync => match self.files.get_mut(path) {
                Some(file) => file.sync(),
                None => self.sync_directory(path),
            },
            DiskCall::Write { .. } | DiskCall::Truncate { .. } => {
                self.files.entry(path.to_owned()).or_default().pending.push(call.clone());
            }
        }
    }

    fn sync_directory(&mut self, directory: &Path) {
        let is_in = |path: &Path| path.parent() == Some(directory);
        self.files.iter_mut().filter(|(path, _)| is_in(path)).for_each(|(_, file)| file.has_safe_name = true);
        self.removed.retain(|path, _| !is_in(path));
    }

    /// The files that may be found when power is back.
    pub(crate) fn after_loss(&self, chance: &mut Chance) -> Vec<(PathBuf, Vec<u8>)> {
        let loss =
            *chance.one_of(&[Loss::Everything, Loss::Nothing, Loss::End, Loss::Sectors, Loss::Sectors]);
        let mut found = Vec::new();
        for (path, file) in &self.files {
            let is_lost = !file.has_safe_name
                && match loss {
                    Loss::Everything => true,
                    Loss::Nothing => false,
                    Loss::End | Loss::Sectors => chance.below(2) == 0,
                };
            if !is_lost {
                found.push((path.clone(), file.after_loss(loss, chance)));
            }
        }
        let still_there = self.removed.iter().filter(|(_, file)| file.has_safe_name);
        for (path, file) in still_there {
            if chance.below(2) == 0 {
                found.push((path.clone(), file.after_loss(loss, chance)));
            }
        }
        found
    }
}

impl DiskFile {
    fn sync(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        pending.iter().for_each(|call| apply(&mut self.synced, call));
        self.has_safe_name = true;
    }

    fn after_loss(&self, loss: Loss, chance: &mut Chance) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let kept = match loss {
            Loss::Everything => 0,
            Loss::End => chance.below(self.pending.len() + 1),
            Loss::Nothing | Loss::Sectors => self.pending.len(),
        };
        for call in &self.pending[..kept] {
            match loss {
                Loss::Sectors => apply_sectors(&mut bytes, call, &mut |_| chance.below(2) == 0),
                _ => apply(&mut bytes, call),
            }
        }
        if let (Loss::End, Some(torn)) = (loss, self.pending.get(kept)) {
            let end = chance.below(17);
            apply_sectors(&mut bytes, torn, &mut |sector| sector < end);
        }
        bytes
    }
}

fn apply(bytes: &mut Vec<u8>, call: &DiskCall) {
    apply_sectors(bytes, call, &mut |_| true);
}

/// Applies those sectors of a write that are kept; anything else as a whole or not at all.
fn apply_sectors(bytes: &mut Vec<u8>, call: &DiskCall, is_kept: &mut impl FnMut(usize) -> bool) {
    match call {
        DiskCall::Write { offset, bytes: written } => {
            let mut start = usize::try_from(*offset).unwrap();
            let mut rest = written.as_slice();
            let mut sector = 0;
            while !rest.is_empty() {
                let len = rest.len().min(SECTOR - start % SECTOR);
                let (part, after) = rest.split_at(len);
                if is_kept(sector) {
                    bytes.resize(bytes.len().max(start + len), 0);
                    bytes[start..start + len].copy_from_slice(part);
                }
                (rest, start, sector) = (after, start + len, sector + 1);
            }
        }
        DiskCall::Truncate { len } if is_kept(0) => bytes.resize(usize::try_from(*len).unwrap(), 0),
        _ => {}
    }
}
