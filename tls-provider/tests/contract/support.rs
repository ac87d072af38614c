//! Certificates, the list of providers under test, and two sessions joined back to back.

use std::sync::Arc;

use bytes::{Buf, BytesMut};
use hybriq_tls::{
    Backend, CertificateDer, ClientHello, ClientOptions, ClientStart, ConfigError, EarlyDataStatus,
    Error, Flight, Group, Identity, KeyExchange, Level, PerLevel, PrivateKeyDer, Provider, Secret,
    ServerOptions, ServerStart, Session, Side, Status, Trust,
};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256,
};

pub(crate) const HOST: &str = "example.test";
pub(crate) const ALPN: [&str; 1] = ["h3"];
pub(crate) const CLIENT_PARAMS: &[u8] = &[0x01, 0x04, 0x80, 0x00, 0xea, 0x60];
pub(crate) const SERVER_PARAMS: &[u8] =
    &[0x04, 0x04, 0x80, 0x10, 0x00, 0x00, 0x08, 0x02, 0x40, 0x64];

/// A TLS library under contract. Put a third-party provider into [`CONTENDERS`] to run the suite
/// over it, alone and crossed with the others.
pub(crate) struct Contender {
    pub(crate) name: &'static str,
    /// The groups it does alone, with a certificate of ECDSA over P-256.
    pub(crate) groups: &'static [Group],
    /// True if it has 0-RTT.
    pub(crate) early_data: bool,
    pub(crate) client: fn(&ClientOptions) -> Result<Arc<dyn Provider>, ConfigError>,
    pub(crate) server: fn(&ServerOptions) -> Result<Arc<dyn Provider>, ConfigError>,
}

pub(crate) const CONTENDERS: &[Contender] = &[
    #[cfg(feature = "rustls")]
    Contender {
        name: "rustls",
        groups: &Group::ALL,
        early_data: true,
        client: |options| Backend::Rustls.client(options),
        server: |options| Backend::Rustls.server(options),
    },
    #[cfg(all(unix, feature = "s2n-tls"))]
    Contender {
        name: "s2n-tls",
        groups: &[Group::SECP384R1],
        early_data: false,
        client: |options| Backend::S2nTls.client(options),
        server: |options| Backend::S2nTls.server(options),
    },
];

impl Contender {
    /// Returns true if it has ML-DSA, which s2n-tls has not over a FIPS module.
    pub(crate) fn has_ml_dsa(&self) -> bool {
        self.name == "rustls" || !cfg!(feature = "fips")
    }
}

/// The contenders with ML-DSA.
pub(crate) fn with_ml_dsa() -> impl Iterator<Item = &'static Contender> {
    CONTENDERS.iter().filter(|it| it.has_ml_dsa())
}

/// Every contender as client with every contender as server.
pub(crate) fn pairings() -> impl Iterator<Item = (&'static Contender, &'static Contender)> {
    CONTENDERS
        .iter()
        .flat_map(|client| CONTENDERS.iter().map(move |server| (client, server)))
}

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    #[cfg(feature = "rustls")]
    key: PrivateKeyDer<'static>,
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) pem: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let mut params = CertificateParams::new(vec![HOST.to_owned()]).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let root = params.self_signed(&key).expect("a root");
        let (certificate, pem) = (root.der().clone(), root.pem());
        Self {
            #[cfg(feature = "rustls")]
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            issuer: Issuer::new(params, key),
            certificate,
            pem,
        }
    }

    /// Its own certificate as that of an end, as `openssl req -x509` makes it.
    #[cfg(feature = "rustls")]
    pub(crate) fn as_identity(&self) -> Identity {
        Identity::from_der(vec![self.certificate.clone()], self.key.clone_key())
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        let (chain, key) = self.issue_der(names);
        Identity::from_der(vec![chain], key)
    }

    pub(crate) fn issue_der(
        &self,
        names: &[&str],
    ) -> (CertificateDer<'static>, PrivateKeyDer<'static>) {
        let (certificate, key) = self.issue_parts(names);
        (
            certificate.der().clone(),
            PrivateKeyDer::Pkcs8(key.serialize_der().into()),
        )
    }

    pub(crate) fn issue_pem(&self, names: &[&str]) -> (String, String) {
        let (certificate, key) = self.issue_parts(names);
        (certificate.pem(), key.serialize_pem())
    }

    fn issue_parts(&self, names: &[&str]) -> (rcgen::Certificate, KeyPair) {
        self.issue_with(names, |_| {})
    }

    /// The same, with other parameters.
    pub(crate) fn issue_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("parameters");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        (params.signed_by(&key, &self.issuer).expect("a leaf"), key)
    }

    /// A revocation list with these serial numbers, good until a day.
    #[cfg(feature = "rustls")]
    pub(crate) fn revoke(
        &self,
        serials: &[u64],
        until: (i32, u8, u8),
    ) -> rcgen::CertificateRevocationList {
        let revoked = |serial: &u64| rcgen::RevokedCertParams {
            serial_number: (*serial).into(),
            revocation_time: rcgen::date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = rcgen::CertificateRevocationListParams {
            this_update: rcgen::date_time_ymd(2024, 1, 1),
            next_update: rcgen::date_time_ymd(until.0, until.1, until.2),
            crl_number: 1_u64.into(),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).expect("a list")
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::roots_der([self.certificate.clone()])
    }
}

