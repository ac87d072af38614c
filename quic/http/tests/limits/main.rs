//! Each limit, over each version of HTTP: the same scenario has the same verdict.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../support/mod.rs"]
mod support;

mod cancels;
mod client;
mod covered;
mod drains;
mod early;
mod field_blocks;
mod fields;
mod late;
mod memory;
mod places;
mod requests;
mod shedding;
mod stalls;
mod tunnels;

use axum::Router;
use hybriq_http::{Limits, Server};
use support::{Certificate, Running, run_with};

fn serve(router: Router, change: impl FnOnce(&mut Limits)) -> Running {
    let mut limits = Limits::default();
    change(&mut limits);
    let config = Certificate::shared().config();
    run_with(Server::builder().limits(limits), config, router)
}
