//! A port in front of a server, where UDP can be cut off.

use std::{
    collections::HashSet,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream, UdpSocket},
};

/// Forwards TCP and UDP of one port to a server.
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    cut: Arc<AtomicBool>,
    /// Connection ids that clients have chosen for the server: those of long headers while UDP is cut off.
    chosen: Arc<Mutex<HashSet<Vec<u8>>>>,
}

/// Sockets for TCP and UDP on one port.
pub(crate) async fn pair() -> (TcpListener, UdpSocket) {
    loop {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        // The port may be taken for UDP.
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()).await {
            return (tcp, udp);
        }
    }
}

impl Front {
    pub(crate) async fn of(server: SocketAddr) -> Self {
        Self::between(server, server).await
    }

    /// Forwards TCP to one server, and UDP to another.
    pub(crate) async fn between(server: SocketAddr, udp_server: SocketAddr) -> Self {
        let (tcp, udp) = pair().await;
        let front = Self {
            address: tcp.local_addr().unwrap(),
            cut: Arc::default(),
            chosen: Arc::default(),
        };
        tokio::spawn(async move {
            while let Ok((mut client, _)) = tcp.accept().await {
                tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await?;
                    copy_bidirectional(&mut client, &mut server).await
                });
            }
        });
        front.forward_udp(udp, udp_server).await;
        front
    }

    /// Loses all datagrams from now on.
    pub(crate) fn cut_udp(&self) {
        self.cut.store(true, Ordering::Release);
    }

    /// Number of connections that were tried while UDP was cut off.
    pub(crate) fn connections(&self) -> usize {
        self.chosen.lock().unwrap().len()
    }

    pub(crate) fn forget_connections(&self) {
        self.chosen.lock().unwrap().clear();
    }

    async fn forward_udp(&self, outside: UdpSocket, server: SocketAddr) {
        let outside = Arc::new(outside);
        let inside = Arc::new(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        inside.connect(server).await.unwrap();
        let client = Arc::new(Mutex::new(None));
        let (cut, chosen) = (self.cut.clone(), self.chosen.clone());
        tokio::spawn({
            let (outside, inside, client) = (outside.clone(), inside.clone(), client.clone());
            async move {
                let mut buffer = vec![0; 65_535];
                loop {
                    let (len, from) = outside.recv_from(&mut buffer).await.unwrap();
                    *client.lock().unwrap() = Some(from);
                    if !cut.load(Ordering::Acquire) {
                        // The server may be gone.
                        let _ = inside.send(&buffer[..len]).await;
                    } else if buffer[0] & 0x80 != 0 {
                        // RFC 8999 §5.1.
                        let cid = buffer[6..].iter().take(buffer[5].into()).copied();
                        chosen.lock().unwrap().insert(cid.collect());
                    }
                }
            }
        });
        let cut = self.cut.clone();
        tokio::spawn(async move {
            let mut buffer = vec![0; 65_535];
            loop {
                let Ok(len) = inside.recv(&mut buffer).await else {
                    continue;
                };
                let to: Option<SocketAddr> = *client.lock().unwrap();
                if let (Some(to), false) = (to, cut.load(Ordering::Acquire)) {
                    outside.send_to(&buffer[..len], to).await.unwrap();
                }
            }
        });
    }
}
