//! Clients with certificates, until they are revoked.

use std::fs;
use std::path::{Path, PathBuf};

use hybriq::{ClientConfig, Identity, Trust};
use hybriq_http::{Client, Http3};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer,
    KeyIdMethod, KeyPair, KeyUsagePurpose, RevokedCertParams, date_time_ymd,
};

use crate::{Server, certify, folder, serving, soon};

/// The authority of the clients, and its files.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    cert: PathBuf,
    list: PathBuf,
}

impl Authority {
    fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let cert = folder.join("clients.pem");
        fs::write(&cert, params.self_signed(&key).unwrap().pem()).unwrap();
        let list = folder.join("revoked.pem");
        let issuer = Issuer::new(params, key);
        Self { issuer, cert, list }
    }

    fn issue(&self, serial: u64) -> Identity {
        let mut params = CertificateParams::new(["client".to_owned()]).unwrap();
        params.serial_number = Some(serial.into());
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity::from_pem(certificate.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap()
    }

    /// Writes the list of these certificates.
    fn revoke(&self, serials: &[u64]) {
        let revoked = |serial: &u64| RevokedCertParams {
            serial_number: (*serial).into(),
            revocation_time: date_time_ymd(2024, 1, 1),
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2024, 1, 1),
            next_update: date_time_ymd(4000, 1, 1),
            crl_number: 1_u64.into(),
            issuing_distribution_point: None,
            revoked_certs: serials.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).unwrap();
        fs::write(&self.list, list.pem().unwrap()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_revoked_client_is_refused_once_the_list_is_reloaded() {
    let folder = folder("mutual-tls");
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    certify(&cert, &key);
    let authority = Authority::new(&folder);
    authority.revoke(&[1]);
    let mut command = serving(env!("CARGO_BIN_EXE_mutual_tls"), &cert, &key);
    command.arg("--clients").arg(&authority.cert);
    command
        .arg("--revoked")
        .arg(&authority.list)
        .args(["--look", "10"]);
    let server = Server::run(&mut command);
    let (first, second) = (authority.issue(7), authority.issue(8));
    let is_let_in = async |identity: &Identity, http3| {
        let config = ClientConfig::new().trust(Trust::roots_pem_file(&cert).unwrap());
        let client = Client::builder().http3(http3);
        let client = client.resolve("localhost", [server.address]);
        let client = client.build(config.identity(identity.clone())).unwrap();
        let asked = client.get(format!("https://localhost:{}/", server.address.port()));
        match asked.await {
            Ok(response) => response.into_body().bytes(100).await.is_ok(),
            Err(_) => false,
        }
    };
    for http3 in [Http3::Only, Http3::Off] {
        assert!(is_let_in(&first, http3).await && is_let_in(&second, http3).await);
    }
    authority.revoke(&[7]);
    soon(async { while is_let_in(&first, Http3::Only).await {} }).await;
    for http3 in [Http3::Only, Http3::Off] {
        assert!(!is_let_in(&first, http3).await && is_let_in(&second, http3).await);
    }
}
