//! `netbench drivers`: what each stack can vary.

use std::fmt::Write as _;

use super::list::{NAMES, driver, missing, version};
use super::{Driver, Role};
use crate::axes::{Cell, Certificate, Resumption};

/// The TLS libraries that cells may name, and their crates.
const PROVIDERS: [(&str, &str); 3] = [
    ("rustls", "rustls"),
    ("s2n-tls", "s2n-tls"),
    ("boringssl", "boring"),
];

/// Returns a text about the stacks that are built in, what they can vary, and how to get the
/// others.
pub(crate) fn table() -> String {
    let mut text = String::new();
    let mut rest = String::new();
    for (name, _) in NAMES {
        match driver(name) {
            Ok(driver) => describe(&mut text, driver.as_ref()),
            Err(_) => rest.push_str(&(missing(name) + "\n")),
        }
    }
    text + &rest
}

fn describe(text: &mut String, driver: &dyn Driver) {
    let name = driver.name();
    let version = match name {
        "tcp-tls" => format!("with rustls {}", version("rustls")),
        name => version(name).to_owned(),
    };
    let mut congestion = driver.congestion();
    if !driver.controllers().is_empty() {
        congestion = format!("{congestion} (or: {})", driver.controllers().join(", "));
    }
    let datagrams = if driver.has_datagrams() { "yes" } else { "no" };
    let _ = writeln!(text, "{name} {version}");
    let _ = writeln!(text, "  congestion  {congestion}");
    let _ = writeln!(text, "  datagrams   {datagrams}");
    for (provider, library) in PROVIDERS {
        let cell = Cell {
            driver: name.to_owned(),
            client: name.to_owned(),
            provider: provider.to_owned(),
            ..Cell::default()
        };
        if driver.check(Role::Server, &cell).is_ok() {
            let _ = writeln!(
                text,
                "  {provider} {} (a server\u{2019}s)",
                self::version(library)
            );
            describe_tls(text, driver, &cell);
        }
    }
}

/// Writes what a server can do, and clients of the same stack with it.
fn describe_tls(text: &mut String, driver: &dyn Driver, base: &Cell) {
    let can = |change: &dyn Fn(&mut Cell)| {
        let mut cell = base.clone();
        change(&mut cell);
        driver.check(Role::Server, &cell).is_ok() && driver.check(Role::Client, &cell).is_ok()
    };
    let groups = hybriq::Group::ALL.map(|group| group.to_string());
    let groups = share(&groups, |group| can(&|cell| cell.group.clone_from(group)));
    let kinds = share(&Certificate::ALL, |kind| {
        can(&|cell| cell.certificate = *kind)
    });
    let resumptions = share(&Resumption::ALL, |resumption| {
        can(&|cell| cell.resumption = *resumption)
    });
    let yes = |can| if can { "yes" } else { "no" };
    let retry = yes(can(&|cell| cell.hello_retry = true));
    let auth = yes(can(&|cell| cell.client_auth = true));
    let _ = writeln!(text, "    groups        {groups}");
    let _ = writeln!(text, "    certificates  {kinds}");
    let _ = writeln!(text, "    resumption    {resumptions}");
    let _ = writeln!(text, "    hello-retry   {retry}");
    let _ = writeln!(text, "    client auth   {auth}");
}

/// Names the items of a list that can be had: all, all but a few, or one by one.
fn share<T: ToString>(list: &[T], can: impl Fn(&T) -> bool) -> String {
    let (had, lacked): (Vec<_>, Vec<_>) = list.iter().partition(|item| can(item));
    let [had, lacked] =
        [had, lacked].map(|items| items.into_iter().map(T::to_string).collect::<Vec<_>>());
    match lacked.len() {
        0 => format!("all {}", list.len()),
        lacks if lacks <= 2 && list.len() > 3 => format!("all but {}", lacked.join(", ")),
        _ => had.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stack_is_in_the_table() {
        let table = table();
        for (name, _) in NAMES {
            assert!(table.contains(name), "{table}");
        }
    }

    #[test]
    fn what_our_stack_can_is_told_by_its_own_checks() {
        let table = table();
        let ours = table.split("tcp-tls").next().unwrap();
        for part in [
            "groups        all 8",
            "certificates  all 7",
            "resumption    all 3",
            "groups        all but MLKEM768",
            "certificates  all but ed25519",
            "resumption    full, psk",
        ] {
            assert!(ours.contains(part), "{table}");
        }
    }
}
