//! Comparisons made of many runs: with what was published, and with other stacks.

pub(crate) mod links;
pub(crate) mod peers;
pub(crate) mod reproduce;
