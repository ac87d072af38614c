//! A NAT in front of one client: the client does not learn when its outer address changes.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::UdpSocket;
use tokio::sync::watch;

/// A NAT, and the address at which its client finds the service.
pub(crate) struct Nat {
    pub(crate) inside: SocketAddr,
    outside: watch::Sender<Arc<UdpSocket>>,
}

impl Nat {
    /// Runs a NAT on the runtime of the caller. Its outer ports are on the given host.
    pub(crate) async fn new(host: &str, service: SocketAddr) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let inside = socket.local_addr().unwrap();
        let first = Arc::new(UdpSocket::bind((host, 0)).await.unwrap());
        let (outside, current) = watch::channel(first);
        tokio::spawn(run(socket, service, current));
        Self { inside, outside }
    }

    /// Returns the outer address.
    pub(crate) fn outside(&self) -> SocketAddr {
        self.outside.borrow().local_addr().unwrap()
    }

    /// Takes another outer address. The old one ends.
    pub(crate) async fn move_to(&self, address: SocketAddr) {
        let socket = UdpSocket::bind(address).await.unwrap();
        self.outside.send_replace(Arc::new(socket));
    }
}

async fn run(socket: UdpSocket, service: SocketAddr, mut current: watch::Receiver<Arc<UdpSocket>>) {
    let (mut out, mut back) = (vec![0; 65_536], vec![0; 65_536]);
    let mut client = None;
    let mut outside = current.borrow_and_update().clone();
    loop {
        tokio::select! {
            Ok((length, from)) = socket.recv_from(&mut out) => {
                client = Some(from);
                let _ = outside.send_to(&out[..length], service).await;
            }
            Ok((length, _)) = outside.recv_from(&mut back) => {
                if let Some(client) = client {
                    let _ = socket.send_to(&back[..length], client).await;
                }
            }
            changed = current.changed() => match changed {
                Ok(()) => outside = current.borrow_and_update().clone(),
                Err(_) => return,
            },
        }
    }
}
