//! HTTP/3 by a client of the crate `h3`, whose connection moves and changes its keys.

use std::{net::SocketAddr, ops::Range};

use h3::error::Code;
use hybriq::ReadError;
use hybriq_h3::Payload;

use crate::{
    LONG, each,
    support::{self, ask, get, post, soon},
};

/// A HEADERS frame without fields (RFC 9114 §7.2.2).
const NO_FIELDS: [u8; 4] = [1, 2, 0, 0];

pub(crate) struct Http3(support::Http3);

impl Http3 {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self(support::Http3::connect(address).await)
    }

    pub(crate) async fn run(&self, requests: Range<u64>, at_once: usize) {
        each(requests, at_once, |number| self.request(number)).await;
    }

    pub(crate) fn check(&self) {
        assert_eq!(self.0.connection.close_reason(), None);
    }

    /// Sends a request that fails before it is whole.
    async fn fail(&self, bytes: &[u8]) {
        let (mut send, mut recv) = soon(self.0.connection.open_bidi()).await.unwrap();
        soon(send.write_all(bytes)).await.unwrap();
        send.finish();
        let end = soon(recv.read_to_end(LONG)).await;
        assert!(matches!(end, Err(ReadError::Reset(_))), "{end:?}");
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
                let _ = soon(stream.send_data(Payload::from(vec![7; 500]))).await;
                stream.stop_stream(Code::H3_REQUEST_CANCELLED);
            }
            // Not read to its end, which may never come.
            3 | 10 => {
                let path = if number % 16 == 3 { "/long" } else { "/silent" };
                let mut stream = soon(requests.send_request(head(path))).await.unwrap();
                soon(stream.finish()).await.unwrap();
                let answer = soon(stream.recv_response()).await.unwrap();
                assert!(answer.status().is_success());
                soon(stream.recv_data()).await.unwrap();
            }
            11 => self.fail(&[]).await,
            12 => self.fail(&NO_FIELDS).await,
            4 => {
                let page = soon(ask(&mut requests, get("/long"))).await.unwrap();
                assert_eq!(page.body().len(), LONG);
            }
            5..10 => {
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
}
