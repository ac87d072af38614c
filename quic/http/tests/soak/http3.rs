//! HTTP/3 by a client of the crate `h3`, whose connection moves and changes its keys.

use std::{net::SocketAddr, ops::Range};

use h3::error::Code;
use hybriq::{ReadError, stats::Census};

use crate::{
    LONG, client_config, each,
    support::{self, ask, get, post, soon},
};

pub(crate) struct Http3(support::Http3);

impl Http3 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(support::Http3::with(address, client_config()).await)
    }

    pub(crate) async fn run(&self, requests: Range<u64>, at_once: usize) {
        each(requests, at_once, |number| self.request(number)).await;
    }

    pub(crate) fn check(&self) {
        assert_eq!(self.0.connection.close_reason(), None);
    }

    pub(crate) fn census(&self) -> Census {
        self.0.connection.census()
    }

    async fn request(&self, number: u64) {
        match number % 1000 {
            250 => self.0.connection.update_keys(),
            500 => {
                let any = "127.0.0.1:0".parse().unwrap();
                // Another move may be under way.
                let _ = soon(self.0.connection.migrate(any)).await;
            }
            _ => {}
        }
        let mut requests = self.0.requests.clone();
        let head = |path: &str| get(path).map(drop);
        match number % 16 {
            // Given up before the answer: without and with the end of the request.
            0 => drop(soon(requests.send_request(head("/"))).await.unwrap()),
            1 => {
                let mut stream = soon(requests.send_request(head("/"))).await.unwrap();
                soon(stream.finish()).await.unwrap();
                stream.stop_sending(Code::H3_REQUEST_CANCELLED);
            }
            2 => {
                let (parts, ()) = post("/", "").map(drop).into_parts();
                let head = http::Request::from_parts(parts, ());
                let mut stream = soon(requests.send_request(head)).await.unwrap();
                // The server may have answered already.
                let _ = soon(stream.send_data(vec![7; 500].into())).await;
                stream.stop_stream(Code::H3_REQUEST_CANCELLED);
            }
            // Not read to its end.
            3 => {
                let mut stream = soon(requests.send_request(head("/long"))).await.unwrap();
                soon(stream.finish()).await.unwrap();
                assert!(
                    soon(stream.recv_response())
                        .await
                        .unwrap()
                        .status()
                        .is_success()
                );
                soon(stream.recv_data()).await.unwrap();
            }
            4 => {
                let page = soon(ask(&mut requests, get("/long"))).await.unwrap();
                assert_eq!(page.body().len(), LONG);
            }
            // The rest of the response does not come, and neither does a response.
            5 => {
                let mut stream = soon(requests.send_request(head("/silent"))).await.unwrap();
                soon(stream.finish()).await.unwrap();
                soon(stream.recv_response()).await.unwrap();
                soon(stream.recv_data()).await.unwrap();
                stream.stop_sending(Code::H3_REQUEST_CANCELLED);
            }
            6 => {
                let mut stream = soon(requests.send_request(head("/deaf"))).await.unwrap();
                soon(stream.finish()).await.unwrap();
                tokio::task::yield_now().await;
                stream.stop_sending(Code::H3_REQUEST_CANCELLED);
            }
            7 => self.incomplete(number / 16).await,
            8..12 => {
                let body = number.to_be_bytes().repeat(30);
                let page = soon(ask(&mut requests, post("/", body.clone())))
                    .await
                    .unwrap();
                assert_eq!(*page.body(), body);
            }
            _ => {
                let page = soon(ask(&mut requests, get("/"))).await.unwrap();
                assert!(page.status().is_success());
            }
        }
    }

    /// Opens a stream that ends before it has the fields of a request.
    async fn incomplete(&self, number: u64) {
        let (mut send, mut recv) = soon(self.0.connection.open_bidi()).await.unwrap();
        // Nothing, an unknown frame, fields that are too long, half a frame.
        let bytes = match number % 4 {
            0 => &[][..],
            1 => &[0x21, 1, 7],
            2 => &[1, 0x80, 1, 0x86, 0xa0],
            _ => &[1],
        };
        send.write_all(bytes).await.unwrap();
        if bytes == [1] {
            send.reset(Code::H3_REQUEST_CANCELLED.value());
        } else {
            send.finish();
        }
        let end = soon(recv.read_to_end(LONG)).await;
        let is_refused = match &end {
            Ok(response) => number % 4 == 2 && response.ends_with(b"\x03431"),
            Err(error) => matches!(error, ReadError::Reset(_)),
        };
        assert!(is_refused, "{bytes:x?}: {end:?}");
    }
}
