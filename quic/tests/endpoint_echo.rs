//! Connections over real loopback sockets.

mod endpoint_support;

use endpoint_support::{Pair, soon};
use hybriq::{Connection, Group};

async fn echo(pair: &Pair, message: &[u8]) -> Vec<u8> {
    let serve = async {
        let (mut send, mut recv) = pair.server.accept_bidi().await.unwrap().unwrap();
        tokio::io::copy(&mut recv, &mut send).await.unwrap();
        send.finish();
    };
    let ask = async {
        let (mut send, mut recv) = pair.client.open_bidi().await.unwrap();
        send.write_all(message).await.unwrap();
        send.finish();
        recv.read_to_end(1 << 24).await.unwrap()
    };
    soon(async { tokio::join!(serve, ask).1 }).await
}

#[tokio::test]
async fn an_echo_comes_back_over_ipv4() {
    let pair = Pair::new("127.0.0.1:0").await;
    assert_eq!(pair.client.handshake().key_exchange.group, Group::X25519MLKEM768);
    assert_eq!(echo(&pair, b"hello").await, b"hello");
}
