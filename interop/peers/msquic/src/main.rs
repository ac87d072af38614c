//! Endpoint of the QUIC interop runner on msquic: HTTP/0.9, as client and as server.

mod client;
mod server;
mod tls;

use std::{env, process::ExitCode};

use msquic::{Api, Registration, RegistrationConfig, Settings};

/// An error that ends the endpoint.
type Failure = Box<dyn std::error::Error>;

const UNSUPPORTED: u8 = 127;
const VERSION_1: u32 = 1;
const VERSION_2: u32 = 0x6b33_43cf;

/// `QUIC_PARAM_GLOBAL_RETRY_MEMORY_PERCENT`: share of the memory above which a server asks for tokens.
const RETRY_MEMORY: u32 = 0x0100_0000;
/// `QUIC_PARAM_GLOBAL_VERSION_SETTINGS`, with `QUIC_VERSION_SETTINGS`.
const VERSIONS: u32 = 0x0100_0007;

#[repr(C)]
struct VersionSettings {
    acceptable: *const u32,
    offered: *const u32,
    deployed: *const u32,
    lengths: [u32; 3],
}

fn main() -> ExitCode {
    if env::args().nth(1).as_deref() == Some("--version") {
        println!("{}", version());
        return ExitCode::SUCCESS;
    }
    let (role, case) = (read("ROLE"), read("TESTCASE"));
    if let Some(lack) = lack(&role, &case) {
        eprintln!("unsupported: {lack}");
        return ExitCode::from(UNSUPPORTED);
    }
    let done = prepare(&role, &case).and_then(|registration| match role.as_str() {
        "server" => server::run(&registration, &case),
        _ => client::run(&registration, &case),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn read(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

/// Returns the version of msquic that this program was built with.
fn version() -> String {
    let lock = include_str!("../Cargo.lock");
    let mut lines = lock.lines().skip_while(|line| *line != "name = \"msquic\"");
    let version = lines.nth(1).and_then(|line| line.split('"').nth(1));
    format!("{} with quictls", version.unwrap_or("?"))
}

/// Returns the reason why a case cannot be done, if it cannot.
fn lack(role: &str, case: &str) -> Option<String> {
    match case {
        _ if read("ALPN") == "h3" => return Some("msquic has no HTTP/3".to_owned()),
        "postquantum" | "postquantum-retry" => return Some(tls::NO_ML_KEM.to_owned()),
        "handshake" | "transfer" | "multiplexing" | "multiconnect" | "chacha20" | "retry"
        | "resumption" | "zerortt" | "ecn" | "v2" => {}
        "keyupdate" if role == "client" => {}
        _ => return Some(format!("msquic cannot do {case} as {role}")),
    }
    tls::lack()
}

/// Sets what holds for the whole library, and starts it.
fn prepare(role: &str, case: &str) -> Result<Registration, Failure> {
    tls::write_groups()?;
    Api::get_ffi();
    if case == "retry" && role == "server" {
        set_global(RETRY_MEMORY, &0_u16)?;
    }
    if case == "v2" {
        // A client begins with the first that it offers; a server prefers the first that it accepts.
        let (accepted, offered) = ([VERSION_2, VERSION_1], [VERSION_1, VERSION_2]);
        let versions = VersionSettings {
            acceptable: accepted.as_ptr(),
            offered: offered.as_ptr(),
            deployed: accepted.as_ptr(),
            lengths: [2; 3],
        };
        set_global(VERSIONS, &versions)?;
    }
    Ok(Registration::new(&RegistrationConfig::default())?)
}

fn set_global<T>(parameter: u32, value: &T) -> Result<(), Failure> {
    let pointer = std::ptr::from_ref(value).cast();
    // SAFETY: the value lives through the call, which copies it.
    unsafe {
        Api::set_param(
            std::ptr::null_mut(),
            parameter,
            size_of::<T>() as u32,
            pointer,
        )?
    };
    Ok(())
}

/// Returns settings of connections for links that lose a third of the packets.
fn settings(case: &str) -> Settings {
    let settings = Settings::new()
        .set_HandshakeIdleTimeoutMs(60_000)
        .set_IdleTimeoutMs(60_000)
        .set_DisconnectTimeoutMs(60_000)
        // No probes for larger datagrams: the runner counts bytes and packets.
        .set_MaximumMtu(1280)
        .set_MigrationEnabled();
    if case == "ecn" {
        settings.set_EcnEnabled()
    } else {
        settings
    }
}
