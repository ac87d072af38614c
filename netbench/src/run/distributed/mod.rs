//! Servers on other hosts.
//!
//! ```text
//!  controller's host                       server's host
//!  run ─► session ◄──── TCP, lines ────► agent ─► member ┐
//!   └► client process                             member ┼► group ◄─pipes─► server process
//!           ▲                                     member ┘                      ▲
//!           └─────────────────────────── measured traffic ─────────────────────┘
//! ```
//! An agent (`netbench server`) starts a server process for each repetition and relays the messages
//! of [`crate::engine`] to it. One connection to its control port is one repetition; when that
//! connection ends, so does the server process.
//!
//! ```text
//!  controller               agent                   server process
//!      │◄── Welcome ──────────│
//!      │─── Hello ───────────►│   same versions? token? scenario? room?
//!      │◄── Accepted ─────────│   with a token, from here on every line is sealed
//!      │─── ServerSpec ──────►│─── ServerSpec ──────────►│   once the whole fleet is here
//!      │◄── Started ──────────│◄── Listening ────────────│
//!      │─── Measure ─────────►│─── Measure ─────────────►│   once the whole fleet is ready
//!      │◄── Measuring ────────│◄── Measuring ────────────│
//!      │─── Stop ────────────►│─── Stop ────────────────►│   once the whole fleet is done
//!      │◄── Report ───────────│◄── Report ───────────────│
//! ```
//! Messages of an agent are `{"Ok": …}`, or `{"Err": "one line"}` before it disconnects. Both send
//! an empty line every few seconds as a sign of life. `token` has the proof of the token, and how it seals
//! the lines.

mod agent;
mod args;
mod barrier;
mod control;
mod group;
mod member;
mod server;
mod session;

pub(crate) use args::PeerArgs;
pub(crate) use control::address::Target;
pub(crate) use control::token::Token;
pub(crate) use server::{ServerArgs, serve};
pub(crate) use session::Agents;
