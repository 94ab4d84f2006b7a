//! Disks that fail at any write or sync, and disks that lose power.

mod disk;
mod failing;
mod power_loss;
mod registers;
mod traced;
