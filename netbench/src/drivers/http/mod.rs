//! HTTP over the stacks: HTTP/3 over those of QUIC, HTTP/2 over TCP.
//!
//! A client asks for the path `/BYTES`. A server reads the body of the request to its end, and answers
//! 200 with a body of that many bytes. Both bodies are the [`pattern`], and are compared with it.

pub(super) mod body;
#[cfg(feature = "quinn")]
pub(super) mod date;
pub(super) mod h2;

use std::rc::Rc;

use ::http::{Method, Request, Response, StatusCode, Uri};
use bytes::Buf;
use tokio::sync::{Mutex, oneshot};

use super::{Answer, Connection, Halves, Negotiated, Reader, Stats, Writer};
use crate::scenario::Fetch;
use crate::scenario::pattern;
use crate::system::outcome::{Failed, Kind};

/// Makes requests on a connection.
pub(super) trait Fetching {
    /// Makes a request, and reads the response to its end.
    fn fetch(&self, fetch: Fetch) -> Answer<'_, ()>;
}

/// A server's end of a connection, which needs no more than to be alive.
pub(super) struct Serving;

impl Fetching for Serving {
    fn fetch(&self, _: Fetch) -> Answer<'_, ()> {
        Box::pin(async { Err(Failed::other("a server makes no requests")) })
    }
}

/// A connection that carries HTTP.
pub(super) struct Http<F> {
    below: Below,
    fetching: F,
}

/// The connection below HTTP.
enum Below {
    Known(Rc<dyn Connection>),
    /// A server has it, and ends the channel at its end.
    Hidden(Mutex<oneshot::Receiver<()>>),
}

impl<F: Fetching + 'static> Http<F> {
    pub(super) fn over(connection: Rc<dyn Connection>, fetching: F) -> Rc<dyn Connection> {
        let below = Below::Known(connection);
        Rc::new(Self { below, fetching })
    }
}

impl Http<Serving> {
    /// Returns a connection that a server has for itself, until the channel ends.
    pub(super) fn hidden(ended: oneshot::Receiver<()>) -> Rc<dyn Connection> {
        Rc::new(Self {
            below: Below::Hidden(Mutex::new(ended)),
            fetching: Serving,
        })
    }
}

fn no_streams<T>() -> Result<T, Failed> {
    Err(Failed::other("this connection carries HTTP"))
}

impl<F: Fetching> Connection for Http<F> {
    fn established(&self) -> Answer<'_, Negotiated> {
        match &self.below {
            Below::Known(connection) => connection.established(),
            Below::Hidden(_) => Box::pin(async { Ok(Negotiated::default()) }),
        }
    }

    fn open_bidi(&self) -> Answer<'_, Halves> {
        Box::pin(async { no_streams() })
    }

    fn open_uni(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async { no_streams() })
    }

    fn accept_bidi(&self) -> Answer<'_, Option<Halves>> {
        Box::pin(async { self.closed().await.map(|()| None) })
    }

    fn accept_uni(&self) -> Answer<'_, Option<Box<dyn Reader>>> {
        Box::pin(async { self.closed().await.map(|()| None) })
    }

    fn send_datagram(&self, _: bytes::Bytes) -> Answer<'_, ()> {
        Box::pin(async { no_streams() })
    }

    fn receive_datagram(&self) -> Answer<'_, Option<bytes::Bytes>> {
        Box::pin(async { self.closed().await.map(|()| None) })
    }

    fn fetch(&self, fetch: Fetch) -> Answer<'_, ()> {
        self.fetching.fetch(fetch)
    }

    fn stats(&self) -> Stats {
        match &self.below {
            Below::Known(connection) => connection.stats(),
            Below::Hidden(_) => Stats::default(),
        }
    }

    fn server_name(&self) -> Option<String> {
        match &self.below {
            Below::Known(connection) => connection.server_name(),
            Below::Hidden(_) => None,
        }
    }

    fn has_ticket(&self) -> bool {
        match &self.below {
            Below::Known(connection) => connection.has_ticket(),
            Below::Hidden(_) => true,
        }
    }

    fn close(&self, code: u64) {
        if let Below::Known(connection) = &self.below {
            connection.close(code);
        }
    }

    fn closed(&self) -> Answer<'_, ()> {
        match &self.below {
            Below::Known(connection) => connection.closed(),
            Below::Hidden(ended) => Box::pin(async {
                // Nothing is ever sent.
                let _ = (&mut *ended.lock().await).await;
                Ok(())
            }),
        }
    }
}

/// Returns a request. Its server is the one that the certificate is for.
pub(super) fn request<B>(fetch: Fetch, body: B) -> Result<Request<B>, Failed> {
    let method = if fetch.send == 0 {
        Method::GET
    } else {
        Method::POST
    };
    let path = format!("/{}", fetch.receive);
    let uri = Uri::builder().scheme("https").authority("localhost");
    let uri = uri.path_and_query(path).build().map_err(Failed::other)?;
    let request = Request::builder().method(method).uri(uri);
    request.body(body).map_err(Failed::other)
}

/// Returns the number of bytes that a request asks for; `None` if it asks for anything else.
pub(super) fn asked(uri: &Uri) -> Option<u64> {
    uri.path().strip_prefix('/')?.parse().ok()
}

/// Returns the answer to a request that asks for something else than bytes.
pub(super) fn not_found<B: Default>() -> Response<B> {
    let mut response = Response::default();
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// Refuses a response that is not the one asked for.
pub(super) fn check<B>(response: &Response<B>) -> Result<(), Failed> {
    match response.status() {
        StatusCode::OK => Ok(()),
        status => Err(Failed::new(
            Kind::Mismatch,
            format_args!("the response has status {status}"),
        )),
    }
}

/// Bytes of a body that have come.
#[derive(Default)]
pub(super) struct Come(u64);

impl Come {
    /// Compares the next bytes of the body.
    pub(super) fn add(&mut self, mut data: impl Buf) -> Result<(), Failed> {
        while data.has_remaining() {
            let chunk = data.chunk();
            pattern::compare(self.0, chunk)?;
            let len = chunk.len();
            self.0 += len as u64;
            data.advance(len);
        }
        Ok(())
    }

    /// Compares the length of the whole body.
    pub(super) fn end(self, expected: u64) -> Result<(), Failed> {
        if self.0 == expected {
            return Ok(());
        }
        Err(Failed::new(
            Kind::Mismatch,
            format_args!("a body of {} bytes, where {expected} were to come", self.0),
        ))
    }
}
