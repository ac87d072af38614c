//! The cells of a run, and the reasons why some cannot be measured.

pub(super) mod needs;
pub(super) mod setup;
pub(super) mod waits;

use std::collections::BTreeSet;

use crate::scenario::axes::link::arguments;
use crate::scenario::axes::{Axes, Cell};
use crate::scenario::{Scenario, Template};
use crate::system::failure::Failure;

/// Maximum number of cells; more are a typing error.
pub(super) const MOST_CELLS: usize = 10_000;

/// A cell and its scenario.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) cell: Cell,
    pub(super) name: String,
    pub(super) scenario: Scenario,
    /// Reason why it cannot be measured.
    pub(super) left_out: Option<String>,
}

/// Returns all combinations. Cells that cannot be measured are left out. It is an error if that
/// removes all cells with a value of an axis in `named`.
pub(super) fn plan(
    template: &Template,
    axes: &Axes,
    named: &BTreeSet<String>,
) -> Result<Vec<Planned>, Failure> {
    template.check_axes(axes)?;
    let count = axes.size();
    if count > MOST_CELLS {
        return Err(
            format!("{count} combinations are more than {MOST_CELLS}; name fewer values").into(),
        );
    }
    for link in &axes.link {
        check_link(link)?;
    }
    let mut plan = Vec::new();
    for mut cell in axes.cells(&std::collections::BTreeMap::new()) {
        let name = axes.cell_name(&cell);
        let scenario = template.resolve(&cell.params)?;
        cell.params.clone_from(&scenario.params);
        let left_out = axes
            .check_profile(&cell)
            .and_then(|()| needs::check(&cell, &scenario))
            .err()
            .map(|failure| failure.to_string());
        plan.push(Planned {
            cell,
            name,
            scenario,
            left_out,
        });
    }
    refuse_impossible(&plan, named)?;
    Ok(plan)
}

fn check_link(link: &str) -> Result<(), Failure> {
    if link.is_empty() {
        return Ok(());
    }
    crate::run::link::check(arguments(link))
        .map_err(|problem| format!("--link \"{link}\": {problem}").into())
}

fn refuse_impossible(plan: &[Planned], named: &BTreeSet<String>) -> Result<(), Failure> {
    for axis in named {
        let mut seen = BTreeSet::new();
        for value in plan.iter().map(|planned| planned.cell.value(axis)) {
            if !seen.insert(value.clone()) {
                continue;
            }
            let with_value = || {
                let cells = plan.iter();
                cells.filter(|planned| planned.cell.value(axis) == value)
            };
            if with_value().all(|planned| planned.left_out.is_some()) {
                refuse(with_value())?;
            }
        }
    }
    if plan.iter().all(|planned| planned.left_out.is_some()) {
        refuse(plan.iter())?;
    }
    Ok(())
}

