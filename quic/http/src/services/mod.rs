//! Tower services: what a server needs of them, and layers for them.

mod access_log;
mod app;
mod end_log;
mod log_layer;
mod post_quantum;
mod stall_time;

pub use self::{
    access_log::{AccessEntry, AccessLog, Logged, LoggedFuture},
    end_log::{EndEntry, EndLog, EndLogged, EndLoggedBody, EndLoggedFuture, Outcome},
    post_quantum::{PostQuantum, PostQuantumFuture, PostQuantumService, Refusal},
    stall_time::{StallTime, StallTimed, StallTimedFuture},
};
pub(crate) use app::{App, BoxError, Makes, Tower};
