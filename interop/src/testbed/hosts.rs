//! Two hosts: network namespaces whose only way out is a TUN device.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::{
        fd::{AsFd as _, AsRawFd as _},
        unix::fs::OpenOptionsExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use rustix::{
    process::{Pid, Signal, kill_process},
    thread::{LinkNameSpaceType, move_into_link_name_space},
};

use super::Failure;
use crate::runner::Role;

/// Name of the device on both hosts.
const DEVICE: &str = "wire";

/// Port of the server, and of the address that it prefers.
pub(super) const PORTS: [u16; 2] = [443, 4443];

/// Addresses of a host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Addresses {
    pub(super) v4: &'static str,
    pub(super) v6: &'static str,
}

/// Returns the addresses of a host.
pub(super) const fn addresses(role: Role) -> Addresses {
    match role {
        Role::Client => Addresses {
            v4: "192.0.2.2",
            v6: "2001:db8:1::2",
        },
        Role::Server => Addresses {
            v4: "198.51.100.2",
            v6: "2001:db8:2::2",
        },
    }
}

/// Two hosts, removed at the end.
#[derive(Debug)]
pub(super) struct Hosts {
    client: String,
    server: String,
}

impl Hosts {
    /// Makes the hosts.
    ///
    /// # Errors
    /// There is no right to make namespaces, or no `ip`.
    pub(super) fn make() -> Result<Self, Failure> {
        static PAIRS: AtomicU32 = AtomicU32::new(0);
        let process = std::process::id();
        let pair = PAIRS.fetch_add(1, Ordering::Relaxed);
        let hosts = Self {
            client: format!("hybriq-{process}-{pair}-client"),
            server: format!("hybriq-{process}-{pair}-server"),
        };
        for role in [Role::Client, Role::Server] {
            let name = hosts.name(role);
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
            hosts.write_names(role)?;
        }
        Ok(hosts)
    }

    fn name(&self, role: Role) -> &str {
        match role {
            Role::Client => &self.client,
            Role::Server => &self.server,
        }
    }

    /// Writes the names of the runner's server into the host's own `/etc/hosts`.
    fn write_names(&self, role: Role) -> Result<(), Failure> {
        let folder = names_of(self.name(role));
        fs::create_dir_all(&folder)?;
        let Addresses { v4, v6 } = addresses(Role::Server);
        let names = format!(
            "127.0.0.1 localhost\n::1 localhost\n{v4} server server4 server46\n{v6} server6 server46\n"
        );
        fs::write(folder.join("hosts"), names)?;
        Ok(())
    }

    /// Makes the device of a host.
    ///
    /// # Errors
    /// The kernel has no TUN devices, or refuses.
    pub(super) fn device(&self, role: Role) -> Result<File, Failure> {
        let name = self.name(role);
        let namespace = File::open(PathBuf::from("/run/netns").join(name))?;
        // The namespace belongs to the thread that enters it, which ends here.
        let opened = thread::spawn(move || {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
            open_tun()
        });
        let device = opened
            .join()
            .map_err(|_| "the thread of the device died")??;
        let Addresses { v4, v6 } = addresses(role);
        for words in [
            format!("addr add {v4}/32 dev {DEVICE}"),
            format!("addr add {v6}/128 dev {DEVICE} nodad"),
            format!("link set {DEVICE} up"),
            format!("route add default dev {DEVICE}"),
            format!("-6 route add default dev {DEVICE}"),
        ] {
            ip(&format!("-n {name} {words}"))?;
        }
        Ok(device)
    }

    /// Returns the words that run a program on a host.
    pub(super) fn on(&self, role: Role) -> [&str; 4] {
        ["ip", "netns", "exec", self.name(role)]
    }
}

/// Returns why this machine cannot have such hosts, if it cannot.
pub fn lack() -> Option<String> {
    let tried = Hosts::make().and_then(|hosts| hosts.device(Role::Client).map(drop));
    tried.err().map(|error| error.to_string())
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for name in [&self.client, &self.server] {
            remove(name);
        }
    }
}

/// Removes a host with all that runs on it.
fn remove(host: &str) {
    end_all(host);
    let _ = ip(&format!("netns del {host}"));
    let _ = fs::remove_dir_all(names_of(host));
}

