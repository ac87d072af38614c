//! Pages that the client of this crate asks for, over QUIC or TCP.

use std::{net::SocketAddr, ops::Range, sync::Mutex};

use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hybriq::stats::Census;
use hybriq_http::{Body, Client, Http3};

use crate::{IDLE, LONG, client_config, each, silent, support::soon};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http2,
    Http3,
}

pub(crate) struct Pages {
    client: Client,
    server: SocketAddr,
    /// Address of the client, as the server sees it: that of the one connection.
    seen: Mutex<Option<String>>,
}

impl Pages {
    pub(crate) fn new(server: SocketAddr, version: Version) -> Self {
        let http3 = match version {
            Version::Http2 => Http3::Off,
            Version::Http3 => Http3::Only,
        };
        let builder = Client::builder().http3(http3).idle_timeout(IDLE);
        let builder = builder.resolve("localhost", [server]);
        Self {
            client: builder.build(client_config()).unwrap(),
            server,
            seen: Mutex::default(),
        }
    }

    pub(crate) async fn run(&self, requests: Range<u64>, at_once: usize) {
        each(requests, at_once, |number| self.request(number)).await;
    }

    pub(crate) fn check(&self) {
        assert!(self.seen.lock().unwrap().is_some());
    }

    pub(crate) fn census(&self) -> Census {
        self.client.census()
    }

    fn ask(
        &self,
        method: Method,
        path: &str,
        body: impl Into<axum::body::Body>,
    ) -> hybriq_http::ResponseFuture {
        let mut request = Request::new(body.into());
        *request.method_mut() = method;
        let uri = format!("https://localhost:{}{path}", self.server.port());
        *request.uri_mut() = uri.parse().unwrap();
        self.client.request(request)
    }

    async fn answer(
        &self,
        method: Method,
        path: &str,
        body: impl Into<axum::body::Body>,
    ) -> Response<Body> {
        let response = soon(self.ask(method, path, body)).await.unwrap();
        assert!(response.status().is_success());
        if let Some(address) = response.headers().get("x-peer") {
            let address = address.to_str().unwrap();
            let mut seen = self.seen.lock().unwrap();
            let first = seen.get_or_insert_with(|| address.to_owned());
            assert_eq!(address, first, "another connection");
        }
        response
    }

    async fn request(&self, number: u64) {
        match number % 16 {
            // Given up before the answer: at once, and once it is on its way.
            0 => drop(self.ask(Method::GET, "/", "")),
            1 | 11 => {
                let path = if number % 16 == 1 { "/" } else { "/deaf" };
                let mut asked = self.ask(Method::GET, path, "");
                for _ in 0..number / 16 % 8 {
                    tokio::select! {
                        biased;
                        _ = &mut asked => return,
                        () = tokio::task::yield_now() => {}
                    }
                }
            }
            // Not read to its end.
            2 => {
                let mut page = self.answer(Method::GET, "/long", "").await.into_body();
                soon(page.frame()).await.unwrap().unwrap();
            }
            3 => {
                let page = self.answer(Method::GET, "/long", "").await.into_body();
                assert_eq!(soon(page.bytes(LONG)).await.unwrap().len(), LONG);
            }
            4..10 => {
                let body = number.to_be_bytes().repeat(30);
                let page = self.answer(Method::POST, "/", body.clone()).await;
                assert_eq!(soon(page.into_body().bytes(LONG)).await.unwrap(), body);
            }
            10 => drop(self.answer(Method::HEAD, "/", "").await),
            // The rest of the response does not come, or that of the request, which the server does not need.
            12 => {
                let mut page = self.answer(Method::GET, "/silent", "").await.into_body();
                soon(page.frame()).await.unwrap().unwrap();
            }
            13 => {
                let page = self.answer(Method::POST, "/done", silent()).await;
                let all = soon(page.into_body().bytes(LONG)).await.unwrap();
                assert!(all.is_empty());
            }
            _ => {
                let page = self.answer(Method::GET, "/", "").await.into_body();
                soon(page.bytes(LONG)).await.unwrap();
            }
        }
    }
}