/// One DER item.
fn item(tag: u8, content: &[&[u8]]) -> Vec<u8> {
    let content = content.concat();
    let len = u16::try_from(content.len())
        .expect("a short item")
        .to_be_bytes();
    [&[tag, 0x82], &len[..], &content].concat()
}

/// An OCSP response in DER that says this about the certificate with this serial number: `0x80` that it is good. Nobody
/// signed it.
pub(crate) fn ocsp_response(serial: &[u8], status: u8) -> Vec<u8> {
    let sequence = 0x30;
    let id = [
        item(sequence, &[]),
        item(4, &[b"name"]),
        item(4, &[b"key"]),
        item(2, &[serial]),
    ];
    let id = item(sequence, &[&id.concat()]);
    let time = item(0x18, &[b"20260101000000Z"]);
    let answer = item(sequence, &[&id, &[status, 0], &time]);
    let answers = item(sequence, &[&answer]);
    let data = item(sequence, &[&item(0xa2, &[b"responder"]), &time, &answers]);
    let basic = item(sequence, &[&data, &item(sequence, &[]), &item(3, &[])]);
    let kind = item(
        6,
        &[&[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x01, 0x01]],
    );
    let bytes = item(sequence, &[&kind, &item(4, &[&basic])]);
    item(sequence, &[&[0x0a, 1, 0], &item(0xa0, &[&bytes])])
}

/// A provider of each end, both with their own memory.
pub(crate) fn providers(
    (client, server): (&Contender, &Contender),
    options: &(ClientOptions, ServerOptions),
) -> (Arc<dyn Provider>, Arc<dyn Provider>) {
    // Shown where the test fails.
    println!("{} to {}", client.name, server.name);
    let client = (client.client)(&options.0).expect("a client");
    let server = (server.server)(&options.1).expect("a server");
    (client, server)
}

/// Options of both ends that connect as they are.
pub(crate) fn options() -> (ClientOptions, ServerOptions) {
    let authority = Authority::new("root");
    (
        ClientOptions::new().alpn(ALPN).trust(authority.trust()),
        ServerOptions::new(authority.issue(&[HOST])).alpn(ALPN),
    )
}

/// The same with one policy at each end.
pub(crate) fn options_for(
    client: KeyExchange,
    server: KeyExchange,
) -> (ClientOptions, ServerOptions) {
    let (client_options, server_options) = options();
    (
        client_options.key_exchange(client),
        server_options.key_exchange(server),
    )
}

pub(crate) fn exactly(group: Group) -> KeyExchange {
    KeyExchange::Exactly(vec![group])
}

/// Way in which handshake bytes travel between the two ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Slices {
    Whole,
    /// At most this many bytes of each level reach the other end at a time.
    Of(usize),
}