/// Removes the hosts of programs that were killed before they could do it.
pub(super) fn remove_leftovers() {
    let entries = ["/run/netns", "/etc/netns"].map(fs::read_dir);
    let entries = entries.into_iter().flatten().flatten().flatten();
    for name in entries.filter_map(|entry| entry.file_name().into_string().ok()) {
        if is_left_over(&name) {
            remove(&name);
        }
    }
}

/// Returns true for a host that [`Hosts::make`] named in a process that is gone.
fn is_left_over(name: &str) -> bool {
    let words: Vec<_> = name.split('-').collect();
    let ["hybriq", process, pair, "client" | "server"] = words[..] else {
        return false;
    };
    let is_number = |word: &str| word.parse::<u32>().is_ok();
    is_number(pair) && is_number(process) && !Path::new("/proc").join(process).exists()
}

/// Ends whatever still runs on a host: endpoints start programs of their own, which outlive them.
fn end_all(host: &str) {
    let Ok(output) = Command::new("ip").args(["netns", "pids", host]).output() else {
        return;
    };
    let ids = String::from_utf8_lossy(&output.stdout);
    for id in ids.split_whitespace().filter_map(|id| id.parse().ok()) {
        if let Some(id) = Pid::from_raw(id) {
            // It may have ended on its own.
            let _ = kill_process(id, Signal::KILL);
        }
    }
}

/// Returns the folder whose files stand in for those of `/etc` on a host.
fn names_of(host: &str) -> PathBuf {
    PathBuf::from("/etc/netns").join(host)
}

fn ip(words: &str) -> Result<(), Failure> {
    let run = Command::new("ip").args(words.split(' ')).output();
    let Output { status, stderr, .. } = run.map_err(|error| format!("ip: {error}"))?;
    if status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&stderr);
    Err(format!("ip {words}: {}", why.trim()).into())
}

/// Makes a TUN device in the namespace of the thread.
fn open_tun() -> io::Result<File> {
    /// `struct ifreq` of Linux, for `TUNSETIFF`.
    #[repr(C)]
    struct Request {
        name: [u8; libc::IFNAMSIZ],
        flags: libc::c_short,
        rest: [u8; 22],
    }

    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open("/dev/net/tun")?;
    let mut request = Request {
        name: [0; libc::IFNAMSIZ],
        flags: (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short,
        rest: [0; 22],
    };
    for (to, from) in request.name.iter_mut().zip(DEVICE.bytes()) {
        *to = from;
    }
    #[expect(unsafe_code, reason = "this request has no safe interface")]
    // SAFETY: `Request` has the size and layout of `struct ifreq`, and lives through the call.
    let done = unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF as _, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(device)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the id of a process that is gone.
    fn gone() -> u32 {
        let mut process = Command::new("true").spawn().expect("a process");
        process.wait().expect("its end");
        process.id()
    }

    #[test]
    fn only_hosts_of_processes_that_are_gone_are_left_over() {
        let (gone, here) = (gone(), std::process::id());
        assert!(is_left_over(&format!("hybriq-{gone}-0-client")));
        for other in [
            format!("hybriq-{here}-0-client"),
            format!("hybriq-{gone}-0-proxy"),
            format!("hybriq-{gone}-client"),
            format!("other-{gone}-0-client"),
            "hybriq-../..-0-client".to_owned(),
        ] {
            assert!(!is_left_over(&other), "{other}");
        }
    }

    #[test]
    fn what_a_killed_program_left_is_removed() {
        let left = format!("hybriq-{}-0-server", gone());
        if let Err(lack) = ip(&format!("netns add {left}")) {
            test_summary::skip(format!("network namespaces need root: {lack}"));
            return;
        }
        fs::create_dir_all(names_of(&left)).expect("a folder");
        let here = Hosts::make().expect("hosts");
        remove_leftovers();
        let exists = |name: &str| Path::new("/run/netns").join(name).exists();
        assert!(!exists(&left) && !names_of(&left).exists());
        assert!(exists(here.name(Role::Client)) && exists(here.name(Role::Server)));
    }
}
