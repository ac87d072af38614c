//! Servers of HTTP/3 that run as separate programs, for tables that compare them with the built-in stacks.
//!
//! The folder that `NETBENCH_SERVERS` names has a program for each, called like the stack: `netbench/servers`
//! makes them. A program is started with an address and a folder, which has `cert.pem`, `key.pem`,
//! and in `www` the responses by their paths, until it listens.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hybriq::Backend;

use super::{Accepting, Answer, Connector, Driver, Listener, Role, Setup, Streams, Traffic};
use crate::scenario::axes::{Cell, Resumption, Stack};
use crate::scenario::pattern;
use crate::system::failure::Failure;

/// Sizes of the responses that a program has.
const SIZES: [u64; 5] = [0, 1, 100, 1000, 1024];

/// Maximum time for a program to start.
const START: Duration = Duration::from_secs(10);

/// A server that is a program of its own.
pub(super) struct Program {
    stack: Stack,
    path: PathBuf,
}

/// Returns a line about how to get a program.
pub(super) fn missing(stack: Stack) -> String {
    format!(
        "{stack} is a program of its own: set NETBENCH_SERVERS to a folder that has it, as netbench/servers/install \
         makes it"
    )
}

impl Program {
    /// Finds the program of a stack.
    pub(super) fn find(stack: Stack) -> Result<Self, Failure> {
        let folder = std::env::var_os("NETBENCH_SERVERS");
        let path = folder.map(|folder| PathBuf::from(folder).join(stack.name()));
        let path = path.filter(|path| path.exists());
        let path = path.ok_or_else(|| missing(stack))?;
        Ok(Self { stack, path })
    }

    /// Returns a program that is there.
    #[cfg(test)]
    pub(super) fn at(stack: Stack, path: PathBuf) -> Self {
        Self { stack, path }
    }
}

impl Driver for Program {
    fn name(&self) -> &'static str {
        self.stack.name()
    }

    fn congestion(&self) -> String {
        "its default".to_owned()
    }

    fn has_http(&self) -> bool {
        true
    }

    fn check(&self, role: Role, cell: &Cell) -> Result<(), Failure> {
        let name = self.stack;
        if role == Role::Client {
            return Err(format!("{name} is a server; use --client hybriq").into());
        }
        if cell.provider != Backend::Rustls || cell.client_auth || cell.hello_retry {
            return Err(format!("{name} has settings of its own; use the defaults").into());
        }
        if cell.resumption != Resumption::Full {
            return Err(
                format!("netbench resumes nothing with {name}; use resumption full").into(),
            );
        }
        Ok(())
    }

    fn listen(&self, setup: &Setup, address: SocketAddr) -> Result<Box<dyn Listener>, Failure> {
        if setup.transport.streams != Streams::Http {
            return Err(format!(
                "{} serves HTTP/3 alone; use a scenario with HTTP",
                self.stack
            )
            .into());
        }
        // A free port, for a moment at least.
        let address = UdpSocket::bind(address)?.local_addr()?;
        let name = format!("netbench-{}-{}", self.stack, std::process::id());
        let mut served = Served {
            address,
            folder: std::env::temp_dir().join(name),
            child: None,
        };
        let www = served.folder.join("www");
        fs::create_dir_all(&www)?;
        for size in SIZES {
            let mut body = Vec::new();
            while (body.len() as u64) < size {
                let at = body.len() as u64;
                body.extend_from_slice(&pattern::bytes_at(at, size - at));
            }
            fs::write(www.join(size.to_string()), body)?;
        }
        let pem = &setup.certificates;
        fs::write(served.folder.join("cert.pem"), &pem.server_chain)?;
        fs::write(served.folder.join("key.pem"), &pem.server_key)?;
        // This process may be killed: the program ends with it.
        let mut command = Command::new("setpriv");
        let command = command.args(["--pdeathsig", "KILL"]).arg(&self.path);
        let command = command.arg(address.to_string()).arg(&served.folder);
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        served.child = Some(child);
        served.wait()?;
        // It has read everything, and this process may be killed.
        let _ = fs::remove_dir_all(&served.folder);
        Ok(Box::new(served))
    }

    fn client(&self, _: &Setup, _: SocketAddr) -> Result<Box<dyn Connector>, Failure> {
        Err(format!("{} is a server", self.stack).into())
    }
}

/// A program that runs. Dropping this ends it.
struct Served {
    address: SocketAddr,
    folder: PathBuf,
    child: Option<Child>,
}

impl Served {
    /// Waits until the program has a socket on its address.
    fn wait(&mut self) -> Result<(), Failure> {
        let port = format!(":{:04X} ", self.address.port());
        let began = Instant::now();
        while began.elapsed() < START {
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                return Err(format!("the server ended: {status}").into());
            }
            let sockets = fs::read_to_string("/proc/net/udp")?;
            if sockets.contains(&port) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Err(format!("the server does not listen on {}", self.address).into())
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended.
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Listener for Served {
    fn address(&self) -> SocketAddr {
        self.address
    }

    fn accept(&mut self) -> Answer<'_, Accepting> {
        Box::pin(std::future::pending())
    }

    fn traffic(&self) -> Option<Traffic> {
        None
    }

    fn process(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }
}
