//! An application that cancels, drops and stalls wherever it can wait.

use std::{
    convert::Infallible,
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    Extension, Router,
    body::{Body, Bytes},
    extract::Request,
    http::{StatusCode, Version},
    response::{IntoResponse as _, Response},
    routing::any,
};
use http_body::Frame;
use http_body_util::BodyExt as _;
use hybriq_http::{Upgrade, webtransport::WebTransport};
use hybriq_sim::Rng;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    task::JoinSet,
};

/// Paths of the application, each with a behaviour of its own.
pub(crate) const PATHS: [&str; 12] = [
    "/now", "/echo", "/stall", "/silent", "/once", "/big", "/error", "/half", "/ignore", "/cancel",
    "/panic", "/late",
];

/// Path of requests for other protocols.
pub(crate) const TUNNEL: &str = "/tunnel";

/// Path of sessions of WebTransport.
pub(crate) const SESSION: &str = "/session";

/// What the application keeps: streams of other protocols and sessions, on tasks of their own.
#[derive(Clone)]
pub(crate) struct Kept {
    /// `None` once everything was let go.
    tasks: Arc<Mutex<Option<JoinSet<()>>>>,
    seed: Arc<AtomicU64>,
}

impl Kept {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            tasks: Arc::new(Mutex::new(Some(JoinSet::new()))),
            seed: Arc::new(AtomicU64::new(seed)),
        }
    }

    /// Returns a number below `bound` that depends on the seed alone.
    fn draw(&self, bound: u64) -> u64 {
        let seed = self.seed.fetch_add(1, Ordering::Relaxed);
        Rng::new(seed).below(bound)
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(tasks) = &mut *self.tasks.lock().unwrap() {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(task);
        }
    }

    /// Lets go of everything, and keeps nothing from now on.
    pub(crate) async fn release(&self) {
        let tasks = self.tasks.lock().unwrap().take();
        if let Some(mut tasks) = tasks {
            tasks.shutdown().await;
        }
    }
}

/// Polls a future this many times at most, and drops it in the middle of whatever it waits for.
pub(crate) async fn at_most<F: Future>(polls: u64, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut left = polls;
    poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(None);
        }
        left -= 1;
        let polled = future.as_mut().poll(cx).map(Some);
        if left == 0 && polled.is_pending() {
            cx.waker().wake_by_ref();
        }
        polled
    })
    .await
}

/// A body that gives some data, and then ends or falls silent.
struct Gives {
    frames: usize,
    size: usize,
    then: Then,
}

#[derive(Clone, Copy)]
enum Then {
    End,
    Silence,
    Error,
}

impl http_body::Body for Gives {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if self.frames > 0 {
            self.frames -= 1;
            let data = Bytes::from(vec![7; self.size]);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        match self.then {
            Then::End => Poll::Ready(None),
            // Nobody wakes it: whoever waits must have another reason to go on.
            Then::Silence => Poll::Pending,
            Then::Error => Poll::Ready(Some(Err(std::io::Error::other("of the application")))),
        }
    }
}

fn gives(frames: usize, size: usize, then: Then) -> Response {
    Body::new(Gives { frames, size, then }).into_response()
}

/// Behaves as the path says.
async fn behave(kept: Kept, request: Request) -> Result<Response, Infallible> {
    let path = request.uri().path().to_owned();
    let mut body = request.into_body();
    Ok(match path.as_str() {
        "/echo" => Body::new(body).into_response(),
        "/stall" => pending().await,
        "/silent" => gives(0, 0, Then::Silence),
        "/once" => gives(1, 100, Then::Silence),
        "/big" => gives(16, 16 << 10, Then::End),
        "/error" => gives(1, 100, Then::Error),
        "/half" => {
            let _ = body.frame().await;
            pending().await
        }
        "/ignore" => StatusCode::NO_CONTENT.into_response(),
        "/cancel" => {
            let polls = 1 + kept.draw(4);
            at_most(polls, body.collect()).await;
            "given up".into_response()
        }
        "/panic" => panic!("of the application"),
        "/late" => {
            for _ in 0..kept.draw(8) {
                tokio::task::yield_now().await;
            }
            "late".into_response()
        }
        _ => "now".into_response(),
    })
}

/// Agrees to another protocol, and holds, echoes, floods or drops its stream.
fn tunnel(version: Version, kept: &Kept, upgrade: Upgrade) -> Response {
    let what = kept.draw(5);
    if what == 0 {
        return StatusCode::FORBIDDEN.into_response();
    }
    kept.spawn(async move {
        let Ok(mut stream) = upgrade.upgraded().await else {
            return;
        };
        match what {
            1 => pending().await,
            2 => {
                let mut buffer = [0; 1000];
                while let Ok(read) = stream.read(&mut buffer).await {
                    if read == 0 || stream.write_all(&buffer[..read]).await.is_err() {
                        break;
                    }
                }
            }
            3 => {
                while stream.write_all(&[7; 1000]).await.is_ok() {
                    tokio::task::yield_now().await;
                }
            }
            _ => drop(stream),
        }
    });
    if version == Version::HTTP_11 {
        let fields = [("upgrade", "any"), ("connection", "upgrade")];
        return (StatusCode::SWITCHING_PROTOCOLS, fields).into_response();
    }
    StatusCode::OK.into_response()
}

/// Agrees to a session, and holds, uses, closes or drops it.
fn session(kept: &Kept, request: WebTransport) -> Response {
    let what = kept.draw(5);
    if what == 0 {
        return StatusCode::FORBIDDEN.into_response();
    }
    let kept = kept.clone();
    request
        .accept(async move |session| {
            kept.spawn(async move {
                match what {
                    1 => pending().await,
                    2 => {
                        // Takes what comes, and reads none of it.
                        let (mut bidis, mut unis) = (Vec::new(), Vec::new());
                        loop {
                            tokio::select! {
                                stream = session.accept_bidi() => match stream {
                                    Ok(Some(stream)) => bidis.push(stream),
                                    _ => break,
                                },
                                stream = session.accept_uni() => match stream {
                                    Ok(Some(stream)) => unis.push(stream),
                                    _ => break,
                                },
                                data = session.recv_datagram() => if !matches!(data, Ok(Some(_))) { break },
                            }
                        }
                    }
                    3 => session.close(7, "enough"),
                    _ => drop(session),
                }
            });
        })
        .into_response()
}

/// Returns the application.
pub(crate) fn router(kept: &Kept) -> Router {
    let (tunnels, sessions, others) = (kept.clone(), kept.clone(), kept.clone());
    let on_tunnel = move |version: Version, Extension(upgrade): Extension<Upgrade>| {
        let response = tunnel(version, &tunnels, upgrade);
        async move { response }
    };
    let on_session = move |Extension(request): Extension<WebTransport>| {
        let sessions = sessions.clone();
        async move { session(&sessions, request) }
    };
    let on_other = move |request: Request| behave(others.clone(), request);
    let mut router = Router::new()
        .route(TUNNEL, any(on_tunnel))
        .route(SESSION, any(on_session));
    for path in PATHS {
        router = router.route(path, any(on_other.clone()));
    }
    router
}
