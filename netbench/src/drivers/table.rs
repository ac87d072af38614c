//! `netbench drivers`: the capabilities of each stack.

use std::fmt::Write as _;

use hybriq::{Backend, Group};

use super::list::{driver, missing};
use super::{Driver, Role};
use crate::scenario::axes::{Cell, Certificate, Resumption, Stack};
use crate::system::machine::crates::version;

/// Returns a text about the stacks that are built in, their capabilities, and how to get the
/// others.
pub(crate) fn table() -> String {
    let mut text = String::new();
    let mut rest = String::new();
    for stack in Stack::ALL {
        match driver(stack) {
            Ok(driver) => describe(&mut text, stack, driver.as_ref()),
            Err(_) => rest.push_str(&(missing(stack) + "\n")),
        }
    }
    text + &rest
}

/// Returns the name and the crate of the TLS library that serves a stack under that provider.
fn library(stack: Stack, provider: Backend) -> (&'static str, &'static str) {
    match (stack, provider) {
        (Stack::Quiche, _) => ("boringssl", "boring"),
        (_, provider) => (provider.name(), provider.name()),
    }
}

fn describe(text: &mut String, stack: Stack, driver: &dyn Driver) {
    let described = match stack {
        Stack::TcpTls => format!("with rustls {}", version("rustls")),
        stack => version(stack.name()).to_owned(),
    };
    let mut congestion = driver.congestion();
    if !driver.controllers().is_empty() {
        congestion = format!("{congestion} (or: {})", driver.controllers().join(", "));
    }
    let datagrams = if driver.has_datagrams() { "yes" } else { "no" };
    let _ = writeln!(text, "{stack} {described}");
    let _ = writeln!(text, "  congestion  {congestion}");
    let _ = writeln!(text, "  datagrams   {datagrams}");
    for provider in Backend::ALL {
        let (name, library) = library(stack, provider);
        let cell = Cell {
            driver: stack,
            client: stack,
            provider,
            ..Cell::default()
        };
        if driver.check(Role::Server, &cell).is_ok() {
            let _ = writeln!(text, "  {name} {} (a server\u{2019}s)", version(library));
            describe_tls(text, driver, &cell);
        }
    }
}

/// Describes the capabilities of a server, and of a client of the same stack with it.
fn describe_tls(text: &mut String, driver: &dyn Driver, base: &Cell) {
    let can = |change: &dyn Fn(&mut Cell)| {
        let mut cell = base.clone();
        change(&mut cell);
        driver.check(Role::Server, &cell).is_ok() && driver.check(Role::Client, &cell).is_ok()
    };
    let groups = share(&Group::ALL, |group| can(&|cell| cell.group = *group));
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

/// Names the supported items of a list: all, all but a few, or one by one.
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
        for stack in Stack::ALL {
            assert!(table.contains(stack.name()), "{table}");
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
