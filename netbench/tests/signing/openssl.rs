//! OpenSSL 3.5 as the judge: it checks what netbench wrote, and netbench what it wrote.
//!
//! `.ci/judges` installs it into a folder, which `HYBRIQ_JUDGES` names here. Without it the tests say
//! so and pass.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Folder;

/// A chroot with OpenSSL, and a folder inside.
struct OpenSsl {
    chroot: PathBuf,
    folder: Folder,
}

impl OpenSsl {
    fn new(name: &str) -> Option<Self> {
        let judges = env::var_os("HYBRIQ_JUDGES").map(PathBuf::from);
        let chroot = judges.map(|folder| folder.join("chroot"));
        let Some(chroot) = chroot.filter(|it| it.join("usr/bin/openssl").exists()) else {
            test_summary::skip("HYBRIQ_JUDGES names no folder with OpenSSL: .ci/judges makes one");
            return None;
        };
        let entered = Command::new("chroot").arg(&chroot).arg("true").status();
        if !entered.is_ok_and(|status| status.success()) {
            test_summary::skip("a chroot needs root");
            return None;
        }
        let inside = format!("tmp/netbench-{}-{name}", std::process::id());
        let folder = Folder::at(&chroot.join(inside));
        Some(Self { chroot, folder })
    }

    /// Runs a shell command in the folder, in the chroot; returns whether it worked, and its output.
    fn shell(&self, command: &str) -> (bool, String) {
        let inside = self.folder.0.strip_prefix(&self.chroot).unwrap();
        let script = format!("cd /{} && {command}", inside.display());
        let output = Command::new("chroot")
            .arg(&self.chroot)
            .args(["sh", "-c", &script])
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text).into_owned();
        (output.status.success(), text)
    }

    fn works(&self, command: &str) -> String {
        let (success, told) = self.shell(command);
        assert!(success, "{command}: {told}");
        told
    }
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(Path::new(&self.folder.0));
    }
}

/// Hierarchies of one kind, and of several.
const HIERARCHIES: [&str; 6] = [
    "--certificate ml-dsa-44",
    "--certificate ml-dsa-65 --intermediates 2",
    "--certificate ml-dsa-87",
    "--root ml-dsa-87 --intermediate ml-dsa-65 --leaf ecdsa-p256",
    "--root ecdsa-p384 --intermediate ml-dsa-44 --leaf ml-dsa-44",
    "--certificate ml-dsa-65 --intermediates 0",
];

#[test]
fn openssl_verifies_every_hierarchy_strictly() {
    let Some(openssl) = OpenSsl::new("hierarchies") else {
        return;
    };
    for (index, options) in HIERARCHIES.iter().enumerate() {
        let pki = format!("pki{index}");
        openssl.folder.works(&format!(
            "certificates {pki} --name localhost,example.test,127.0.0.1 {options}"
        ));
        for (name, purpose) in [
            ("server", "sslserver -verify_hostname example.test"),
            ("server", "sslserver -verify_ip 127.0.0.1"),
            ("client", "sslclient"),
            ("signer", "smimesign"),
        ] {
            openssl.works(&format!(
                "openssl verify -x509_strict -purpose {purpose} -CAfile {pki}/root.pem \
                 -untrusted {pki}/{name}.pem {pki}/{name}.pem"
            ));
            openssl.works(&format!("openssl pkey -in {pki}/{name}-key.pem -noout"));
        }
        let (valid, told) = openssl.shell(&format!(
            "openssl verify -x509_strict -purpose sslserver -CAfile {pki}/root.pem \
             -untrusted {pki}/client.pem {pki}/client.pem"
        ));
        assert!(!valid, "a client's certificate is not a server's: {told}");
    }
}

#[test]
fn openssl_verifies_our_signatures() {
    let Some(openssl) = OpenSsl::new("ours") else {
        return;
    };
    openssl.folder.write("file", "signed\n");
    for kind in ["ml-dsa-44", "ml-dsa-65", "ml-dsa-87"] {
        openssl
            .folder
            .works(&format!("certificates {kind} --certificate {kind}"));
        openssl.folder.works(&format!(
            "sign file --key {kind}/signer-key.pem --certificate {kind}/signer.pem"
        ));
        let verify = format!(
            "openssl cms -verify -binary -inform DER -in file.p7s -content CONTENT \
             -CAfile {kind}/root.pem -out /dev/null"
        );
        openssl.works(&verify.replace("CONTENT", "file"));
        openssl.folder.write("changed", "changed\n");
        assert!(
            !openssl.shell(&verify.replace("CONTENT", "changed")).0,
            "{kind}"
        );
    }
}

/// Keys, certificates and signatures that OpenSSL made.
#[test]
fn signatures_of_openssl_are_verified() {
    let Some(openssl) = OpenSsl::new("theirs") else {
        return;
    };
    openssl.folder.write("file", "signed\n");
    for kind in ["ML-DSA-44", "ML-DSA-65", "ML-DSA-87"] {
        openssl.works(&format!(
            "openssl req -x509 -newkey {kind} -nodes -keyout root.key -subj /CN=root -out root.pem \
             && openssl req -newkey {kind} -nodes -keyout leaf.key -subj /CN=signer -out leaf.csr \
                -addext keyUsage=digitalSignature -addext extendedKeyUsage=emailProtection \
             && openssl x509 -req -in leaf.csr -copy_extensions copy -CA root.pem -CAkey root.key \
                -out leaf.pem"
        ));
        for options in ["", "-keyid", "-nosmimecap"] {
            openssl.works(&format!(
                "openssl cms -sign -binary -in file -md sha512 {options} -signer leaf.pem \
                 -inkey leaf.key -outform DER -out file.p7s"
            ));
            let told = openssl.folder.works("verify file --trust root.pem");
            assert!(told.contains(kind), "{told}");
        }
        openssl
            .folder
            .works("sign file --key leaf.key --certificate leaf.pem --out ours.p7s");
        openssl.works(
            "openssl cms -verify -binary -inform DER -in ours.p7s -content file -CAfile root.pem \
             -out /dev/null",
        );
    }
    let weak = "openssl cms -sign -binary -in file -md sha256 -signer leaf.pem -inkey leaf.key \
                -outform DER -out file.p7s";
    openssl.works(weak);
    assert_eq!(
        openssl.folder.fails("verify file --trust root.pem").0,
        Some(5)
    );
}
