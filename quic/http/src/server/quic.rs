//! HTTP/3 over QUIC.

use std::{pin::pin, sync::Arc};

use h3::error::Code;
use hybriq::Incoming;
use hybriq_h3::Payload;

use super::{
    answers::Answers,
    app::App,
    handle::{Phase, Shared},
    request,
    state::{GOAWAY_PAUSE, Quic, Running},
};

/// Requests that the first GOAWAY still allows: all.
const ALL: usize = 1 << 40;

type H3 = h3::server::Connection<hybriq_h3::Connection, Payload>;

/// Accepts connections until the server shuts down.
pub(super) async fn accept<A: App>(shared: &Arc<Shared>, app: &A) {
    while let Some(incoming) = shared.endpoint.accept().await {
        let served = shared.connections.add();
        let (shared, app) = (shared.clone(), app.clone());
        tokio::spawn(async move {
            if let Err(error) = start(shared, incoming, app, served).await {
                tracing::debug!(%error, "a connection over QUIC failed");
            }
        });
    }
}

/// Does the handshake, and serves the connection beside its worker.
async fn start<A: App>(
    shared: Arc<Shared>,
    incoming: Incoming,
    app: A,
    served: impl Send + 'static,
) -> Result<(), hybriq::ConnectError> {
    let connecting = incoming.accept();
    let connecting = if shared.settings().early {
        match connecting.early().await {
            Ok(early) => {
                let mut transport = hybriq_h3::Connection::early(early.clone());
                let quic = Quic::new(shared, &mut transport);
                quic.begin(early.clone());
                tokio::spawn(serve(quic.clone(), transport, app, served));
                let (connection, _) = early.complete().await?;
                quic.establish(connection);
                return Ok(());
            }
            Err(connecting) => connecting,
        }
    } else {
        connecting
    };
    let connection = connecting.await?;
    let mut transport = hybriq_h3::Connection::new(connection.clone());
    let quic = Quic::new(shared, &mut transport);
    quic.establish(connection.clone());
    connection.spawn(serve(quic, transport, app, served));
    Ok(())
}

/// Serves a connection.
async fn serve<A: App>(
    quic: Arc<Quic>,
    transport: hybriq_h3::Connection,
    app: A,
    served: impl Send,
) {
    let header_list = quic.shared.limits.most_fields();
    let transport = transport.max_frame(header_list);
    let transport = transport.field_section_limit(header_list);
    let mut builder = h3::server::builder();
    let builder = builder.max_field_section_size(header_list);
    match Box::pin(builder.build(transport)).await {
        Ok(mut connection) => {
            if let Err(error) = requests(&quic, &mut connection, app).await {
                if !error.is_h3_no_error() {
                    tracing::debug!(%error, "an HTTP/3 connection failed");
                }
            }
        }
        Err(error) => tracing::debug!(%error, "an HTTP/3 connection did not start"),
    }
    drop(quic);
    drop(served);
}

/// Answers the requests of a connection until it ends.
async fn requests<A: App>(
    quic: &Arc<Quic>,
    connection: &mut H3,
    app: A,
) -> Result<(), h3::error::ConnectionError> {
    let mut left = quic.shared.limits.requests;
    let mut draining = false;
    let mut drains = pin!(quic.shared.phase(Phase::Draining));
    let mut answers = Answers::default();
    loop {
        let request = tokio::select! {
            biased;
            () = &mut drains, if !draining => {
                draining = true;
                connection.shutdown(ALL).await?;
                continue;
            }
            () = quic.drained(), if draining => return finish(quic, connection).await,
            request = connection.accept() => request?,
        };
        let Some(request) = request else {
            return Ok(());
        };
        left = left.saturating_sub(1);
        if left == 0 && !draining {
            draining = true;
            connection.shutdown(ALL).await?;
        }
        let running = Running::new(quic.clone());
        answers.start(request::answer(running, request, app.clone()));
        answers.pause().await;
    }
}

/// Tells the client which requests were answered, and refuses those that come too late.
async fn finish(quic: &Quic, connection: &mut H3) -> Result<(), h3::error::ConnectionError> {
    // The number of the first request that is not answered (RFC 9114 §5.2).
    connection.shutdown(1).await?;
    let refuse = async {
        while let Some(request) = connection.accept().await? {
            let code = Code::H3_REQUEST_REJECTED.value();
            quic.requests.refuse(request, code);
        }
        Ok(())
    };
    let refused = tokio::time::timeout(GOAWAY_PAUSE, refuse).await;
    refused.unwrap_or(Ok(()))
}
