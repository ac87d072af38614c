//! A session of WebTransport.

use std::{net::SocketAddr, ops::Range, time::Duration};

use axum::Extension;
use http::{Request, StatusCode};
use hybriq::{Endpoint, stats::Census};
use hybriq_http::webtransport::{self, RecvStream, SendStream, Session, StreamError, WebTransport};
use tokio::time::timeout;

use crate::{LONG, beside_datagrams, client_config, support::soon};

/// Time after which a datagram is taken for lost.
const LOST: Duration = Duration::from_millis(200);

pub(crate) struct Chat {
    session: Session,
    _endpoint: Endpoint,
}

/// Echoes what comes on a session.
pub(crate) async fn accept(Extension(request): Extension<WebTransport>) -> StatusCode {
    request.accept(async |session: Session| {
        loop {
            tokio::select! {
                stream = session.accept_bidi() => {
                    let Ok(Some((send, recv))) = stream else { return };
                    // A stream that fails was meant to.
                    tokio::spawn(async move { answer(send, recv).await.ok() });
                }
                stream = session.accept_uni() => {
                    let Ok(Some(mut recv)) = stream else { return };
                    tokio::spawn(async move { drop(recv.read_to_end(LONG).await) });
                }
                datagram = session.recv_datagram() => {
                    let Ok(Some(datagram)) = datagram else { return };
                    let _ = session.send_datagram(datagram);
                }
            }
        }
    })
}

async fn answer(mut send: SendStream, mut recv: RecvStream) -> Result<(), StreamError> {
    let body = recv.read_to_end(LONG).await?;
    if body == b"long" {
        send.write_all(&vec![7; LONG]).await?;
    }
    send.write_all(&body).await?;
    send.finish();
    Ok(())
}

impl Chat {
    pub(crate) async fn connect(server: SocketAddr) -> Self {
        let endpoint = Endpoint::client(client_config()).unwrap();
        let request = Request::get(format!("https://localhost:{}/chat", server.port()));
        let session = webtransport::connect(&endpoint, request.body(()).unwrap());
        Self {
            session: soon(session).await.unwrap(),
            _endpoint: endpoint,
        }
    }

    pub(crate) async fn run(&self, requests: Range<u64>, at_once: usize) {
        // Half are datagrams.
        let datagram = |number| self.datagram(number);
        let request = |number| self.request(number);
        beside_datagrams(requests, 2, at_once, datagram, request).await;
        let next = || timeout(Duration::ZERO, self.session.recv_datagram());
        while matches!(next().await, Ok(Ok(Some(_)))) {}
    }

    pub(crate) fn check(&self) {
        assert_eq!(self.session.connection().close_reason(), None);
    }

    pub(crate) fn census(&self) -> Census {
        self.session.connection().census()
    }

    async fn request(&self, number: u64) {
        match number % 1000 {
            250 => self.session.connection().update_keys(),
            500 => {
                let any = "127.0.0.1:0".parse().unwrap();
                // Another move may be under way.
                let _ = soon(self.session.connection().migrate(any)).await;
            }
            _ => {}
        }
        match number % 8 {
            // The answer is not waited for.
            0 => drop(soon(self.session.open_bidi()).await.unwrap()),
            1 => {
                let (mut send, mut recv) = soon(self.session.open_bidi()).await.unwrap();
                send.write_all(b"long").await.unwrap();
                send.finish();
                soon(recv.read(&mut [0; 100])).await.unwrap();
                recv.stop(1);
            }
            2 => {
                let mut send = soon(self.session.open_uni()).await.unwrap();
                send.write_all(b"news").await.unwrap();
                send.reset(2);
            }
            3 => {
                let mut send = soon(self.session.open_uni()).await.unwrap();
                send.write_all(b"news").await.unwrap();
                send.finish();
                assert_eq!(soon(send.stopped()).await, Ok(None));
            }
            4 => self.incomplete(number / 8).await,
            _ => {
                let (mut send, mut recv) = soon(self.session.open_bidi()).await.unwrap();
                let body = number.to_be_bytes().repeat(20);
                send.write_all(&body).await.unwrap();
                send.finish();
                assert_eq!(soon(recv.read_to_end(LONG)).await.unwrap(), body);
            }
        }
    }

    /// Opens a stream that ends before it names a session.
    async fn incomplete(&self, number: u64) {
        let connection = self.session.connection();
        let bytes = match number % 4 {
            0 => &[][..],
            1 => &[0x40],
            2 => &[0x40, 0x54],
            _ => {
                let (mut send, mut recv) = soon(connection.open_bidi()).await.unwrap();
                send.write_all(&[0x40, 0x41]).await.unwrap();
                send.reset(1);
                assert!(soon(recv.read_to_end(LONG)).await.is_err());
                return;
            }
        };
        let mut send = soon(connection.open_uni()).await.unwrap();
        send.write_all(bytes).await.unwrap();
        send.finish();
        soon(send.acknowledged()).await.unwrap();
    }

    async fn datagram(&self, number: u64) {
        if number % 8 == 0 {
            // No payload: the echo is not waited for.
            self.session.send_datagram(Vec::new().into()).unwrap();
        }
        let data = number.to_be_bytes();
        let answered = async {
            loop {
                self.session.send_datagram(data.to_vec().into()).unwrap();
                let echoed = async {
                    while self.session.recv_datagram().await.unwrap().unwrap() != data[..] {}
                };
                if timeout(LOST, echoed).await.is_ok() {
                    return;
                }
            }
        };
        soon(answered).await;
    }
}
