//! A server of HTTP/3 on tokio-quiche for netbench.
//!
//!     tokio-quiche ADDRESS FOLDER
//!
//! The folder has cert.pem, key.pem, and in www the responses by their paths.

use std::collections::HashMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use boring::ssl::{SslContextBuilder, SslFiletype, SslMethod};
use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use tokio::net::UdpSocket;
use tokio_quiche::http3::driver::{InboundFrame, IncomingH3Headers, OutboundFrame, ServerH3Event};
use tokio_quiche::http3::settings::Http3Settings;
use tokio_quiche::metrics::DefaultMetrics;
use tokio_quiche::quic::ConnectionHook;
use tokio_quiche::quiche::h3::{Header, NameValue};
use tokio_quiche::settings::{CertificateKind, Hooks, QuicSettings, TlsCertificatePaths};
use tokio_quiche::{ConnectionParams, ServerH3Controller, ServerH3Driver, listen};

/// Responses by their paths.
type Bodies = HashMap<Vec<u8>, Bytes>;

/// BoringSSL with post-quantum groups first.
struct Groups;

impl ConnectionHook for Groups {
    fn create_custom_ssl_context_builder(
        &self,
        settings: TlsCertificatePaths<'_>,
    ) -> Option<SslContextBuilder> {
        let mut tls = SslContextBuilder::new(SslMethod::tls()).ok()?;
        tls.set_certificate_chain_file(settings.cert).ok()?;
        tls.set_private_key_file(settings.private_key, SslFiletype::PEM)
            .ok()?;
        tls.set_curves_list("X25519MLKEM768:X25519:P-256:P-384")
            .ok()?;
        Some(tls)
    }
}

// One core, like the other servers of a measurement.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let [_, address, folder] = <[String; 3]>::try_from(std::env::args().collect::<Vec<_>>())
        .map_err(|_| "usage: tokio-quiche ADDRESS FOLDER")?;
    let bodies = Arc::new(bodies(&Path::new(&folder).join("www"))?);

    let mut settings = QuicSettings::default();
    settings.initial_max_streams_bidi = 1000;
    settings.max_recv_udp_payload_size = 1452;
    settings.max_send_udp_payload_size = 1452;
    // No Retry: the others send none.
    settings.disable_client_ip_validation = true;
    let mut listeners = listen(
        [UdpSocket::bind(address).await?],
        ConnectionParams::new_server(
            settings,
            TlsCertificatePaths {
                cert: &format!("{folder}/cert.pem"),
                private_key: &format!("{folder}/key.pem"),
                kind: CertificateKind::X509,
            },
            Hooks {
                connection_hook: Some(Arc::new(Groups)),
            },
        ),
        DefaultMetrics,
    )?;
    while let Some(connection) = listeners[0].next().await {
        let Ok(connection) = connection else { continue };
        let (driver, controller) = ServerH3Driver::new(Http3Settings::default());
        connection.start(driver);
        tokio::spawn(serve(controller, bodies.clone()));
    }
    Ok(())
}

fn bodies(folder: &Path) -> std::io::Result<Bodies> {
    let mut bodies = Bodies::new();
    for file in std::fs::read_dir(folder)? {
        let file = file?;
        let path = format!("/{}", file.file_name().to_string_lossy());
        bodies.insert(path.into_bytes(), std::fs::read(file.path())?.into());
    }
    Ok(bodies)
}

async fn serve(mut controller: ServerH3Controller, bodies: Arc<Bodies>) {
    while let Some(event) = controller.event_receiver_mut().recv().await {
        if let ServerH3Event::Headers {
            incoming_headers, ..
        } = event
        {
            if incoming_headers.read_fin {
                respond(incoming_headers, &bodies).await;
            } else {
                // The body may take its time: the other requests do not wait for it.
                let bodies = bodies.clone();
                tokio::spawn(async move { respond(incoming_headers, &bodies).await });
            }
        }
    }
}

/// Reads a request to its end and responds; a client that has gone needs no response.
async fn respond(mut request: IncomingH3Headers, bodies: &Bodies) {
    let mut fin = request.read_fin;
    while !fin {
        match request.recv.recv().await {
            Some(InboundFrame::Body(_, last)) => fin = last,
            Some(InboundFrame::Datagram(_)) => {}
            None => return,
        }
    }
    let path = request.headers.iter().find(|it| it.name() == b":path");
    let body = path.and_then(|path| bodies.get(path.value()));
    let status = if body.is_some() { b"200" } else { b"404" };
    let body = body.cloned().unwrap_or_default();
    let head = vec![
        Header::new(b":status", status),
        Header::new(b"content-length", body.len().to_string().as_bytes()),
    ];
    if request
        .send
        .send(OutboundFrame::Headers(head, None))
        .await
        .is_ok()
    {
        let _ = request.send.send(OutboundFrame::Body(body, true)).await;
    }
}
