//! The `netbench` program: [`hybriq_netbench::main`].

use std::process::ExitCode;

fn main() -> ExitCode {
    hybriq_netbench::main()
}
