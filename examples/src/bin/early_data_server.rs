//! Answers requests that arrive with a client's first datagrams, before the handshake is complete.

use clap::Parser;
use hybriq::{
    Connection, Endpoint, Incoming, RecvStream, SendStream, ServerConfig, error::Printable,
    stage::Stage,
};
use hybriq_examples::Failure;

#[tokio::main]
async fn main() -> Result<(), Failure> {
    let args = hybriq_examples::Server::parse();
    let config = ServerConfig::new(args.identity()?)
        .alpn(["early"])
        .accept_early_data();
    let server = Endpoint::server(args.listen, config)?;
    println!("listening on {}", server.local_address());

    while let Some(incoming) = server.accept().await {
        tokio::spawn(async {
            if let Err(error) = serve(incoming).await {
                eprintln!("{error:?}");
            }
        });
    }
    Ok(())
}

async fn serve(incoming: Incoming) -> Result<(), Failure> {
    // `accept().await` would wait for the handshake.
    match incoming.accept().early().await {
        Ok(early) => answer_all(early).await,
        // The handshake was faster than this task.
        Err(connecting) => answer_all(connecting.await?).await,
    }
}

async fn answer_all<S: Stage>(connection: Connection<S>) -> Result<(), Failure> {
    while let Some((send, receive)) = connection.accept_bidi().await? {
        answer(send, receive).await?;
    }
    Ok(())
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<(), Failure> {
    let request = receive.read_to_end(1024).await?;
    // An early request may be a replay by an attacker: answer only what may be repeated.
    let answer: &[u8] = if request.starts_with(b"GET") {
        b"here you are"
    } else if receive.is_early() {
        b"not before the handshake is complete"
    } else {
        b"done"
    };
    println!(
        "{} ({})",
        Printable(String::from_utf8_lossy(&request)),
        if receive.is_early() {
            "early"
        } else {
            "in time"
        }
    );
    send.write_all(answer).await?;
    send.finish();
    Ok(())
}
