//! Tests of experiments with handshakes.

use super::{Case, Hierarchies, Rates, Side, Verdict, algorithms};

#[test]
fn every_cell_of_the_breakdown_is_measured() {
    let (tables, _, results) = super::breakdown(1).unwrap();
    assert!(results.unwrap().complete);
    for table in &tables[2..] {
        for row in &table.rows {
            assert!(row.figures.iter().all(|it| it.text() != "–"), "{row:?}");
        }
    }
    assert_eq!(tables[1].rows.len(), 7);
    let verdict = |curves, costly, rest| super::split(curves, costly, rest).verdict;
    assert_eq!(verdict(1.2, 0.8, 0.4), Verdict::Agrees);
    assert_eq!(verdict(0.9, 0.8, 0.4), Verdict::Differs);
    assert_eq!(verdict(1.2, 0.3, 0.4), Verdict::Differs);
    assert_eq!(verdict(1.2, 0.8, 0.9), Verdict::Differs);
}

#[test]
fn every_algorithm_is_measured_and_the_published_figures_agree_with_themselves() {
    let measured = algorithms::measure(2).unwrap();
    let tables = super::costs(&measured);
    assert_eq!((tables[0].rows.len(), tables[1].rows.len()), (9, 7));
    let finding = super::compared(&measured.key_exchanges);
    assert_ne!(finding.verdict, Verdict::Unknown);
    assert_eq!(super::compared(&[]).verdict, Verdict::Unknown);
    let rates = |bytes, client, server| Rates {
        bytes,
        client,
        server,
    };
    let (p256, x25519) = (rates(130.0, 17.0, 17.0), rates(64.0, 31.0, 31.0));
    let verdict = |kem| super::exchanged(p256, x25519, kem).verdict;
    assert_eq!(verdict(rates(2272.0, 13.0, 25.0)), Verdict::Agrees);
    assert_eq!(verdict(rates(2272.0, 13.0, 35.0)), Verdict::Differs);
    assert_eq!(verdict(rates(2271.0, 13.0, 25.0)), Verdict::Differs);
}

#[test]
fn one_case_that_comes_out_otherwise_is_told() {
    let case = |passed| Case {
        name: "case".to_owned(),
        client: "rustls".to_owned(),
        server: "rustls".to_owned(),
        expected: "X25519 at once".to_owned(),
        happened: "secp256r1 at once".to_owned(),
        passed,
    };
    let agreed = |cases: &[Case]| super::agreed(cases);
    assert_eq!(agreed(&[case(true), case(true)]).verdict, Verdict::Agrees);
    let differs = agreed(&[case(true), case(false)]);
    assert_eq!(differs.verdict, Verdict::Differs);
    assert!(differs.sentence.starts_with("1 of 2"), "{differs:?}");
    assert_eq!(agreed(&[]).verdict, Verdict::Unknown);
    let table = super::played(&[case(false)]);
    assert_eq!(table.rows[0].figures[4].text(), "otherwise");
}

#[tokio::test]
async fn hierarchies_agree_only_where_connections_were_made() {
    let text = include_str!("../../../experiments/ml-dsa.json");
    let size = crate::experiments::file::Size::Quick;
    let experiment = super::Experiment::read(text, size).unwrap();
    let what = experiment.handshakes.unwrap();
    let section = super::section(&experiment, what, true).await.unwrap();
    assert_eq!(section.finding.verdict, Verdict::Agrees, "{section:?}");
    assert_eq!(section.ours[0].rows.len(), 16);
    assert_eq!(section.ours[1].rows.len(), super::KINDS.len());
    assert!(section.notes[2].contains(" 50 handshakes"), "{section:?}");
    let nothing = Hierarchies {
        connections: Vec::new(),
        openssl: Vec::new(),
    };
    let finding = super::hierarchies(&nothing, &section.results[0]);
    assert_eq!(finding.verdict, Verdict::Differs);
    assert!(
        section.results[0]
            .breakdowns
            .iter()
            .any(|it| it.side == Side::Server)
    );
}
