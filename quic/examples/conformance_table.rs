//! Writes `quic/evidence/conformance.md`: the test for each requirement of the RFCs.

#[path = "../tests/conformance/table.rs"]
mod table;

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let proofs = table::Proofs::read();
    for tag in &proofs.unknown {
        eprintln!("no such requirement: {tag}");
    }
    for requirement in proofs.missing() {
        eprintln!("no test: {requirement}");
    }
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("evidence/conformance.md");
    fs::write(document, proofs.document())
}
