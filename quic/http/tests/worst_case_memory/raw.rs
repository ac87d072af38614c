//! A client of TLS over TCP that makes its own records, and reads nothing.

use std::{collections::VecDeque, sync::Arc};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};
use tokio_rustls::{
    TlsConnector,
    rustls::{self, ConnectionTrafficSecrets},
};

use crate::{
    Server,
    support::{Certificate, soon},
};

/// Longest content of a record (RFC 8446 §5.1).
pub(crate) const RECORD: usize = 1 << 14;

/// Types of records.
pub(crate) const HANDSHAKE: u8 = 22;
const DATA: u8 = 23;

/// A connection after its handshake.
pub(crate) struct Raw {
    tcp: TcpStream,
    key: LessSafeKey,
    iv: [u8; 12],
    sent: u64,
}

impl Raw {
    pub(crate) async fn connect(server: &Server, alpn: &str) -> Self {
        let provider = rustls::crypto::CryptoProvider {
            cipher_suites: vec![rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_256_GCM_SHA384],
            ..rustls::crypto::aws_lc_rs::default_provider()
        };
        let mut roots = rustls::RootCertStore::empty();
        roots.add(Certificate::shared().der()).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(provider));
        let tls = tls.with_safe_default_protocol_versions().unwrap();
        let mut tls = tls.with_root_certificates(roots).with_no_client_auth();
        tls.alpn_protocols = vec![alpn.into()];
        tls.enable_secret_extraction = true;
        let tcp = TcpStream::connect(server.address()).await.unwrap();
        let name = rustls::pki_types::ServerName::try_from("localhost").unwrap();
        let stream = soon(TlsConnector::from(Arc::new(tls)).connect(name, tcp)).await;
        let (tcp, session) = stream.unwrap().into_inner();
        let (sent, secrets) = session.dangerous_extract_secrets().unwrap().tx;
        let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else {
            panic!("another cipher suite");
        };
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref()).unwrap();
        Self {
            tcp,
            key: LessSafeKey::new(key),
            iv: iv.as_ref().try_into().unwrap(),
            sent,
        }
    }

    /// Sends bytes in one record.
    pub(crate) async fn record(&mut self, kind: u8, content: &[u8]) {
        let mut nonce = self.iv;
        for (byte, sent) in nonce[4..].iter_mut().zip(self.sent.to_be_bytes()) {
            *byte ^= sent;
        }
        self.sent += 1;
        let len = u16::try_from(content.len() + 1 + 16).unwrap().to_be_bytes();
        let head = [DATA, 3, 3, len[0], len[1]];
        let mut sealed = [content, &[kind]].concat();
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key
            .seal_in_place_append_tag(nonce, Aad::from(head), &mut sealed)
            .unwrap();
        let record = [&head[..], &sealed].concat();
        soon(self.tcp.write_all(&record)).await.unwrap();
    }

    /// Sends data of the application.
    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(RECORD) {
            self.record(DATA, part).await;
        }
    }

    /// Sends the beginning of a message of the handshake, as long as it may be but for its end.
    pub(crate) async fn send_part_of_message(&mut self) {
        for part in part_of_message().chunks(RECORD) {
            self.record(HANDSHAKE, part).await;
        }
    }
}

/// Returns the beginning of a message of the handshake.
fn part_of_message() -> Vec<u8> {
    let len = 0xff80_u16;
    let [high, low] = len.to_be_bytes();
    let mut message = vec![1, 0, high, low, 3, 3];
    message.resize(usize::from(len), 0);
    message
}

/// Sends a part of a ClientHello, on a connection of its own.
pub(crate) async fn hello(server: &Server) -> TcpStream {
    let mut tcp = TcpStream::connect(server.address()).await.unwrap();
    let mut records = VecDeque::new();
    for part in part_of_message().chunks(RECORD) {
        let len = u16::try_from(part.len()).unwrap().to_be_bytes();
        records.extend([HANDSHAKE, 3, 1, len[0], len[1]]);
        records.extend(part);
    }
    soon(tcp.write_all(records.make_contiguous()))
        .await
        .unwrap();
    tcp
}
