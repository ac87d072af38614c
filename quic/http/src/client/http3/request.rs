//! One request over HTTP/3.

use std::{
    pin::{Pin, pin},
    sync::Arc,
};

use http::{HeaderMap, Method, Request, Response, Version, header, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hybriq_h3::Code;
use tokio::sync::watch;

use super::connection::{Connection, Early, Handshake, established};
use crate::{
    Body,
    client::{
        error::{BoxError, ClientError, Failure, MOST_INTERIM, Repeat},
        outgoing::{Hearing, Sending},
    },
    usage::Exchange,
    versions::http3::{Recv, Send, StreamError},
};

type Download = Recv<Response<()>>;

impl Connection {
    /// Sends a request and returns the response.
    pub(in crate::client) async fn send(
        &self,
        exchange: Exchange,
        request: &Parts,
        body: Sending,
        hearing: Hearing,
    ) -> Result<Response<Body>, Failure> {
        let early = if self.is_established() {
            Early::No
        } else {
            Early::Yes
        };
        let asked = self.ask(exchange, head(request, &body), body, &hearing);
        let (mut response, stream, exchange) = match early {
            Early::No => asked.await,
            Early::Yes => tokio::select! {
                biased;
                asked = self.unless_refused(asked) => asked,
                () = self.not_accepted() => return Err(self.refused()),
            },
        }?;
        let established = self.established().await.ok_or_else(|| self.refused())?;
        response.extensions_mut().insert(established.peer(early));
        Ok(response.map(|()| Body::of_response(stream, exchange)))
    }

    /// Returns the outcome of an early request. If the server refused the early data, that is the failure.
    async fn unless_refused<T>(
        &self,
        asked: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        match asked.await {
            Err(_) if self.established().await.is_none() => Err(self.refused()),
            asked => asked,
        }
    }

    /// Waits until it is clear that early data was refused, or did not arrive in time.
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
        hearing: &Hearing,
    ) -> Result<(Response<()>, Download, Exchange), Failure> {
        if self.link.is_going_away() {
            self.usage.end();
            return Err(self.refused());
        }
        let stream = self.link.request(&head).await;
        let (mut send, mut recv) = stream.map_err(|error| self.failure(error, Stage::Fields))?;
        if body.is_end_stream() {
            // The response reports an error.
            let _ = send.finish().await;
            let response = self.response(&mut recv, hearing).await?;
            return Ok((response, recv, exchange));
        }
        let mut upload = Box::pin(upload(self.handshake.clone(), send, body));
        let sending = self.send_and_wait(upload.as_mut(), &mut recv, hearing);
        let (response, sent) = sending.await?;
        // A body that the server did not ask for is cancelled.
        if matches!(sent, Sent::Part) && !hearing.is_waiting() {
            // The rest is sent while the response arrives.
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
        hearing: &Hearing,
    ) -> Result<(Response<()>, Sent), Failure> {
        let mut response = pin!(self.response(recv, hearing));
        tokio::select! {
            biased;
            // First, so that a short body is sent together with the fields.
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
    async fn response(
        &self,
        recv: &mut Download,
        hearing: &Hearing,
    ) -> Result<Response<()>, Failure> {
        let mut interims = 0;
        while interims <= MOST_INTERIM {
            let stream = recv.id();
            let response = tokio::select! {
                biased;
                response = recv.head() => response,
                () = self.link.refused(stream) => {
                    self.usage.end();
                    return Err(self.refused());
                }
            };
            let response = response.map_err(|error| {
                let refused = self.link.is_refused(stream);
                let failure = self.failure(error, Stage::Response);
                if refused { failure.anyway() } else { failure }
            })?;
            if !response.status().is_informational() {
                return Ok(response);
            }
            interims += 1;
            if interims <= MOST_INTERIM {
                hearing.take(response);
            }
        }
        Err(Failure::interim(self.place.to_string()))
    }

    /// Returns the failure of a request whose connection or stream ended.
    fn failure(&self, error: StreamError, stage: Stage) -> Failure {
        let server = self.place.to_string();
        let (error, repeat) = match (error, stage) {
            (StreamError::Ended(code), _) => match code {
                Code::H3_REQUEST_REJECTED => {
                    // The server takes no more requests on this connection.
                    self.usage.end();
                    (ClientError::Refused { server }, Repeat::Any)
                }
                Code::H3_VERSION_FALLBACK => (ClientError::Refused { server }, Repeat::OverTcp),
                code => (ClientError::Reset(code), Repeat::Never),
            },
            (StreamError::HeadTooLarge(most), _) => {
                (ClientError::ResponseFields(most), Repeat::Never)
            }
            (StreamError::TooLarge(error), _) => {
                let (size, most) = (error.size, error.most);
                (ClientError::Fields { size, most }, Repeat::Never)
            }
            (error, stage) => {
                let repeat = match stage {
                    // The server processes no fields that are not whole.
                    Stage::Fields if error.is_of_connection() => Repeat::Any,
                    Stage::Response if error.is_of_connection() => Repeat::Idempotent,
                    _ => Repeat::Never,
                };
                let cause = Arc::new(error);
                (ClientError::Lost { server, cause }, repeat)
            }
        };
        Failure::new(error, repeat)
    }
}

/// How much of a request's body was sent when the response arrived.
enum Sent {
    All,
    Part,
}

/// The part of an exchange that failed.
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

/// Sends the body of a request. A silent body is dropped once the server needs no more of it.
///
/// # Errors
/// The body failed. If the server ended the stream, that is no error: the response says more.
async fn upload(
    handshake: watch::Receiver<Handshake>,
    mut send: Send,
    body: Sending,
) -> Result<(), BoxError> {
    let stream = send.id();
    let mut body = pin!(body);
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            // The head leaves alone if no content is there.
            flushed = send.flush(), if send.is_holding() => match flushed {
                Ok(()) => continue,
                Err(_) => return Ok(()),
            },
            () = unneeded(&handshake, stream) => return Ok(()),
        };
        let Some(frame) = frame else {
            break;
        };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                send.reset(Code::H3_REQUEST_CANCELLED);
                return Err(error);
            }
        };
        let sent = match frame.into_data() {
            Ok(data) => send.data(data).await,
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => send.trailers(&trailers),
                Err(_) => Ok(()),
            },
        };
        if sent.is_err() {
            return Ok(());
        }
    }
    // The response reports an end of the connection.
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
    set_length(fields, &request.method, body);
    head
}

/// Sets `content-length`, if the length of the body is known.
fn set_length(fields: &mut HeaderMap, method: &Method, body: &Sending) {
    let Some(length) = body.size_hint().exact() else {
        return;
    };
    let has_body = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    if (length > 0 || has_body) && !fields.contains_key(header::CONTENT_LENGTH) {
        fields.insert(header::CONTENT_LENGTH, length.into());
    }
}