/// One end and everything it has said so far.
pub(crate) struct End {
    pub(crate) session: Box<dyn Session>,
    pub(crate) status: Status,
    pub(crate) secrets: Vec<Secret>,
    pub(crate) exporter: Option<Secret>,
    pub(crate) inbox: PerLevel<BytesMut>,
    pub(crate) outbox: Flight,
    /// Bytes sent at each level.
    pub(crate) sent: PerLevel<usize>,
}

impl End {
    pub(crate) fn new(session: Box<dyn Session>) -> Self {
        Self {
            session,
            status: Status::NeedsPeer,
            secrets: Vec::new(),
            exporter: None,
            inbox: PerLevel::default(),
            outbox: Flight::default(),
            sent: PerLevel::default(),
        }
    }

    pub(crate) fn drive(&mut self) -> Result<Status, Error> {
        let before = LEVELS.map(|level| self.outbox.crypto[level].len());
        let driven = self.session.drive(&mut self.inbox, &mut self.outbox);
        for (level, before) in LEVELS.into_iter().zip(before) {
            self.sent[level] += self.outbox.crypto[level].len() - before;
        }
        self.secrets.extend(self.outbox.secrets.drain(..));
        if let Some(exporter) = self.outbox.exporter.take() {
            assert!(self.exporter.is_none(), "the exporter secret came twice");
            self.exporter = Some(exporter);
        }
        self.status = driven?;
        Ok(self.status)
    }

    /// Moves what this end has to say into the other's inbox; false when there is nothing.
    fn send_to(&mut self, other: &mut Self, slices: Slices) -> bool {
        let mut moved = false;
        for level in LEVELS {
            let from = &mut self.outbox.crypto[level];
            let len = match slices {
                Slices::Whole => from.len(),
                Slices::Of(len) => from.len().min(len),
            };
            if len > 0 {
                other.inbox[level].extend_from_slice(&from[..len]);
                from.advance(len);
                moved = true;
                // Nothing of a later level passes what is still on its way.
                if !from.is_empty() {
                    break;
                }
            }
        }
        moved
    }

    pub(crate) fn secret(&self, level: Level, writer: Side) -> Option<&Secret> {
        let mut found = self
            .secrets
            .iter()
            .filter(|secret| secret.level() == level && secret.writer() == writer);
        let first = found.next();
        assert!(
            found.next().is_none(),
            "two secrets for {level:?} of the {writer:?}"
        );
        first
    }
}

pub(crate) const LEVELS: [Level; 3] = [Level::Initial, Level::Handshake, Level::OneRtt];

/// Both ends of one handshake.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
}

/// Failure of a handshake, and the end that found it.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) side: Side,
    pub(crate) error: Error,
}

impl Failure {
    #[track_caller]
    pub(crate) fn assert(&self, side: Side, alert: u8) {
        assert_eq!(
            (self.side, self.error.alert.0),
            (side, alert),
            "{}",
            self.error
        );
    }
}

pub(crate) fn client_start(name: &str) -> ClientStart<'_> {
    ClientStart {
        params: CLIENT_PARAMS,
        server_name: name,
        resume: true,
        ..ClientStart::default()
    }
}

/// The ClientHello that a client sends.
pub(crate) fn client_hello(client: &dyn Provider) -> ClientHello {
    let mut client = End::new(
        client
            .session(client_start(HOST).into())
            .expect("a client session"),
    );
    client.drive().expect("a ClientHello");
    let (hello, _) = ClientHello::parse(&client.outbox.crypto.initial)
        .expect("a ClientHello")
        .expect("a whole one");
    hello
}

pub(crate) fn server_start(hello: Option<&ClientHello>) -> ServerStart<'_> {
    ServerStart {
        params: SERVER_PARAMS,
        client_hello: hello,
        ..ServerStart::default()
    }
}

impl Pair {
    pub(crate) fn new(client: &dyn Provider, server: &dyn Provider) -> Self {
        Self::named(client, server, HOST)
    }

    pub(crate) fn named(client: &dyn Provider, server: &dyn Provider, name: &str) -> Self {
        let client = client
            .session(client_start(name).into())
            .expect("a client session");
        let server = server
            .session(server_start(None).into())
            .expect("a server session");
        Self {
            client: End::new(client),
            server: End::new(server),
        }
    }

