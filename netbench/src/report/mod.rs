//! Results of runs, and everything that is made from them: tables, charts, pages, comparisons.

pub(crate) mod charts;
pub(crate) mod compare;
pub(crate) mod document;
pub(crate) mod merge;
pub(crate) mod outputs;
pub(crate) mod page;
pub(crate) mod ratio;
pub(crate) mod results;
