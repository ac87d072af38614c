//! Streams and datagrams without HTTP.

use std::{ops::Range, time::Duration};

use bytes::Bytes;
use hybriq::{Connection, Endpoint, RecvStream, SendStream, stats::Census};
use tokio::time::timeout;

use crate::{LONG, beside_datagrams, client_config, server_config, support::soon};

/// Time after which a datagram is taken for lost.
const LOST: Duration = Duration::from_millis(200);

/// One connection, both ends.
pub(crate) struct Raw {
    client: Connection,
    server: Connection,
    _endpoints: [Endpoint; 2],
}

impl Raw {
    pub(crate) async fn connect() -> Self {
        let server = Endpoint::server("127.0.0.1:0", server_config().alpn(["raw"])).unwrap();
        let client = Endpoint::client(client_config().alpn(["raw"])).unwrap();
        let connected = client.connect(server.local_address(), "localhost");
        let accepted = async { server.accept().await.unwrap().accept().await };
        let (connected, accepted) = soon(async { tokio::join!(connected, accepted) }).await;
        let raw = Self {
            client: connected.unwrap(),
            server: accepted.unwrap(),
            _endpoints: [client, server],
        };
        tokio::spawn(serve(raw.server.clone()));
        tokio::spawn(echo_datagrams(raw.server.clone()));
        raw
    }

    pub(crate) async fn run(&self, requests: Range<u64>, at_once: usize) {
        // A tenth are datagrams.
        let datagram = |number| self.datagram(number);
        let request = |number| self.request(number);
        beside_datagrams(requests, 10, at_once, datagram, request).await;
        self.drain().await;
    }

    pub(crate) fn check(&self) {
        assert_eq!(self.client.close_reason(), None);
        assert_eq!(self.server.close_reason(), None);
    }

    pub(crate) fn census(&self) -> [Census; 2] {
        [self.client.census(), self.server.census()]
    }

    async fn request(&self, number: u64) {
        match number % 1000 {
            250 => self.client.update_keys(),
            750 => self.server.update_keys(),
            500 => {
                let any = "127.0.0.1:0".parse().unwrap();
                // Another move may be under way.
                let _ = soon(self.client.migrate(any)).await;
            }
            _ => {}
        }
        let (mut send, mut recv) = soon(self.client.open_bidi()).await.unwrap();
        match number % 16 {
            // The answer is not waited for.
            0 => drop(recv),
            1 => {
                send.write_all(b"echo").await.unwrap();
                send.reset(1);
                let _ = soon(recv.read_to_end(LONG)).await;
            }
            2 => {
                send.write_all(b"long").await.unwrap();
                send.finish();
                soon(recv.read(&mut [0; 100])).await.unwrap();
                recv.stop(2);
            }
            // The server sends its answer on a stream of its own.
            3 => {
                send.write_all(b"push").await.unwrap();
                send.finish();
                let mut push = soon(self.client.accept_uni()).await.unwrap().unwrap();
                assert_eq!(soon(push.read_to_end(LONG)).await.unwrap(), b"pushed");
            }
            4 => {
                send.write_all(b"news, no answer").await.unwrap();
                let mut news = soon(self.client.open_uni()).await.unwrap();
                news.write_all(b"news").await.unwrap();
                soon(news.acknowledged()).await.unwrap();
                let _ = send.reset_at(3, 4);
            }
            5 => {
                send.write_all(b"rest").await.unwrap();
                send.finish();
                assert!(soon(recv.read_to_end(LONG)).await.is_err(), "it is reset");
            }
            // Nothing but its end, and a wait that is given up.
            6 => {
                send.finish();
                assert_eq!(soon(recv.read_to_end(LONG)).await.unwrap(), b"");
            }
            7 => {
                // An answer may be there already.
                let _ = timeout(Duration::ZERO, recv.read(&mut [0; 100])).await;
                let _ = timeout(Duration::ZERO, send.acknowledged()).await;
            }
            _ => {
                let body = number.to_be_bytes().repeat(20);
                send.write_all(&body).await.unwrap();
                send.finish();
                assert_eq!(soon(recv.read_to_end(LONG)).await.unwrap(), body);
            }
        }
    }

    async fn datagram(&self, number: u64) {
        let data = Bytes::copy_from_slice(&number.to_be_bytes());
        let answered = async {
            loop {
                self.client.send_datagram(data.clone()).unwrap();
                let echoed = async {
                    while self.client.recv_datagram().await.unwrap() != Some(data.clone()) {}
                };
                if timeout(LOST, echoed).await.is_ok() {
                    return;
                }
            }
        };
        soon(answered).await;
    }

    /// Reads echoes that came after another copy.
    async fn drain(&self) {
        while timeout(Duration::ZERO, self.client.recv_datagram())
            .await
            .is_ok()
        {}
    }
}

async fn serve(connection: Connection) {
    let uni = connection.clone();
    tokio::spawn(async move {
        while let Ok(Some(mut recv)) = uni.accept_uni().await {
            tokio::spawn(async move { drop(recv.read_to_end(LONG).await) });
        }
    });
    while let Ok(Some((send, recv))) = connection.accept_bidi().await {
        let connection = connection.clone();
        // A stream that fails was meant to.
        tokio::spawn(async move { answer(&connection, send, recv).await.ok() });
    }
}

async fn answer(
    connection: &Connection,
    mut send: SendStream,
    mut recv: RecvStream,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let body = recv.read_to_end(LONG).await?;
    match &*body {
        b"long" => send.write_all(&vec![7; LONG]).await?,
        b"push" => {
            let mut push = connection.open_uni().await?;
            push.write_all(b"pushed").await?;
            push.finish();
        }
        // Neither finished nor stopped.
        b"rest" => return Ok(()),
        body => send.write_all(body).await?,
    }
    send.finish();
    Ok(())
}

async fn echo_datagrams(connection: Connection) {
    while let Ok(Some(data)) = connection.recv_datagram().await {
        // The connection may be over.
        let _ = connection.send_datagram(data);
    }
}
