//! Negotiated group between two sides with different preferences.

use super::Budget;
use super::Experiment;
use super::section::{Finding, Section, Source, ValueTable};
use crate::handshake::cases::negotiation;
use crate::handshake::cases::negotiation::Case;
use crate::system::failure::Failure;

/// Runs the experiment, which needs no more time if it has more.
pub(super) async fn run(experiment: &Experiment, _: &Budget) -> Result<Section, Failure> {
    let cases = negotiation::run().await?;
    Ok(Section {
        source: Source {
            text: "AWS, 2024".to_owned(),
            experiment: "What servers answer to clients that offer hybrids, none, or drafts."
                .to_owned(),
        },
        published: vec![published()],
        ours: vec![ours(&cases)],
        finding: finding(&cases),
        rule: "It agrees where every case ends as published.".to_owned(),
        notes: vec![
            "Each case is a QUIC connection over the loopback interface, between every two of our \
             TLS providers that can play it."
                .to_owned(),
            "s2n-tls has fixed lists of groups, so other hybrids play the same parts there. It \
             takes no code points of drafts: such clients are rustls."
                .to_owned(),
            "The drafts are X25519Kyber768Draft00 (0x6399), SecP256r1Kyber768Draft00 (0x639a) and \
             a code point of experiments (0xfe30)."
                .to_owned(),
        ],
        ..Section::begin(experiment)
    })
}

fn published() -> ValueTable {
    ValueTable::new("Expected", "case", &[("outcome", "")])
        .row(
            "shares of P256+MLKEM768 and P-256; the server has P-256 and another hybrid that the \
             client lists",
            ["HelloRetryRequest for the hybrid"],
        )
        .row("no post-quantum group", ["connects, classically"])
        .row(
            "only drafts of Kyber",
            ["falls back to classical without failing"],
        )
}

fn ours(cases: &[Case]) -> ValueTable {
    let columns = [
        ("client", ""),
        ("server", ""),
        ("expected", ""),
        ("happened", ""),
        ("", ""),
    ];
    let mut table = ValueTable::new("What happened", "case", &columns);
    for case in cases {
        let passed = if case.passed {
            "as expected"
        } else {
            "otherwise"
        };
        let texts = [
            case.client.as_str(),
            &case.server,
            &case.expected,
            &case.happened,
            passed,
        ];
        table.push(case.name.clone(), texts);
    }
    table
}

fn finding(cases: &[Case]) -> Finding {
    let passed = cases.iter().filter(|case| case.passed).count();
    if cases.is_empty() {
        return Finding::unknown("no case could be played");
    }
    let all = cases.len();
    Finding::of(
        passed == all,
        format!("{passed} of {all} connections agreed on the group that was published for them."),
    )
}

#[cfg(test)]
mod tests {
    use super::{Case, finding, ours};
    use crate::experiments::reproduce::Verdict;

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
        assert_eq!(finding(&[case(true), case(true)]).verdict, Verdict::Agrees);
        let differs = finding(&[case(true), case(false)]);
        assert_eq!(differs.verdict, Verdict::Differs);
        assert!(differs.sentence.starts_with("1 of 2"), "{differs:?}");
        assert_eq!(finding(&[]).verdict, Verdict::Unknown);
        assert_eq!(
            ours(&[case(false)]).rows[0].figures[4].parts().0,
            "otherwise"
        );
    }
}
