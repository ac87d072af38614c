//! What this machine gives: processes, files, the terminal, and how failures are told.

pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod foreign;
pub(crate) mod machine;
pub(crate) mod os;
pub(crate) mod outcome;
pub(crate) mod process;
pub(crate) mod terminal;
