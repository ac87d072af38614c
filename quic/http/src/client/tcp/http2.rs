//! Requests over HTTP/2.

use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use http::{Response, Version, request::Parts};
use hyper::{client::conn::http2, rt::Executor};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::watch;
use tokio_rustls::client::TlsStream;

use super::{Connection, Facts, Settings, Task, Way, drive, head, interim};
use crate::{
    Body,
    client::{
        error::{Failure, Repeat},
        outgoing::{Sending, Upload},
    },
    usage::{Exchange, Usage},
};

/// Time in which a server must answer a PING.
const PING_TIME: Duration = Duration::from_secs(20);

/// Longest time that an HTTP/2 connection may take to close.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// An HTTP/2 connection. Clones share it.
#[derive(Clone)]
pub(in crate::client) struct Http2 {
    sender: http2::SendRequest<Sending>,
    facts: Arc<Facts>,
    /// Requests that the server takes at once.
    most: Arc<AtomicUsize>,
}

/// Starts HTTP/2 on a connection, and returns it with its task.
pub(super) async fn start(
    settings: &Settings,
    stream: TlsStream<Way>,
    facts: Arc<Facts>,
) -> hyper::Result<(Connection, Task)> {
    let (open, tasks) = watch::channel(());
    let mut builder = http2::Builder::new(Tasks(tasks));
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(settings.keep_alive)
        .keep_alive_timeout(PING_TIME)
        // h2 also counts late frames of cancelled streams, over the life of the connection: a bound would end it
        // after a thousand. `interim::follow` bounds the resets that wait.
        .max_local_error_reset_streams(None)
        .max_header_list_size(settings.header_list.try_into().unwrap_or(u32::MAX));
    let stream = interim::follow(stream);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await?;
    let most = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
    let told = most.clone();
    let mut connection = Box::pin(connection);
    let connection = poll_fn(move |cx| {
        let polled = connection.as_mut().poll(cx);
        told.store(connection.current_max_send_streams(), Ordering::Relaxed);
        polled
    });
    let task = drive(connection, facts.usage.clone(), settings.idle_time);
    let usage = facts.usage.clone();
    let task = async move {
        task.await;
        // hyper has finished with the requests that no longer use it, but may still send a body, or the end.
        usage.over(Duration::ZERO).await;
        let _ = tokio::time::timeout(CLOSE_TIME, open.closed()).await;
    };
    Ok((
        Connection::Http2(Http2 {
            sender,
            facts,
            most,
        }),
        Box::pin(task),
    ))
}

/// Runs the tasks of an HTTP/2 connection, until the sender of this is dropped.
#[derive(Clone)]
struct Tasks(watch::Receiver<()>);

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let mut open = self.0.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = task => {}
                _ = open.changed() => {}
            }
        });
    }
}

impl Http2 {
    /// Begins a request. Returns `None` if the connection takes no more requests.
    pub(in crate::client) fn begin(&self) -> Option<Exchange> {
        self.facts
            .usage
            .begin()
            .filter(|_| !self.sender.is_closed())
    }

    /// Returns true if the server takes another request at once.
    pub(in crate::client) fn has_room(&self) -> bool {
        self.facts.usage.exchanges() < self.most.load(Ordering::Relaxed)
    }

    pub(in crate::client) fn usage(&self) -> &Usage {
        &self.facts.usage
    }

    /// Sends a request and returns the response.
    pub(in crate::client) async fn send(
        mut self,
        mut exchange: Exchange,
        request: &Parts,
        body: Sending,
    ) -> Result<Response<Body>, Failure> {
        let upload = body.upload();
        let head = head(request, Version::HTTP_2, request.uri.clone());
        let sent = self.sender.try_send_request(head.map(|()| body)).await;
        let response = sent.map_err(|error| {
            let failure = self.facts.failure(error);
            if failure.repeat == Repeat::Any {
                // The server takes no more requests.
                self.facts.usage.end();
            }
            failure
        })?;
        let response = self.facts.with_peer(response);
        if let Some(upload) = upload.filter(Upload::is_under_way) {
            // The connection continues to send it when the response is dropped.
            exchange.upload(move || upload.end());
        }
        Ok(response.map(|body| Body::answered(body, exchange)))
    }
}
