//! Requests over HTTP/1.1.

use std::{pin::pin, sync::Arc};

use http::{HeaderValue, Response, Uri, Version, header, request::Parts};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::oneshot;
use tokio_rustls::client::TlsStream;

use super::{Connection, Facts, Offer, Settings, Task, Way, drive, head, interim};
use crate::{
    Body,
    client::{
        error::Failure,
        outgoing::{Hearing, Sending},
    },
    usage::{Exchange, Usage},
};

/// An HTTP/1.1 connection, for one request at a time.
pub(in crate::client) struct Http1 {
    sender: http1::SendRequest<Sending>,
    facts: Arc<Facts>,
}

/// Starts HTTP/1.1 on a connection, and returns it with its task.
pub(super) async fn start(
    settings: &Settings,
    stream: TlsStream<Way>,
    facts: Arc<Facts>,
    offer: Offer,
) -> hyper::Result<(Connection, Task)> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size((settings.header_list as usize).max(8 << 10));
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let (usage, idle) = (facts.usage.clone(), settings.idle_time);
    let task: Task = match offer {
        Offer::All => Box::pin(drive(connection, usage, idle)),
        Offer::Switch => Box::pin(drive(connection.with_upgrades(), usage, idle)),
    };
    Ok((Connection::Http1(Http1 { sender, facts }), task))
}

impl Http1 {
    /// Begins a request. Returns `None` if the connection takes no more requests.
    pub(in crate::client) fn begin(&self) -> Option<Exchange> {
        self.facts
            .usage
            .begin()
            .filter(|_| !self.sender.is_closed())
    }

    pub(in crate::client) fn usage(&self) -> &Usage {
        &self.facts.usage
    }

    /// Sends a request and returns the response. Calls `free` with the connection when it can take the next
    /// request.
    pub(in crate::client) async fn send(
        mut self,
        exchange: Exchange,
        request: &Parts,
        body: Sending,
        hearing: Hearing,
        free: impl FnOnce(Self) + Send + 'static,
    ) -> Result<Response<Body>, Failure> {
        let path = request.uri.path_and_query();
        let path = path.map_or(Uri::default(), |path| Uri::from(path.clone()));
        let mut head = head(request, Version::HTTP_11, path);
        let authority = request.uri.authority();
        let host = authority.and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        if let Some(host) = host {
            head.headers_mut().insert(header::HOST, host);
        }
        let mut head = head.map(|()| body);
        let too_many = interim::hear(&mut head, hearing.clone());
        let sent = tokio::select! {
            biased;
            // Without its request, the connection ends.
            () = too_many => return Err(Failure::interim(self.facts.server.to_string())),
            sent = self.sender.try_send_request(head) => sent,
        };
        let response = sent.map_err(|error| self.facts.failure(error))?;
        // The rest of the connection waits for the body, or its end.
        hearing.open();
        let response = self.facts.with_peer(response);
        let (end, ended) = oneshot::channel();
        tokio::spawn(async move {
            let ready = {
                let mut ready = pin!(self.sender.ready());
                tokio::select! {
                    biased;
                    ready = &mut ready => {
                        drop(exchange);
                        ready
                    }
                    // The rest of the request is sent until the connection has been idle for too long.
                    _ = ended => {
                        drop(exchange);
                        ready.await
                    }
                }
            };
            // An error ends the connection.
            if ready.is_ok() {
                free(self);
            }
        });
        Ok(response.map(|body| Body::of_http1(body, end)))
    }
}
