//! `hybriq-interop matrix [PEERS [CASES]]`: tests the implementations against each other on this
//! machine.
//!
//! `PEERS` and `CASES` select names that contain them.

use std::process::ExitCode;

use hybriq_interop::{matrix, peers};

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (peer, case) = match arguments[..] {
        ["matrix"] => ("", ""),
        ["matrix", peer] => (peer, ""),
        ["matrix", peer, case] => (peer, case),
        _ => {
            eprintln!("usage: hybriq-interop matrix [PEERS [CASES]]");
            return ExitCode::FAILURE;
        }
    };
    let mut peers = peers::all();
    peers.retain(|one| one.name().contains(peer));
    let cases = matrix::select(case);
    if peers.is_empty() || cases.is_empty() {
        eprintln!("no implementation or no case is called that; run `hybriq-interop matrix`");
        return ExitCode::FAILURE;
    }
    match matrix::run(&peers, &cases, &mut std::io::stdout()).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot print the table: {error}");
            ExitCode::FAILURE
        }
    }
}
