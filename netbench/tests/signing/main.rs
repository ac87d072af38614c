//! `netbench certificates`, `sign` and `verify` from the command line: what they write, and the exit
//! code of everything that is wrong.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod openssl;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SignatureAlgorithm, date_time_ymd,
};

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        Self::at(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    fn at(path: &Path) -> Self {
        let _ = fs::remove_dir_all(path);
        fs::create_dir_all(path).unwrap();
        Self(path.to_owned())
    }

    /// Runs netbench in the folder.
    fn netbench(&self, args: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_netbench"))
            .args(args.split_whitespace())
            .current_dir(&self.0)
            .output()
            .unwrap()
    }

    /// Runs netbench and returns its exit code and what it complains about.
    fn fails(&self, args: &str) -> (Option<i32>, String) {
        let output = self.netbench(args);
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(complaint.trim().lines().count(), 1, "{complaint}");
        (output.status.code(), complaint)
    }

    fn works(&self, args: &str) -> String {
        let output = self.netbench(args);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args}: {complaint}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.0.join(name), content).unwrap();
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.0.join(name)).unwrap()
    }

    /// Makes a hierarchy and signs a report with it.
    fn signed(name: &str) -> Self {
        let folder = Self::new(name);
        folder.write("report.json", r#"{"handshakes": 1}"#);
        folder.works("certificates pki");
        folder.works(SIGN);
        folder
    }
}

const SIGN: &str = "sign report.json --key pki/signer-key.pem --certificate pki/signer.pem";
const VERIFY: &str = "verify report.json --trust pki/root.pem";

#[test]
fn a_signed_file_is_valid_with_every_parameter_set() {
    let folder = Folder::new("signing-kinds");
    folder.write("report.json", "{}");
    for (kind, name) in [
        ("ml-dsa-44", "ML-DSA-44"),
        ("ml-dsa-65", "ML-DSA-65"),
        ("ml-dsa-87", "ML-DSA-87"),
    ] {
        folder.works(&format!("certificates {kind} --certificate {kind}"));
        for form in ["", " --pem"] {
            let told = folder.works(&format!(
                "sign report.json --key {kind}/signer-key.pem --certificate {kind}/signer.pem{form}"
            ));
            assert!(
                told.contains(&format!("signed with {name} by CN=signer")),
                "{told}"
            );
            let told = folder.works(&format!("verify report.json --trust {kind}/root.pem"));
            assert!(
                told.contains("report.json: valid") && told.contains(name),
                "{told}"
            );
        }
    }
    assert!(
        folder
            .read("report.json.p7s")
            .starts_with(b"-----BEGIN CMS-----")
    );
}

#[test]
fn a_changed_file_is_told_by_its_exit_code() {
    let folder = Folder::signed("signing-changed");
    folder.write("report.json", r#"{"handshakes": 2}"#);
    let (code, told) = folder.fails(VERIFY);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("not the one that was signed"), "{told}");
}

/// No byte of the signature file can be changed, and none of its end be missing.
#[test]
fn a_damaged_signature_is_never_valid() {
    let folder = Folder::signed("signing-damaged");
    let whole = folder.read("report.json.p7s");
    let step = whole.len() / 12;
    for at in (0..whole.len()).step_by(step) {
        folder.write("report.json.p7s", &whole[..at]);
        let (code, told) = folder.fails(VERIFY);
        assert_eq!(code, Some(4), "{at}: {told}");
        let mut changed = whole.clone();
        changed[at] ^= 1;
        folder.write("report.json.p7s", &changed);
        let (code, told) = folder.fails(VERIFY);
        assert!((3..=8).contains(&code.unwrap()), "{at}: {told}");
    }
    let mut last = whole.clone();
    *last.last_mut().unwrap() ^= 1;
    folder.write("report.json.p7s", &last);
    let (code, told) = folder.fails(VERIFY);
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("not one of the signer's key"), "{told}");
    folder.write("report.json.p7s", vec![0x30; 1 << 18]);
    assert_eq!(folder.fails(VERIFY).0, Some(2));
    fs::remove_file(folder.0.join("report.json.p7s")).unwrap();
    assert_eq!(folder.fails(VERIFY).0, Some(2));
}

