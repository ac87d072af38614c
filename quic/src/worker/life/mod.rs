//! Start, failure, end and succession of workers.

pub(super) mod end;
pub(super) mod recovery;
pub(super) mod start;
pub(super) mod succession;
