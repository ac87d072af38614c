//! The worst case of memory that a server's configuration promises, reached by hostile clients over loopback. A
//! program of its own, because it counts every byte that the thread of a server allocates.
#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]
#![expect(unsafe_code, reason = "an allocator cannot be wrapped without")]

mod estimates;
mod fields;
mod http1;
mod http2;
mod http3;
#[path = "../support/peer.rs"]
mod peer;
mod raw;
mod sessions;
#[path = "../support/mod.rs"]
mod support;
mod tls;

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::Router;
use hybriq::stats::Census;
use hybriq_http::{ServerBuilder, WorstCaseMemory};
use support::{Certificate, Http3, Running, ask_over_tcp, get, run_prepared, soon};
use tokio::sync::Notify;

struct Counting;

thread_local! {
    /// Counter of the server whose thread this is. Clients have none.
    static COUNTER: Cell<Option<&'static AtomicUsize>> = const { Cell::new(None) };
}

fn counter() -> Option<&'static AtomicUsize> {
    COUNTER.try_with(Cell::get).ok().flatten()
}

// SAFETY: every call goes to the system's allocator as it came; the counter changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if let Some(counter) = counter() {
            counter.fetch_add(layout.size(), Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if let Some(counter) = counter() {
            counter.fetch_sub(layout.size(), Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Looks between which nothing changes on a server at rest.
const QUIET: u32 = 400;

/// Longest time in which what clients have sent must reach the worst case.
const TIME: Duration = Duration::from_secs(30);

/// A server whose memory is counted, on a thread of its own.
struct Server {
    running: Running,
    worst: WorstCaseMemory,
    counter: &'static AtomicUsize,
    looks: Arc<Looks>,
    before: usize,
}

/// Turns that a task takes beside those of a server. They allocate nothing.
#[derive(Default)]
struct Looks {
    asked: Notify,
    answered: Notify,
}

impl Looks {
    async fn answer(self: Arc<Self>) {
        loop {
            self.asked.notified().await;
            self.answered.notify_one();
        }
    }
}

impl Server {
    async fn start(router: Router) -> Self {
        Self::with(hybriq_http::Server::builder(), router).await
    }

    async fn with(builder: ServerBuilder, router: Router) -> Self {
        let config = Certificate::shared().config();
        let worst = builder.worst_case_memory(&config);
        let counter: &'static AtomicUsize = Box::leak(Box::default());
        let prepare = move || COUNTER.set(Some(counter));
        let running = run_prepared(prepare, builder, config, router);
        let looks = Arc::new(Looks::default());
        running.runtime.spawn(looks.clone().answer());
        let mut server = Self {
            running,
            worst,
            counter,
            looks,
            before: 0,
        };
        server.quiet().await;
        let fresh = server.running.handle.census();
        Box::pin(server.warm_up()).await;
        server.rest(&fresh).await;
        server.begin().await;
        server
    }

    fn address(&self) -> SocketAddr {
        self.running.address()
    }

    /// Has the tables made that the server and its libraries make for the first client.
    async fn warm_up(&self) {
        for alpn in ["h2", "http/1.1"] {
            ask_over_tcp(self.address(), alpn, None, get("/"))
                .await
                .unwrap();
        }
        let mut client = Http3::connect(self.address()).await;
        client.ask(get("/")).await.unwrap();
        client.connection.close(0x100, b"");
        drop(client);
    }

    /// Waits until no more is under way than on a fresh server.
    async fn rest(&self, fresh: &Census) {
        let handle = &self.running.handle;
        let rest = async {
            while !handle.census().grown_since(fresh).is_empty() {
                tokio::task::yield_now().await;
            }
            handle.endpoint().idle().await;
        };
        soon(rest).await;
    }

    /// Counts from now on what is allocated.
    async fn begin(&mut self) {
        self.before = self.quiet().await;
    }

    /// Returns the bytes that are allocated once they stay the same.
    async fn quiet(&self) -> usize {
        let settled = async {
            let (mut bytes, mut looks) = (0, 0);
            while looks < QUIET {
                self.looks.asked.notify_one();
                self.looks.answered.notified().await;
                let now = self.counter.load(Ordering::Relaxed);
                if now == bytes {
                    looks += 1;
                } else {
                    (bytes, looks) = (now, 0);
                }
            }
            bytes
        };
        soon(settled).await
    }

    /// Waits until more is allocated than this.
    async fn grows(&self, bytes: usize) {
        let grown = async { while self.quiet().await <= bytes {} };
        soon(grown).await;
    }

    /// Returns the bytes allocated since the beginning, for each of so many.
    async fn held(&self, count: u64) -> u64 {
        let held = self.quiet().await.saturating_sub(self.before);
        held as u64 / count
    }

    /// Asserts that each of so many holds at most the bound, and soon nine tenths of it.
    async fn reaches(&self, what: &str, count: u64, most: u64) {
        let reached = async {
            while 10 * self.held(count).await < 9 * most {
                tokio::task::yield_now().await;
            }
        };
        let _ = tokio::time::timeout(TIME, reached).await;
        let held = self.held(count).await;
        assert!(held <= most, "{what}: {held} of {most} bytes");
        assert!(10 * held >= 9 * most, "{what}: only {held} of {most} bytes");
    }
}
