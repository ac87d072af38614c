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
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use axum::Router;
use hybriq::Census;
use hybriq_http::{ServerBuilder, WorstCaseMemory};
use tokio::sync::Notify;

use support::{Certificate, Http3, Running, ask_over_tcp, get, run_prepared, soon};

struct Counting;

thread_local! {
    /// Counter of the server whose thread this is. Clients have none.
    static COUNTER: Cell<Option<&'static AtomicI64>> = const { Cell::new(None) };
}

fn count(change: i64) {
    let counter = COUNTER.try_with(Cell::get).ok().flatten();
    if let Some(counter) = counter {
        counter.fetch_add(change, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came; the counter changes nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Looks between which nothing changes on a server at rest.
const QUIET: u32 = 400;

/// Longest time in which what clients have sent must reach the worst case.
const TIME: Duration = Duration::from_secs(10);

/// A server whose memory is counted, on a thread of its own.
struct Server {
    running: Running,
    worst: WorstCaseMemory,
    counter: &'static AtomicI64,
    looks: Arc<Looks>,
    before: i64,
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
        let counter: &'static AtomicI64 = Box::leak(Box::default());
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
        // Tables of the server and of its libraries are made for the first client.
        for alpn in ["h2", "http/1.1"] {
            ask_over_tcp(server.address(), alpn, None, get("/"))
                .await
                .unwrap();
        }
        let mut client = Http3::connect(server.address()).await;
        client.ask(get("/")).await.unwrap();
        client.connection.close(0x100, b"");
        drop(client);
        server.rest(&fresh).await;
        server.begin().await;
        server
    }

    fn address(&self) -> SocketAddr {
        self.running.address()
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
    async fn quiet(&self) -> i64 {
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
    async fn grows(&self, bytes: i64) {
        let grown = async { while self.quiet().await <= bytes {} };
        soon(grown).await;
    }

    /// Returns the bytes allocated since the beginning, for each of so many.
    async fn held(&self, count: u64) -> u64 {
        let held = self.quiet().await - self.before;
        u64::try_from(held).unwrap() / count
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
