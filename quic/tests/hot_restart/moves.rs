//! Clients whose connections are with earlier processes, and whose address changes.

use crate::{
    Arc, Connection, Endpoint, EndpointBuilder, Folder, Notify, Placement, QuicLb, SocketAddr,
    SystemRandom, UdpSocket, builder, client, echo, serve, soon, succeed,
};

/// Clients of each process: enough for all workers.
const CLIENTS: usize = 6;

/// Bytes that are on the way while a client moves.
const MUCH: usize = 100_000;

/// A NAT with one client, which forgets its port when it is told to.
async fn nat(server: SocketAddr) -> (SocketAddr, Arc<Notify>) {
    async fn port() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").await.unwrap()
    }
    let (inside, mut outside) = (port().await, port().await);
    let (address, forget) = (inside.local_addr().unwrap(), Arc::new(Notify::new()));
    let forgets = forget.clone();
    tokio::spawn(async move {
        let (mut there, mut back) = (vec![0; 65536], vec![0; 65536]);
        let mut client = None;
        loop {
            tokio::select! {
                Ok((len, from)) = inside.recv_from(&mut there) => {
                    client = Some(from);
                    outside.send_to(&there[..len], server).await.unwrap();
                }
                Ok((len, _)) = outside.recv_from(&mut back) => {
                    inside.send_to(&back[..len], client.unwrap()).await.unwrap();
                }
                () = forgets.notified() => outside = port().await,
            }
        }
    });
    (address, forget)
}

/// A client of a process, behind a NAT or not.
struct Mover {
    client: Endpoint,
    connection: Connection,
    nat: Option<Arc<Notify>>,
}

impl Mover {
    async fn new(server: SocketAddr, number: usize) -> Self {
        let client = client();
        let (address, nat) = if number % 2 == 0 {
            let (address, forget) = nat(server).await;
            (address, Some(forget))
        } else {
            (server, None)
        };
        let connection = soon(client.connect(address, "localhost")).await.unwrap();
        Self {
            client,
            connection,
            nat,
        }
    }

    /// Transfers data while the address changes, in each way that there is.
    async fn moves(&self) {
        let much = vec![7; MUCH];
        if let Some(forget) = &self.nat {
            forget.notify_one();
            echo(&self.connection, &much).await;
        } else {
            let moves = async {
                self.client.rebind("127.0.0.1:0").unwrap();
                echo(&self.connection, b"between").await;
                let to = "127.0.0.1:0".parse().unwrap();
                soon(self.connection.migrate(to)).await.unwrap();
            };
            tokio::join!(echo(&self.connection, &much), moves);
        }
        echo(&self.connection, b"arrived").await;
    }
}

/// Clients of three processes move while they transfer data, and no process loses one.
async fn move_them_all(name: &str, builder: impl Fn() -> EndpointBuilder) {
    let folder = Folder::new(name);
    let mut servers = vec![builder().bind("127.0.0.1:0").unwrap()];
    let address = servers[0].local_address();
    let mut serving = vec![serve(&servers[0])];
    let mut movers = Vec::new();
    for round in 0..3 {
        for number in 0..CLIENTS {
            movers.push(Mover::new(address, number).await);
        }
        for mover in &movers {
            mover.moves().await;
        }
        if round < 2 {
            let new = succeed(&servers[round], builder(), &folder.path()).await;
            serving.push(serve(&new));
            servers.push(new);
        }
    }
    for (generation, server) in servers.iter().enumerate() {
        let stats = server.stats();
        assert_eq!(stats.connections, CLIENTS as u64, "{generation}: {stats:?}");
        // Packets that a move overtakes may bear an id that was retired meanwhile; clients take no
        // reset for one of these.
        let rare = 20 * stats.stateless_resets <= stats.datagrams_received;
        assert!(rare, "{generation}: {stats:?}");
        assert_eq!(stats.forwards_received > 0, generation < 2, "{stats:?}");
    }
    for mover in &movers {
        assert_eq!(mover.connection.close_reason(), None);
        mover.connection.close(0, b"");
    }
    for (server, serving) in servers.iter().zip(serving) {
        soon(server.idle()).await;
        server.close(0, b"");
        soon(serving).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_earlier_processes_move_and_lose_nothing() {
    let workers = || builder().workers(3).placement(Placement::Threads);
    move_them_all("moves-one", builder).await;
    move_them_all("moves-steered", workers).await;
    move_them_all("moves-by-address", || workers().without_steering()).await;
    let lb = || QuicLb::encrypted(0, &[7], 9, [3; 16], &mut SystemRandom::new()).unwrap();
    move_them_all("moves-lb", || workers().cid_generator(lb())).await;
}
