//! HTTP/3, for which no crate joins noq to `h3`.

use std::rc::Rc;

use noq::Connecting;

use super::connection::Opened;
use crate::drivers::{Connection, Handover};
use crate::system::outcome::Failed;

pub(super) async fn accept(_: Connecting, _: Handover) -> Result<Rc<dyn Connection>, Failed> {
    Err(missing())
}

pub(super) async fn over(_: Rc<Opened>) -> Result<Rc<dyn Connection>, Failed> {
    Err(missing())
}

fn missing() -> Failed {
    Failed::other("noq has no HTTP/3")
}