/// A pipe does not tell how long it is; no more of it is read than of a file.
#[test]
fn an_endless_signature_is_not_read_to_its_end() {
    let folder = Folder::signed("signing-endless");
    let mut netbench = Command::new(env!("CARGO_BIN_EXE_netbench"))
        .args(VERIFY.split_whitespace())
        .args(["--signature", "/dev/stdin"])
        .current_dir(&folder.0)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut pipe = netbench.stdin.take().unwrap();
    // It closes its end once it has seen too much.
    let _ = pipe.write_all(&vec![0x30; 1 << 20]);
    drop(pipe);
    let output = netbench.wait_with_output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("reads 131072 bytes at most"), "{told}");
}

#[test]
fn only_the_root_of_the_signer_is_trusted() {
    let folder = Folder::signed("signing-root");
    folder.works("certificates other");
    let (code, told) = folder.fails("verify report.json --trust other/root.pem");
    assert_eq!(code, Some(6), "{told}");
    assert!(
        told.contains("no path from CN=signer to a trusted root"),
        "{told}"
    );
    // The intermediate of the signer is no root unless it is given as one.
    folder.works("verify report.json --trust pki/intermediate.pem");
}

#[test]
fn certificates_for_other_purposes_do_not_sign_files() {
    let folder = Folder::signed("signing-purpose");
    let signed =
        folder.netbench("sign report.json --key pki/server-key.pem --certificate pki/server.pem");
    assert!(signed.status.success());
    let warning = String::from_utf8(signed.stderr).unwrap();
    assert!(warning.contains("will refuse this"), "{warning}");
    assert!(warning.contains("for other purposes"), "{warning}");
    assert!(folder.netbench(SIGN).stderr.is_empty());
    folder.works("sign report.json --key pki/server-key.pem --certificate pki/server.pem");
    let (code, told) = folder.fails(VERIFY);
    assert_eq!(code, Some(8), "{told}");
    assert!(told.contains("for other purposes"), "{told}");
}

#[test]
fn keys_that_cannot_sign_are_told_with_the_remedy() {
    let folder = Folder::signed("signing-keys");
    folder.works("certificates classical --certificate ecdsa-p256");
    let (code, told) = folder.fails(
        "sign report.json --key classical/signer-key.pem --certificate classical/signer.pem",
    );
    assert_eq!(code, Some(1));
    assert!(told.contains("not ML-DSA; make one"), "{told}");
    let (code, told) =
        folder.fails("sign report.json --key pki/root-key.pem --certificate pki/signer.pem");
    assert_eq!(code, Some(1));
    assert!(told.contains("give the two that belong together"), "{told}");
}

