//! A fleet behind a load balancer, each on a host of its own: network namespaces joined by cables.
//!
//! ```text
//!  clients ── 203.0.113.0/24 ── router ── 192.0.2.0/24 ─┬─ server 0
//!                                                        └─ server 1
//! ```

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use tokio::net::UdpSocket;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

use crate::authority::Authority;
use crate::quic_lb::Balancer;
use crate::router::{Member, Router};
use crate::server::{PROGRAM, Server, files};

/// Number of servers.
pub(crate) const SERVERS: usize = 2;

/// Address of the service, that of the router.
const SERVICE: &str = "203.0.113.1:4433";

/// Address of the clients' host.
pub(crate) const CLIENTS: &str = "203.0.113.2";

/// Secret of the fleet, as hexadecimal digits.
const SECRET: &str = "3b1f6c0ad8e2974455aa10fe83c7b269d40e915f7a2c6bd1e8f3054972ab6cd0";

/// Key of the load balancer, and the same as hexadecimal digits.
const KEY: [u8; 16] = [0x5a; 16];
const KEY_DIGITS: &str = "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a";

/// Form of connection ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Plain,
    Encrypted,
}

/// The hosts. They go with this, and the cables with them.
struct Hosts {
    names: Vec<String>,
}

fn ip(words: &str) -> Result<(), String> {
    let mut ip = Command::new("ip");
    let output = ip.args(words.split_whitespace()).output();
    let output = output.map_err(|error| format!("ip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(format!("ip {words}: {}", why.trim()))
}

impl Hosts {
    /// Makes the hosts: of clients, of the router, and of each server.
    fn new() -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let process = std::process::id();
        let name = |host| format!("hybriq-{process}-{number}-{host}");
        let mut hosts = Self { names: Vec::new() };
        for host in 0..2 + SERVERS {
            let name = name(host);
            ip(&format!("netns add {name}"))?;
            hosts.names.push(name.clone());
            ip(&format!("-n {name} link set lo up"))?;
        }
        let router = &hosts.names[1];
        ip(&format!("-n {router} link add servers type bridge"))?;
        hosts.plug(0, CLIENTS)?;
        ip(&format!("-n {router} addr add 203.0.113.1/24 dev cable0"))?;
        for server in 0..SERVERS {
            hosts.plug(2 + server, &private(server))?;
            let cable = format!("cable{}", 2 + server);
            ip(&format!("-n {router} link set {cable} master servers"))?;
        }
        ip(&format!("-n {router} addr add 192.0.2.1/24 dev servers"))?;
        ip(&format!("-n {router} link set servers up"))?;
        Ok(hosts)
    }

    /// Puts a cable between a host, which has an address there, and the router.
    fn plug(&self, host: usize, address: &str) -> Result<(), String> {
        let (name, router) = (&self.names[host], &self.names[1]);
        ip(&format!(
            "link add cable netns {name} type veth peer name cable{host} netns {router}"
        ))?;
        ip(&format!("-n {name} addr add {address}/24 dev cable"))?;
        ip(&format!("-n {name} link set cable up"))?;
        ip(&format!("-n {router} link set cable{host} up"))
    }

    /// Moves the calling thread to a host.
    fn enter(&self, host: usize) {
        let file = File::open(PathBuf::from("/run/netns").join(&self.names[host])).unwrap();
        let network = Some(LinkNameSpaceType::Network);
        move_into_link_name_space(file.as_fd(), network).unwrap();
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

pub(crate) fn service() -> SocketAddr {
    SERVICE.parse().unwrap()
}

/// Returns the address of a server behind the router.
fn private(server: usize) -> String {
    format!("192.0.2.{}", 10 + server)
}

fn server_id(server: usize) -> Vec<u8> {
    vec![0, 0, 10 + server as u8]
}

/// A fleet, its load balancer, and the files that its servers read.
pub(crate) struct Fleet {
    hosts: Hosts,
    pub(crate) authority: Authority,
    options: Vec<String>,
    pub(crate) router: Router,
}

impl Fleet {
    /// Starts a server of the fleet.
    pub(crate) fn start(&self, server: usize) -> Server {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.hosts.names[2 + server], PROGRAM]);
        command.args(files(&self.authority)).args(&self.options);
        command.args(["--server-id", &(10 + server).to_string()]);
        command.args(["--listen", &format!("{}:4433", private(server))]);
        command.args(["--health", "127.0.0.1:0"]);
        Server::run(command)
    }
}

/// Runs a test on the clients' host, with a router before the servers. Where hosts cannot be made,
/// prints the reason instead.
pub(crate) fn on_clients_host<F: Future>(
    name: &str,
    ids: Ids,
    options: &[&str],
    test: impl FnOnce(Arc<Fleet>) -> F + Send,
) {
    let hosts = match Hosts::new() {
        Ok(hosts) => hosts,
        Err(why) => {
            test_summary::skip(format!("network namespaces need root and iproute2: {why}"));
            return;
        }
    };
    let file = |part: &str, digits: &str| {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{part}"));
        fs::write(&path, digits).unwrap();
        path.into_os_string().into_string().unwrap()
    };
    let mut all = vec!["--fleet-secret".to_owned(), file("secret", SECRET)];
    if ids == Ids::Encrypted {
        all.extend(["--lb-key".to_owned(), file("lb-key", KEY_DIGITS)]);
    }
    all.extend(options.iter().map(ToString::to_string));
    let members = (0..SERVERS).map(|server| Member {
        id: server_id(server),
        address: format!("{}:4433", private(server)).parse().unwrap(),
        takes_new: true,
    });
    let fleet = Arc::new(Fleet {
        hosts,
        authority: Authority::new(name),
        options: all,
        router: Router::new(members.collect()),
    });
    let balancer = Balancer {
        rotation: 0,
        server_id: 3,
        nonce: 6,
        key: (ids == Ids::Encrypted).then_some(KEY),
    };
    thread::scope(|scope| {
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, is_ready) = std::sync::mpsc::channel();
        let of_router = fleet.clone();
        scope.spawn(move || {
            of_router.hosts.enter(1);
            runtime().block_on(async {
                let public = UdpSocket::bind(SERVICE).await.unwrap();
                ready.send(()).unwrap();
                tokio::select! {
                    () = of_router.router.clone().run(balancer, public) => {}
                    _ = stopped => {}
                }
            });
        });
        is_ready.recv().unwrap();
        scope.spawn(move || {
            let _stop = stop;
            fleet.hosts.enter(0);
            runtime().block_on(test(fleet.clone()));
        });
    });
}

fn runtime() -> Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().unwrap()
}
