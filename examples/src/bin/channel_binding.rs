//! Two ends in one program: the client logs in with a secret that is bound to its connection (RFC 9266,
//! `tls-exporter`). Whoever sits between the two has connections of his own, so that an answer he passes on
//! is worth nothing.

use aws_lc_rs::hmac;
use clap::Parser;
use hybriq::{ClientConfig, Connection, Endpoint, ServerConfig};
use hybriq_examples::Failure;

/// Known to both ends; a real one comes from a store of passwords.
const SECRET: &[u8] = b"correct horse battery staple";

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Server::parse();
    let config = ServerConfig::new(args.identity()?).alpn(["login"]);
    let server = Endpoint::server(args.listen, config)?;
    println!("listening on {}", server.local_address());

    let trusting = hybriq_examples::Client {
        server: server.local_address(),
        name: "localhost".to_owned(),
        ca: args.ca.clone(),
    };
    let config = ClientConfig::new().alpn(["login"]).trust(trusting.trust()?);
    let client = Endpoint::client(config)?;
    let accept = async {
        let incoming = server.accept().await.ok_or("the server is closed")?;
        Ok::<_, Failure>(incoming.accept().await?)
    };
    let (mine, accepted) = tokio::join!(client.connect(trusting.server, "localhost"), accept);
    let (mine, accepted) = (mine?, accepted?);

    let answer = answer(&mine)?;
    println!(
        "the client's answer is right: {}",
        is_right(&accepted, &answer)?
    );

    // Another connection between the same two ends has another binding.
    let accept = async { Ok::<_, Failure>(server.accept().await.ok_or("closed")?.accept().await?) };
    let (other, accepted) = tokio::join!(client.connect(trusting.server, "localhost"), accept);
    let (other, accepted) = (other?, accepted?);
    println!(
        "passed on to another connection: {}",
        is_right(&accepted, &answer)?
    );
    for connection in [mine, other] {
        connection.close(0, b"done");
    }
    client.idle().await;
    Ok(())
}

/// Returns the 32 bytes that only the two ends of this connection have.
fn binding(connection: &Connection) -> Result<[u8; 32], Failure> {
    let mut binding = [0; 32];
    connection.export_keying_material(b"EXPORTER-Channel-Binding", b"", &mut binding)?;
    Ok(binding)
}

/// Proves that the client knows the secret, on this connection alone.
fn answer(connection: &Connection) -> Result<hmac::Tag, Failure> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
    Ok(hmac::sign(&key, &binding(connection)?))
}

fn is_right(connection: &Connection, answer: &hmac::Tag) -> Result<bool, Failure> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
    Ok(hmac::verify(&key, &binding(connection)?, answer.as_ref()).is_ok())
}
