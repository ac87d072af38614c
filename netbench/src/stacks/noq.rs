//! noq on rustls with aws-lc-rs: the configuration of quinn, of which it is a fork.

#[path = "quinn/config.rs"]
mod config;

use ::noq as library;
use library::congestion::Bbr3Config as BbrConfig;

pub use config::{client, close, server};
