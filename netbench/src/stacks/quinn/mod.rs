//! quinn on rustls with aws-lc-rs.

mod config;

use ::quinn as library;
use library::congestion::BbrConfig;

pub use config::{client, close, server};
