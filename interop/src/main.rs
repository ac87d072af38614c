//! `hybriq-interop matrix [PEERS [CASES]]`: tests the implementations against each other on this
//! machine. Without arguments and with `ROLE` set: an endpoint of the QUIC interop runner.

use std::process::ExitCode;

use hybriq_interop::{
    cases, matrix, peers,
    runner::{Refusal, Task},
    testbed,
};

/// Exit status for the runner: the endpoint cannot do the test case.
const UNSUPPORTED: u8 = 127;

const USAGE: &str = "usage: hybriq-interop matrix [PEERS [CASES]]";

#[tokio::main]
async fn main() -> ExitCode {
    if std::env::args().len() == 1
        && let Some(task) = Task::from_env()
    {
        return match task {
            Ok(task) => task.run().await,
            Err(Refusal::Unsupported(reason)) => {
                eprintln!("unsupported: {reason}");
                ExitCode::from(UNSUPPORTED)
            }
            Err(Refusal::Wrong(problem)) => {
                eprintln!("{problem}");
                ExitCode::FAILURE
            }
        };
    }
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|word| word == "runner") {
        return run_cases(&arguments[1..]).await;
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (peer, case) = match arguments[..] {
        ["matrix"] => ("", ""),
        ["matrix", peer] if !peer.starts_with('-') => (peer, ""),
        ["matrix", peer, case] => (peer, case),
        ["--help" | "-h" | "help"] | ["matrix", "--help" | "-h"] => {
            println!("{}", help());
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}\nTry `hybriq-interop --help` for the names of both.");
            return ExitCode::FAILURE;
        }
    };
    let mut peers = peers::all();
    peers.retain(|one| one.name().contains(peer));
    let cases = matrix::select(case);
    if peers.is_empty() {
        eprintln!(
            "no implementation is called '{peer}'; there are: {}",
            names()
        );
        return ExitCode::FAILURE;
    }
    if cases.is_empty() {
        eprintln!("no case is called '{case}'; `hybriq-interop --help` lists the cases");
        return ExitCode::FAILURE;
    }
    let passed = matrix::run(&peers, &cases, &mut std::io::stdout()).await;
    peers::flush_logs();
    match passed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cannot print the table: {error}");
            ExitCode::FAILURE
        }
    }
}

fn names() -> String {
    let names: Vec<_> = peers::all().iter().map(|peer| peer.name()).collect();
    names.join(", ")
}

fn help() -> String {
    let cases: Vec<_> = cases::ALL.iter().map(matrix::sentence).collect();
    format!(
        "Tests the implementations against each other over loopback, each as client and as server, \
         and prints\na table. Exits with a failure if a case failed. The environment variable QLOGDIR names a\n\
         directory for logs of hybriq's connections.\n\n\
         Without arguments it is an endpoint of the QUIC interop runner if ROLE is set; then TESTCASE, REQUESTS\n\
         and the other variables of the runner say what to do.\n\n\
         {USAGE}\n\n\
         PEERS  part of the name of an implementation: {}\n\
         CASES  part of the name of a case:\n         {}",
        names(),
        cases.join("\n         ")
    )
}

/// Splits a list at its commas.
fn list(words: &str) -> Vec<String> {
    words.split(',').map(str::to_owned).collect()
}

/// Runs cases of the QUIC interop runner between hosts of network namespaces.
async fn run_cases(arguments: &[String]) -> ExitCode {
    let mut selection = testbed::Selection {
        with_us: true,
        ..testbed::Selection::default()
    };
    let mut logs = std::path::PathBuf::from("interop-logs");
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().cloned().unwrap_or_default();
        match word.as_str() {
            "--clients" => selection.clients = list(&value()),
            "--servers" => selection.servers = list(&value()),
            "--logs" => logs = value().into(),
            "--all-pairs" => selection.with_us = false,
            case => selection.cases.push(case.to_owned()),
        }
    }
    match testbed::run(&selection, &logs).await {
        Ok(report) => {
            print!("\n{}", report.markdown());
            if report.is_good() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
