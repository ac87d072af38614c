//! Restarts without losing connections: a new process takes over, and the old one finishes.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, io};

use hybriq::{Endpoint, EndpointBuilder, EndpointError, Workers};
use sd_notify::NotifyState;
use tokio::net::{TcpListener, TcpSocket};
use tokio::process::Command;

/// Variables with which systemd passes sockets, for the first process alone.
const PASSED: [&str; 3] = ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"];

/// Pause after an attempt of a successor that went wrong.
const PAUSE: Duration = Duration::from_secs(1);

/// Options of a server that restarts while clients use it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "A server that restarts without losing connections")]
pub struct Restart {
    /// Path at which this process takes over from an earlier one, and then waits for the next. Its
    /// folder must be writable for the user of the service alone.
    #[arg(long, requires = "fleet_secret", value_name = "PATH")]
    pub restart: Option<PathBuf>,
    /// Seconds that connections may stay with this process once there is a successor.
    #[arg(long, default_value_t = 3600)]
    pub linger: u64,
    /// Number of workers, the same in all processes. Default: the number of sockets of systemd, or
    /// one for each core.
    #[arg(long, overrides_with = "workers")]
    pub workers: Option<usize>,
}

/// Number of the process that this one started, while it runs.
#[derive(Clone, Debug, Default)]
pub struct Successor(Arc<AtomicU32>);

impl Successor {
    fn get(&self) -> Option<u32> {
        let id = self.0.load(Ordering::Relaxed);
        (id != 0).then_some(id)
    }
}

impl Restart {
    /// Takes over from an earlier process if there is one, or binds the address.
    ///
    /// # Errors
    /// The address cannot be used, or the earlier process has other keys, ids or workers.
    pub async fn bind(
        &self,
        builder: EndpointBuilder,
        address: SocketAddr,
    ) -> Result<Endpoint, EndpointError> {
        let builder = builder.workers(self.workers.map_or(Workers::PerCore, Workers::Exactly));
        match &self.restart {
            Some(path) => builder.take_over_or_bind(path, address).await,
            None => builder.bind(address),
        }
    }

    /// Opens a TCP port that the successor opens too, before this process closes it.
    ///
    /// # Errors
    /// The address cannot be used.
    pub fn listen(&self, address: SocketAddr) -> io::Result<TcpListener> {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4(),
            SocketAddr::V6(_) => TcpSocket::new_v6(),
        }?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(self.restart.is_some())?;
        socket.bind(address)?;
        socket.listen(64)
    }

    /// Waits for successors from now on. Once there is one, [`Endpoint::accept`] returns `None`.
    pub fn wait(&self, server: &Endpoint) {
        let Some(path) = self.restart.clone() else {
            return;
        };
        let server = server.clone();
        tokio::spawn(async move {
            loop {
                // Waits again after a success: the first successor may end too early.
                if let Err(error) = server.hand_over(&path).await {
                    println!("no successor: {error}");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        });
    }

    /// Starts the program again with the same options, even if its file was replaced. The new
    /// process takes over when it is ready; if it fails before that, this one continues.
    pub fn start(&self, server: &Endpoint, successor: &Successor) {
        let starting = successor.get();
        if self.restart.is_none() {
            println!("not restarted: give --restart");
        } else if let Some(id) = starting {
            println!("not restarted: process {id} is starting already");
        } else {
            match self.spawn(server.worker_stats().len(), successor) {
                Ok(id) => println!("started process {id}"),
                Err(error) => println!("not restarted: {error}"),
            }
        }
    }

    fn spawn(&self, workers: usize, successor: &Successor) -> io::Result<u32> {
        let mut args = env::args_os();
        // `current_exe` would name the old file of a program that was replaced.
        let program = args.next().ok_or(io::ErrorKind::NotFound)?;
        let mut command = Command::new(program);
        command.args(args);
        if self.workers != Some(workers) {
            command.args(["--workers", &workers.to_string()]);
        }
        for name in PASSED {
            command.env_remove(name);
        }
        let mut child = command.stdin(Stdio::null()).spawn()?;
        let id = child.id().ok_or(io::ErrorKind::NotFound)?;
        let successor = successor.clone();
        successor.0.store(id, Ordering::Relaxed);
        tokio::spawn(async move {
            let ended = child.wait().await;
            successor.0.store(0, Ordering::Relaxed);
            match ended {
                Ok(status) => println!("process {id} ended: {status}"),
                Err(error) => println!("process {id}: {error}"),
            }
        });
        Ok(id)
    }

    /// Returns the time for which connections may stay once there is a successor.
    pub fn linger(&self) -> Duration {
        Duration::from_secs(self.linger)
    }

    /// Tells systemd that the successor is the service from now on.
    ///
    /// # Errors
    /// The socket of systemd cannot be used.
    pub fn on_succeeded(&self, successor: &Successor) -> io::Result<()> {
        println!("succeeded: connections may stay for {} s", self.linger);
        match successor.get() {
            Some(id) => sd_notify::notify(&[NotifyState::MainPid(id)]),
            None => Ok(()),
        }
    }
}