/// Makes a root, an intermediate and a signer, each with a key of its own kind; the intermediate
/// is valid for these years.
fn sign_below(
    folder: &Folder,
    kinds: [&'static SignatureAlgorithm; 3],
    years: std::ops::Range<i32>,
) {
    let [root, intermediate, leaf] = kinds.map(|kind| KeyPair::generate_for(kind).unwrap());
    let params = |name: &str| {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params
    };
    let authority = |name: &str| {
        let mut params = params(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let root = CertifiedIssuer::self_signed(authority("root"), root).unwrap();
    folder.write("root.pem", root.pem());
    let mut between = authority("intermediate");
    between.not_before = date_time_ymd(years.start, 1, 1);
    between.not_after = date_time_ymd(years.end, 1, 1);
    let between = CertifiedIssuer::signed_by(between, intermediate, &root).unwrap();
    let mut params = params("signer");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::CodeSigning];
    let chain = params.signed_by(&leaf, &between).unwrap().pem() + &between.pem();
    folder.write("signer.pem", chain);
    folder.write("signer-key.pem", leaf.serialize_pem());
    folder.write("file", "signed");
    folder.works("sign file --key signer-key.pem --certificate signer.pem");
}

#[test]
fn a_certificate_that_is_not_valid_now_is_told_by_its_exit_code() {
    use rcgen::PKCS_ML_DSA_44 as KIND;

    let folder = Folder::new("signing-time");
    sign_below(&folder, [&KIND; 3], 2000..2100);
    folder.works("verify file --trust root.pem");
    for (years, expected) in [
        (2000..2020, "is expired since"),
        (2090..2100, "is not valid before"),
    ] {
        sign_below(&folder, [&KIND; 3], years);
        let (code, told) = folder.fails("verify file --trust root.pem");
        assert_eq!(code, Some(7), "{told}");
        assert!(told.contains(expected), "{told}");
    }
}

/// A quantum computer would forge the weakest signature of the chain.
#[test]
fn a_chain_with_a_classical_signature_is_refused() {
    use rcgen::{PKCS_ECDSA_P256_SHA256 as ECDSA, PKCS_ML_DSA_65 as ML_DSA};

    let folder = Folder::new("signing-algorithm");
    for kinds in [[&ECDSA, &ML_DSA, &ML_DSA], [&ML_DSA, &ECDSA, &ML_DSA]] {
        sign_below(&folder, kinds, 2000..2100);
        let (code, told) = folder.fails("verify file --trust root.pem");
        assert_eq!(code, Some(5), "{told}");
        assert!(told.contains("not signed with ML-DSA"), "{told}");
    }
}

#[test]
fn a_hierarchy_has_its_files_and_replaces_none() {
    let folder = Folder::new("signing-hierarchy");
    let told = folder.works("certificates pki --intermediates 2 --name example.test,192.0.2.1");
    let names = ["root", "intermediate", "server", "client", "signer"];
    for name in names {
        let key = fs::metadata(folder.0.join(format!("pki/{name}-key.pem"))).unwrap();
        assert_eq!(key.permissions().mode() & 0o777, 0o600, "{name}");
        let pem = String::from_utf8(folder.read(&format!("pki/{name}.pem"))).unwrap();
        let certificates = pem.matches("-----BEGIN CERTIFICATE-----").count();
        let expected = match name {
            "root" => 1,
            "intermediate" => 2,
            _ => 3,
        };
        assert_eq!(certificates, expected, "{name}");
        assert!(told.contains(&format!("pki/{name}-key.pem")), "{told}");
    }
    let before = folder.read("pki/client.pem");
    // What is there stays, and nothing is added: not even files that come before it.
    for name in ["root.pem", "root-key.pem", "server-key.pem"] {
        fs::remove_file(folder.0.join("pki").join(name)).unwrap();
    }
    let (code, told) = folder.fails("certificates pki");
    assert_eq!(code, Some(1));
    assert!(told.contains("intermediate.pem exists already"), "{told}");
    for name in ["root.pem", "root-key.pem", "server-key.pem"] {
        assert!(!folder.0.join("pki").join(name).exists(), "{name}");
    }
    assert_eq!(folder.read("pki/client.pem"), before);
    let (code, told) = folder.fails("certificates new --certificate ml-dsa-66");
    assert_eq!(code, Some(2));
    assert!(told.contains("ml-dsa-65"), "{told}");
}

/// Clients could not ask for such a server.
#[test]
fn names_that_no_server_can_have_are_refused() {
    let folder = Folder::new("signing-names");
    for name in ["", "a_b..c", "https://a.test", "*.192.0.2.1", "a.*.test"] {
        let (code, told) = folder.fails(&format!("certificates pki --name={name}"));
        assert_eq!(code, Some(2), "{name}: {told}");
        assert!(told.contains("such as example.test"), "{told}");
    }
    folder.works("certificates pki --name *.example.test,::1,a.test");
}
