//! Start, failure and succession of workers.

pub(super) mod broken;
pub(super) mod recovery;
pub(super) mod start;
pub(super) mod succession;
