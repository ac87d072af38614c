use crate::table::Proofs;

const DOCUMENT: &str = include_str!("../../evidence/conformance.md");

#[test]
fn every_tag_names_a_requirement() {
    let unknown = Proofs::read().unknown;
    assert!(
        unknown.is_empty(),
        "not in requirements/:\n{}",
        unknown.join("\n")
    );
}

#[test]
fn every_requirement_is_proved() {
    let missing = Proofs::read().missing();
    assert!(
        missing.is_empty(),
        "{} without a test:\n{}",
        missing.len(),
        missing.join("\n")
    );
}

#[test]
fn the_document_is_what_the_sources_say() {
    assert!(
        Proofs::read().document() == DOCUMENT,
        "evidence/conformance.md is old: cargo run -p hybriq --example conformance_table"
    );
}