fn refuse<'a>(mut cells: impl Iterator<Item = &'a Planned>) -> Result<(), Failure> {
    match cells.find_map(|planned| planned.left_out.clone()) {
        Some(reason) => Err(reason.into()),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Axes, BTreeSet, Planned, Template, plan};

    fn planned(sets: &[(&str, &str)]) -> Result<Vec<Planned>, String> {
        let template = Template::load("request-response").unwrap();
        let mut axes = Axes::default();
        let mut named = BTreeSet::new();
        for (axis, values) in sets {
            axes.set(axis, values)
                .map_err(|failure| failure.to_string())?;
            if *values != "all" {
                named.insert((*axis).to_owned());
            }
        }
        plan(&template, &axes, &named).map_err(|failure| failure.to_string())
    }

    #[test]
    fn parameters_with_several_values_make_cells_as_axes_do() {
        let plan = planned(&[("connections", "10,20"), ("group", "X25519,MLKEM768")]).unwrap();
        assert_eq!(plan.len(), 4);
        let connections: BTreeSet<u64> = plan
            .iter()
            .map(|planned| planned.scenario.params["connections"])
            .collect();
        assert_eq!(connections, BTreeSet::from([10, 20]));
        let names: BTreeSet<&str> = plan.iter().map(|planned| planned.name.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
    }

    #[test]
    fn what_comes_from_all_is_left_out_where_it_is_impossible() {
        let plan = planned(&[("group", "all"), ("provider", "s2n-tls")]).unwrap();
        let left_out: Vec<&Planned> = plan
            .iter()
            .filter(|planned| planned.left_out.is_some())
            .collect();
        assert_eq!(plan.len(), 8);
        assert_eq!(left_out.len(), 1);
        assert_eq!(left_out[0].cell.group, hybriq::Group::MLKEM768);
    }

    #[test]
    fn what_is_possible_with_another_value_is_left_out_only_where_it_is_not() {
        let plan = planned(&[("group", "X25519,MLKEM768"), ("provider", "rustls,s2n-tls")]);
        let plan = plan.unwrap();
        let possible = plan.iter().filter(|planned| planned.left_out.is_none());
        assert_eq!(possible.count(), 3);
    }

    #[test]
    fn a_profile_chooses_what_was_not_named_and_refuses_what_it_forbids() {
        use crate::scenario::axes::Certificate;

        let plan = planned(&[("profile", "cnsa2")]).unwrap();
        let cell = &plan[0].cell;
        assert_eq!(plan.len(), 1);
        assert_eq!(cell.group, hybriq::Group::MLKEM1024);
        assert_eq!(cell.suite, hybriq::tls::Suite::Aes256GcmSha384);
        assert_eq!(cell.certificate, Certificate::MlDsa87);
        let plan = planned(&[("profile", "anssi"), ("group", "SecP384r1MLKEM1024")]).unwrap();
        assert_eq!(plan[0].cell.group, hybriq::Group::SECP384R1MLKEM1024);
        assert_eq!(plan[0].cell.certificate, Certificate::EcdsaP256);

        for (axis, value, named) in [
            ("group", "X25519MLKEM768", "the group X25519MLKEM768"),
            ("suite", "TLS_AES_128_GCM_SHA256", "the suite TLS_AES_128"),
            ("certificate", "ml-dsa-65", "certificates of ml-dsa-65"),
            ("resumption", "0-rtt", "0-RTT"),
            ("hello_retry", "yes", "a share of another group"),
        ] {
            let refused = planned(&[("profile", "cnsa2"), (axis, value)]).unwrap_err();
            let rule = "the profile cnsa2 (draft-becker-cnsa2-tls-profile-05) does not allow";
            assert!(refused.starts_with(&format!("{rule} {named}")), "{refused}");
        }
        let unknown = planned(&[("profile", "cnsa3")]).unwrap_err();
        assert_eq!(
            unknown,
            "unknown profile 'cnsa3'; valid: default, cnsa2, bsi, anssi, asd, fips140"
        );
        assert!(planned(&[("profile", "bsi,asd")]).is_err());
    }

    /// All groups and certificates under each profile, with either TLS library: what is measured, and the
    /// reason of each refusal.
    #[test]
    fn each_profile_is_measured_with_what_the_library_can_do() {
        use crate::scenario::axes::Certificate;
        use hybriq::{Backend, Group, Profile};

        for profile in Profile::ALL {
            for provider in Backend::ALL {
                let sets = [
                    ("profile", profile.name()),
                    ("provider", &provider.to_string()),
                    ("group", "all"),
                    ("certificate", "all"),
                ];
                for Planned { cell, left_out, .. } in planned(&sets).unwrap() {
                    let (group, certificate) = (cell.group, cell.certificate);
                    let what = format!("{profile}, {provider}, {group}, {certificate}");
                    let allowed = profile
                        .groups()
                        .is_none_or(|groups| groups.contains(&group))
                        && profile.allows_certificate(&certificate.algorithms());
                    let ml_dsa = certificate.to_string().starts_with("ml-dsa");
                    // Only two profiles ask for the suite of its policy with pure ML-KEM.
                    let cnsa = certificate == Certificate::MlDsa87
                        && cell.suite == hybriq::tls::Suite::Aes256GcmSha384;
                    let possible = provider == Backend::Rustls
                        || match group {
                            Group::MLKEM768 => false,
                            Group::MLKEM1024 if ml_dsa => cnsa,
                            _ => certificate != Certificate::Ed25519,
                        };
                    match (left_out, allowed, possible) {
                        (None, true, true) => {}
                        (Some(reason), false, _) => {
                            assert!(reason.contains("does not allow"), "{what}: {reason}");
                        }
                        (Some(reason), true, false) => {
                            let remedy = "use provider rustls";
                            let other = "use these or provider rustls";
                            let told = reason.contains(remedy) || reason.contains(other);
                            assert!(told, "{what}: {reason}");
                        }
                        (other, ..) => panic!("{what}: {other:?}"),
                    }
                }
                // What is not named is something that the library can do.
                let alone = [
                    ("profile", profile.name()),
                    ("provider", &provider.to_string()),
                ];
                planned(&alone).unwrap();
            }
        }
    }

    #[test]
    fn what_was_named_and_is_impossible_is_refused() {
        for groups in ["MLKEM768", "X25519,MLKEM768"] {
            let refused = planned(&[("group", groups), ("provider", "s2n-tls")]).unwrap_err();
            assert!(refused.contains("MLKEM768"), "{refused}");
        }
        let over_tcp = [
            ("driver", "tcp-tls"),
            ("client", "tcp-tls"),
            ("link", "--delay 3ms"),
        ];
        let refused = planned(&over_tcp).unwrap_err();
        assert!(refused.contains("leave out --link or tcp-tls"), "{refused}");
        let mut axes = Axes::default();
        axes.set("driver", "tcp-tls").unwrap();
        axes.set("client", "tcp-tls").unwrap();
        let datagrams = Template::load("datagrams").unwrap();
        let refused = plan(&datagrams, &axes, &BTreeSet::new()).unwrap_err();
        assert!(
            refused.to_string().contains("tcp-tls has no datagrams"),
            "{refused}"
        );
        for (name, args) in crate::scenario::axes::link::LINKS {
            assert_eq!(crate::run::link::check(args), Ok(()), "{name}");
        }
        let refused = planned(&[("link", "--dealy 3ms")]).unwrap_err();
        assert!(refused.contains("--dealy"), "{refused}");
    }
}
