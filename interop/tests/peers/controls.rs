//! Tests that the promises can fail: a faulty implementation is detected.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use hybriq::Group;
use hybriq_interop::{
    Answer, Case, Client, Connection, Failure, Groups, Handshake, Pair, Peer, Problem, Reader,
    Role, Server, Setup, Writer, cases,
    peers::{Quinn, S2nQuic},
};
use tokio::io::{AsyncRead, ReadBuf};

/// Fault of [`Wrong`] as a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Reports X25519MLKEM768, whatever was negotiated.
    HardCodedGroup,
    /// Offers no post-quantum group.
    Classical,
    /// Changes the last byte it reads.
    Corrupts,
}

/// quinn with a fault.
struct Wrong(Fault);

impl Peer for Wrong {
    fn name(&self) -> &'static str {
        "wrong"
    }

    fn supports(&self, role: Role, groups: Groups) -> bool {
        Quinn.supports(role, groups)
    }

    fn serve(&self, setup: &Setup) -> Result<Server, Failure> {
        Quinn.serve(setup)
    }

    fn client(&self, setup: &Setup) -> Result<Box<dyn Client>, Failure> {
        let mut setup = setup.clone();
        if self.0 == Fault::Classical {
            setup.groups = Groups::OnlyClassical;
        }
        Ok(Box::new(WrongClient {
            client: Quinn.client(&setup)?,
            fault: self.0,
        }))
    }
}

struct WrongClient {
    client: Box<dyn Client>,
    fault: Fault,
}

impl Client for WrongClient {
    fn connect(&self, server: SocketAddr) -> Answer<'_, Result<Box<dyn Connection>, Failure>> {
        Box::pin(async move {
            let connection = self.client.connect(server).await?;
            Ok(Box::new(WrongConnection {
                connection,
                fault: self.fault,
            }) as Box<dyn Connection>)
        })
    }
}

struct WrongConnection {
    connection: Box<dyn Connection>,
    fault: Fault,
}

impl Connection for WrongConnection {
    fn handshake(&self) -> Handshake {
        match self.fault {
            Fault::HardCodedGroup => Handshake {
                group: Some(Group::X25519MLKEM768),
                ..Handshake::default()
            },
            Fault::Classical | Fault::Corrupts => self.connection.handshake(),
        }
    }

    fn open(&self) -> Answer<'_, Result<(Writer, Reader), Failure>> {
        Box::pin(async {
            let (writer, reader) = self.connection.open().await?;
            let reader = match self.fault {
                Fault::Corrupts => Box::new(Corrupting(reader)),
                Fault::HardCodedGroup | Fault::Classical => reader,
            };
            Ok((writer, reader))
        })
    }

    fn close(&self) {
        self.connection.close();
    }
}

struct Corrupting(Reader);

impl AsyncRead for Corrupting {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = ready!(Pin::new(&mut self.0).poll_read(context, buffer));
        if let Some(last) = buffer.filled_mut().last_mut() {
            *last ^= 1;
        }
        Poll::Ready(read)
    }
}

async fn is_caught(fault: Fault, case: Case) {
    let pair = Pair {
        client: &Wrong(fault),
        server: &S2nQuic,
    };
    let outcome = case.run(pair).await;
    assert!(
        matches!(outcome, Err(Problem::Unexpected(_))),
        "{outcome:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hard_coded_group_is_caught() {
    is_caught(Fault::HardCodedGroup, cases::CONNECTS_TO_A_CLASSICAL_SERVER).await;
    is_caught(Fault::HardCodedGroup, cases::SERVES_A_CLASSICAL_CLIENT).await;
    is_caught(Fault::HardCodedGroup, cases::RETRIES_FOR_SECP384R1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_default_without_post_quantum_is_caught() {
    is_caught(Fault::Classical, cases::AGREES_ON_X25519MLKEM768).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_byte_is_caught() {
    is_caught(Fault::Corrupts, cases::CARRIES_32_MIB_EACH_WAY).await;
    is_caught(Fault::Corrupts, cases::CARRIES_200_STREAMS).await;
}
