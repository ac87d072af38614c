//! One request over HTTP/3.

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use h3::error::{Code, StreamError};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Version, header, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hybriq_h3::{BidiStream, Payload, RecvStream, SendStream};
use tokio::sync::watch;

use super::connection::{Connection, Early, Handshake, established};
use crate::{
    Body, body,
    client::{
        error::{BoxError, ClientError, ErrorCode, Failure, MOST_INTERIM, Repeat},
        outgoing::Sending,
    },
    usage::Exchange,
};

type Stream = h3::client::RequestStream<BidiStream<Payload>, Payload>;
type Upload = h3::client::RequestStream<SendStream<Payload>, Payload>;
type Download = h3::client::RequestStream<RecvStream, Payload>;

/// Fields of a connection, which HTTP/3 has not (RFC 9114 §4.2).
const CONNECTION_FIELDS: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

impl Connection {
    /// Sends a request and returns the response.
    pub(in crate::client) async fn send(
        &self,
        exchange: Exchange,
        request: &Parts,
        body: Sending,
    ) -> Result<Response<Body>, Failure> {
        let early = if self.is_established() {
            Early::No
        } else {
            Early::Yes
        };
        let asked = self.ask(exchange, head(request, &body), body);
        let (mut response, stream, exchange) = match early {
            Early::No => asked.await,
            Early::Yes => tokio::select! {
                biased;
                asked = self.unless_refused(asked) => asked,
                () = self.not_accepted() => return Err(self.refused()),
            },
        }?;
        let established = self.established().await.ok_or_else(|| self.refused())?;
        // Nobody knows the end of a body whose length is no number, so it never ends well.
        let length = body::length(response.headers()).unwrap_or(Some(u64::MAX));
        let has_body =
            request.method != Method::HEAD && !matches!(response.status().as_u16(), 204 | 304);
        let length = length.filter(|_| has_body);
        response.extensions_mut().insert(established.peer(early));
        Ok(response.map(|()| Body::of_response(stream, length, exchange)))
    }

    /// Returns the outcome of an early request. A failure is that of the early data if these were refused.
    async fn unless_refused<T>(
        &self,
        asked: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match asked.await {
            Err(_) if self.established().await.is_none() => Err(self.refused()),
            asked => asked,
        }
    }

    /// Waits until it is clear that early data did not arrive, or not in time.
    async fn not_accepted(&self) {
        let mut handshake = self.handshake.clone();
        let is_slow = |handshake: &Handshake| matches!(handshake, Handshake::Slow);
        let slow = handshake.wait_for(is_slow).await.is_ok();
        if !slow && self.is_established() {
            std::future::pending::<()>().await;
        }
    }

    /// Returns the failure of a request that the server did not process.
    fn refused(&self) -> Failure {
        let server = self.place.to_string();
        Failure::new(ClientError::Refused { server }, Repeat::Any)
    }

    async fn ask(
        &self,
        mut exchange: Exchange,
        head: Request<()>,
        body: Sending,
    ) -> Result<(Response<()>, Download, Exchange), Failure> {
        let stream = self.requests.clone().send_request(head).await;
        let stream: Stream = stream.map_err(|error| self.failure(error, Stage::Fields))?;
        let (mut send, mut recv) = stream.split();
        if body.is_end_stream() {
            // An error is told with the response.
            let _ = send.finish().await;
            let response = self.response(&mut recv).await?;
            return Ok((response, recv, exchange));
        }
        let stream = hybriq::StreamId(recv.id().into_inner());
        let mut upload = Box::pin(upload(self.handshake.clone(), stream, send, body));
        let (response, sent) = self.send_and_wait(upload.as_mut(), &mut recv).await?;
        if let Sent::Part = sent {
            // The rest is sent beside the response.
            let uploading = exchange.uploading();
            let rest = async move {
                let _counted = uploading;
                // An error resets the stream.
                let _ = upload.await;
            };
            let task = tokio::spawn(rest).abort_handle();
            exchange.upload(move || task.abort());
        }
        Ok((response, recv, exchange))
    }

    /// Sends the body of a request until the response comes.
    async fn send_and_wait(
        &self,
        upload: Pin<&mut impl Future<Output = Result<(), BoxError>>>,
        recv: &mut Download,
    ) -> Result<(Response<()>, Sent), Failure> {
        let mut response = pin!(self.response(recv));
        tokio::select! {
            biased;
            // First, so that a short body leaves together with the fields.
            sent = upload => match sent {
                // All of it, or as much as the server wants.
                Ok(()) => Ok((response.await?, Sent::All)),
                Err(error) => {
                    let error = ClientError::Body(error.into());
                    Err(Failure::new(error, Repeat::Never))
                }
            },
            response = &mut response => Ok((response?, Sent::Part)),
        }
    }

