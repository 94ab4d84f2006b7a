//! The filesystem toolset through the gate: what it reads, changes and lists, and that it never leaves its root.

#![cfg(unix)]

mod changing;
mod corpus;
#[cfg(target_os = "linux")]
mod full_disk;
mod listing;
mod one_writer;
mod reading;
mod searching;
mod secret_files;
mod support;

#[cfg(target_os = "linux")]
mod random_paths;
#[cfg(target_os = "linux")]
mod swapped_links;