    /// The providers of both contenders with these options, joined.
    pub(crate) fn of(
        (client, server): (&Contender, &Contender),
        (client_options, server_options): &(ClientOptions, ServerOptions),
    ) -> Self {
        // Shown where the test fails.
        println!("{} to {}", client.name, server.name);
        let client = (client.client)(client_options).expect("a client provider");
        let server = (server.server)(server_options).expect("a server provider");
        Self::new(&*client, &*server)
    }

    /// The client says what it has to say, then the server. False when neither had anything.
    pub(crate) fn turn(&mut self, slices: Slices) -> Result<bool, Failure> {
        let fail = |side| move |error| Failure { side, error };
        self.client.drive().map_err(fail(Side::Client))?;
        let mut moved = self.client.send_to(&mut self.server, slices);
        self.server.drive().map_err(fail(Side::Server))?;
        moved |= self.server.send_to(&mut self.client, slices);
        Ok(moved)
    }

    /// One turn in which one end gets more bytes than the other sent.
    pub(crate) fn turn_with(
        &mut self,
        side: Side,
        level: Level,
        extra: &[u8],
    ) -> Result<(), Failure> {
        let fail = |side| move |error| Failure { side, error };
        if side.is_client() {
            self.client.inbox[level].extend_from_slice(extra);
        }
        self.client.drive().map_err(fail(Side::Client))?;
        self.client.send_to(&mut self.server, Slices::Whole);
        if side.is_server() {
            self.server.inbox[level].extend_from_slice(extra);
        }
        self.server.drive().map_err(fail(Side::Server))?;
        Ok(())
    }

    /// Runs both ends until neither has anything to say.
    pub(crate) fn run(&mut self, slices: Slices) -> Result<(), Failure> {
        while self.turn(slices)? {}
        Ok(())
    }

    #[track_caller]
    pub(crate) fn complete(mut self) -> Self {
        if let Err(failure) = self.run(Slices::Whole) {
            panic!("{:?}: {}", failure.side, failure.error);
        }
        self.assert_agree();
        self
    }

    #[track_caller]
    pub(crate) fn fail(mut self) -> Failure {
        self.run(Slices::Whole)
            .expect_err("the handshake should fail")
    }

    /// Both ends are done and hold the same secrets.
    #[track_caller]
    pub(crate) fn assert_agree(&self) {
        assert_eq!(self.client.status, Status::Complete, "client");
        assert_eq!(self.server.status, Status::Complete, "server");
        for level in [Level::Handshake, Level::OneRtt] {
            for writer in [Side::Client, Side::Server] {
                let client = self
                    .client
                    .secret(level, writer)
                    .expect("the client's secret");
                let server = self
                    .server
                    .secret(level, writer)
                    .expect("the server's secret");
                assert_eq!(
                    client.as_bytes(),
                    server.as_bytes(),
                    "{level:?} of the {writer:?}"
                );
                assert_eq!(client.suite(), server.suite());
            }
        }
        // A client has the secret of 0-RTT data as soon as it offers it, a server once it accepts.
        let offered = self.client.session.early_data() != EarlyDataStatus::None;
        let accepted = self.server.session.early_data() == EarlyDataStatus::Accepted;
        assert_eq!(self.client.secrets.len(), 4 + usize::from(offered));
        assert_eq!(self.server.secrets.len(), 4 + usize::from(accepted));
        let exporters = [&self.client.exporter, &self.server.exporter]
            .map(|secret| secret.as_ref().expect("an exporter secret").as_bytes());
        assert_eq!(exporters[0], exporters[1]);
        assert_eq!(self.client.session.peer_params(), Some(SERVER_PARAMS));
        assert_eq!(self.server.session.peer_params(), Some(CLIENT_PARAMS));
        for end in [&self.client, &self.server] {
            for level in LEVELS {
                assert!(end.inbox[level].is_empty(), "unread bytes at {level:?}");
            }
        }
    }
}