    /// Waits for the final response.
    async fn response(&self, recv: &mut Download) -> Result<Response<()>, Failure> {
        for _ in 0..=MOST_INTERIM {
            let response = recv.recv_response().await;
            let response = response.map_err(|error| {
                let refused = self.goaway.refuses(recv.id());
                let failure = self.failure(error, Stage::Response);
                if refused { failure.anyway() } else { failure }
            })?;
            if !response.status().is_informational() {
                return Ok(response);
            }
        }
        Err(Failure::interim(self.place.to_string()))
    }

    /// Returns the failure of a request whose connection or stream ended.
    fn failure(&self, error: StreamError, stage: Stage) -> Failure {
        let server = self.place.to_string();
        let (error, repeat) = match (error, stage) {
            (StreamError::RemoteClosing, _) => {
                self.usage.end();
                (ClientError::Refused { server }, Repeat::Any)
            }
            (StreamError::RemoteTerminate { code }, _) => match code {
                Code::H3_REQUEST_REJECTED => {
                    // The server takes no more here.
                    self.usage.end();
                    (ClientError::Refused { server }, Repeat::Any)
                }
                Code::H3_VERSION_FALLBACK => (ClientError::Refused { server }, Repeat::OverTcp),
                code => (ClientError::Reset(ErrorCode(code)), Repeat::Never),
            },
            (StreamError::HeaderTooBig { max_size, .. }, Stage::Response) => {
                (ClientError::ResponseFields(max_size), Repeat::Never)
            }
            (
                StreamError::HeaderTooBig {
                    actual_size: size,
                    max_size: most,
                },
                Stage::Fields,
            ) => (ClientError::Fields { size, most }, Repeat::Never),
            (error, stage) => {
                let repeat = match (&error, stage) {
                    // The server processes no fields that are not whole.
                    (StreamError::ConnectionError(_), Stage::Fields) => Repeat::Any,
                    (StreamError::ConnectionError(_), Stage::Response) => Repeat::Idempotent,
                    _ => Repeat::Never,
                };
                let cause = Arc::new(error);
                (ClientError::Lost { server, cause }, repeat)
            }
        };
        Failure::new(error, repeat)
    }
}

/// Part of the body of a request that was sent when the response came.
enum Sent {
    All,
    Part,
}

/// Part of an exchange that failed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The sending of the request's fields.
    Fields,
    /// The wait for the response.
    Response,
}

/// Waits until the server needs no more of a request's body, or the connection is over.
async fn unneeded(handshake: &watch::Receiver<Handshake>, stream: hybriq::StreamId) {
    if let Some(established) = established(handshake).await {
        // Either outcome is an end.
        let _ = established.connection.stream_stopped(stream).await;
    }
}

/// Sends the body of a request. A body that is silent is dropped when the server needs no more of it.
///
/// # Errors
/// The body failed. An end that the server caused is no error: the response says more.
async fn upload(
    handshake: watch::Receiver<Handshake>,
    stream: hybriq::StreamId,
    mut send: Upload,
    body: Sending,
) -> Result<(), BoxError> {
    let mut body = pin!(body);
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = unneeded(&handshake, stream) => return Ok(()),
        };
        let Some(frame) = frame else {
            break;
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                send.stop_stream(Code::H3_REQUEST_CANCELLED);
                return Err(error);
            }
        };
        let sent = match frame.into_data() {
            Ok(data) if data.is_empty() => Ok(()),
            Ok(data) => send.send_data(Payload::from(data)).await,
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => send.send_trailers(trailers).await,
                Err(_) => Ok(()),
            },
        };
        if sent.is_err() {
            return Ok(());
        }
    }
    // An end of the connection is told with the response.
    let _ = send.finish().await;
    Ok(())
}

/// Returns the fields of a request for HTTP/3.
fn head(request: &Parts, body: &Sending) -> Request<()> {
    let mut head = Request::new(());
    *head.method_mut() = request.method.clone();
    *head.uri_mut() = request.uri.clone();
    *head.version_mut() = Version::HTTP_3;
    let fields = head.headers_mut();
    fields.clone_from(&request.headers);
    // The authority says it.
    fields.remove(header::HOST);
    for field in CONNECTION_FIELDS {
        fields.remove(field);
    }
    let is_trailers = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"trailers");
    if !fields.get_all(header::TE).iter().all(is_trailers) {
        fields.remove(header::TE);
    }
    set_length(fields, &request.method, body);
    head
}

/// Sets the length of a body that is known.
fn set_length(fields: &mut HeaderMap, method: &Method, body: &Sending) {
    let Some(length) = body.size_hint().exact() else {
        return;
    };
    let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    if (length > 0 || has_body) && !fields.contains_key(header::CONTENT_LENGTH) {
        fields.insert(header::CONTENT_LENGTH, length.into());
    }
}
