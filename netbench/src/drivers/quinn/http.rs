//! HTTP/3 over quinn by h3-quinn.

use std::rc::Rc;

use bytes::Bytes;
use quinn::Connecting;
use tokio::task::spawn_local;

use super::connection::Opened;
use crate::drivers::http::{Http, Serving, h3, h3_server};
use crate::drivers::{Connection, Handover};
use crate::outcome::Failed;

type Client = h3::Client<h3_quinn::OpenStreams, Bytes>;

/// Accepts a connection, and answers its requests.
pub(super) async fn accept(
    connecting: Connecting,
    handover: Handover,
) -> Result<Rc<dyn Connection>, Failed> {
    let opened = Opened::accept(connecting, handover).await?;
    let transport = h3_quinn::Connection::new(opened.connection.clone());
    // The connection shows why it ended.
    spawn_local(async move { drop(h3_server::serve(transport).await) });
    Ok(Http::over(opened, Serving))
}

/// Starts HTTP/3 on a client's connection.
pub(super) async fn over(opened: Rc<Opened>) -> Result<Rc<dyn Connection>, Failed> {
    let transport = h3_quinn::Connection::new(opened.connection.clone());
    let requests = Client::start(transport).await?;
    Ok(Http::over(opened, requests))
}
