//! The comparison as Markdown and as comma-separated values.

use std::fmt::Write as _;

use super::comparison::{Comparison, Factor, Row, State};
use super::rows::CONTENDERS;
use crate::report::charts::number::group_digits;

/// Returns the page: the machine, the table, and what is unclear.
pub(super) fn page(comparison: &Comparison) -> String {
    let mut text = String::from("# hybriq beside other stacks\n\n");
    head(&mut text, comparison);
    table(&mut text, comparison);
    foot(&mut text, comparison);
    text
}

fn head(text: &mut String, comparison: &Comparison) {
    let about = &comparison.about;
    let machine = &about.machine;
    let pinned = match (machine.server_core, machine.client_core) {
        (Some(server), Some(client)) => format!("server on core {server}, client on core {client}"),
        _ => "not pinned, because there is only one core".to_owned(),
    };
    let _ = writeln!(
        text,
        "Measured {} on {}, {} cores, Linux {}, load {:.1} before; {pinned}; loopback interface, \
         ECDSA P-256 certificates, the same windows and socket buffers for all, the stacks in \
         turn. Clients have rustls, quiche has BoringSSL.\n",
        about.started, machine.cpu, machine.cores, machine.kernel, machine.load
    );
    let names = [
        "hybriq",
        "s2n-quic",
        "s2n-tls",
        "quiche",
        "quinn",
        "noq",
        "rustls",
        "aws-lc-rs",
    ];
    let versions = names
        .iter()
        .filter_map(|name| Some(format!("{name} {}", about.crates.get(*name)?)));
    let _ = writeln!(
        text,
        "{} build{}: {}.\n\nMade by `{}`.\n",
        about.build,
        about
            .git
            .as_ref()
            .map_or(String::new(), |git| format!(" of {git}")),
        versions.collect::<Vec<_>>().join(", "),
        about.command.join(" ")
    );
    text.push_str("![The table below as a chart](peers.svg)\n\n");
    if about.build != "release" {
        text.push_str("**A debug build: these figures say nothing.**\n\n");
    }
}

fn table(text: &mut String, comparison: &Comparison) {
    let _ = write!(text, "| |");
    for name in &comparison.contenders {
        let _ = write!(text, " {name} |");
    }
    text.push_str(" now | goal | |\n|---|");
    text.push_str(&"---:|".repeat(comparison.contenders.len() + 1));
    text.push_str("---|---|\n");
    for row in &comparison.rows {
        let _ = write!(text, "| {}, {} |", row.title, row.unit);
        let best = best(row);
        for (index, figure) in row.figures.iter().enumerate() {
            let Some(figure) = figure else {
                text.push_str(" |");
                continue;
            };
            let number = number(figure.summary.median, row.digits);
            let mark = if figure.disturbed { " !" } else { "" };
            let _ = if best == Some(index) {
                write!(text, " **{number}**{mark} |")
            } else {
                write!(text, " {number}{mark} |")
            };
        }
        let sign = if row.higher_is_better { '≥' } else { '≤' };
        let now = row.now.map_or_else(String::new, factor);
        let _ = writeln!(
            text,
            " {now} | {sign} {} | {} |",
            row.goal,
            row.state.text()
        );
    }
}

/// Returns the column with the best figure of a QUIC stack.
fn best(row: &Row) -> Option<usize> {
    let quic = CONTENDERS.iter().zip(&row.figures).enumerate();
    let medians = quic
        .filter(|(_, (who, _))| who.is_ours() || who.is_peer())
        .filter_map(|(index, (_, figure))| Some((index, figure.as_ref()?.summary.median)));
    let better = |a: f64, b: f64| {
        if row.higher_is_better {
            b.total_cmp(&a)
        } else {
            a.total_cmp(&b)
        }
    };
    let best = medians.min_by(|(_, a), (_, b)| better(*a, *b));
    best.map(|(index, _)| index)
}

fn number(value: f64, digits: usize) -> String {
    group_digits(&format!("{value:.digits$}"))
}

/// Formats a factor with its interval: `1.10 (1.02–1.19)`.
fn factor(factor: Factor) -> String {
    match factor.interval {
        None => format!("{:.2} (one repetition)", factor.value),
        Some((_, high)) if high.is_infinite() => format!("{:.2} (no bound)", factor.value),
        Some((low, high)) => format!("{:.2} ({low:.2}–{high:.2})", factor.value),
    }
}

fn foot(text: &mut String, comparison: &Comparison) {
    let most = comparison.rows.iter().flat_map(|row| &row.figures);
    let (least, most) = most.flatten().fold((u64::MAX, 0), |(least, most), figure| {
        (least.min(figure.summary.n), most.max(figure.summary.n))
    });
    let repetitions = match (least, most) {
        (_, 0) => "no repetitions".to_owned(),
        (least, most) if least == most => format!("{most} repetitions"),
        (least, most) => format!("{least} to {most} repetitions"),
    };
    let _ = writeln!(
        text,
        "\nMedians of {repetitions}; bold: the best QUIC stack. **now**: our better column divided by \
         the best other QUIC stack, with its 95 % interval. A goal is met or not met where the whole \
         interval is on that side, otherwise unclear. `!`: other processes used 15 % of a core or \
         more even when it was measured again; such a row is unclear. Memory is the growth of the \
         resident set, without freed memory, from few to many held connections, divided by their \
         number. Handshakes have X25519MLKEM768 where no other group is named."
    );
    let unclear = |row: &&Row| row.state == State::Unclear;
    let unclear: Vec<&str> = comparison
        .rows
        .iter()
        .filter(unclear)
        .map(|row| row.title)
        .collect();
    if !unclear.is_empty() {
        let _ = writeln!(text, "\nUnclear in this run: {}.", unclear.join("; "));
    }
    for (title, lines) in [
        ("Disturbed", &comparison.noise),
        ("Problems", &comparison.problems),
    ] {
        if !lines.is_empty() {
            let _ = writeln!(text, "\n## {title}\n");
            for line in lines {
                let _ = writeln!(text, "- {line}");
            }
        }
    }
    let missing: Vec<&str> = CONTENDERS
        .iter()
        .filter(|who| crate::scenario::axes::Stack::built_in().all(|stack| stack != who.stack))
        .map(|who| who.name)
        .collect();
    if !missing.is_empty() {
        let _ = writeln!(
            text,
            "\nNot built in, so not measured: {} (`netbench drivers`).",
            missing.join("; ")
        );
    }
}

/// Returns a line for each figure.
pub(super) fn csv(comparison: &Comparison) -> Vec<u8> {
    let mut text = String::from(
        "row,unit,better,stack,median,low,high,repetitions,disturbed,now,now_low,now_high,goal,state\r\n",
    );
    for row in &comparison.rows {
        let better = if row.higher_is_better { "more" } else { "less" };
        let optional = |value: Option<f64>| value.map(|it| it.to_string()).unwrap_or_default();
        let now = optional(row.now.map(|now| now.value));
        let interval = row.now.and_then(|now| now.interval);
        let (low, high) = (
            optional(interval.map(|it| it.0)),
            optional(interval.map(|it| it.1)),
        );
        for (name, figure) in comparison.contenders.iter().zip(&row.figures) {
            let Some(figure) = figure else { continue };
            let summary = figure.summary;
            let _ = write!(
                text,
                "\"{}\",{},{better},\"{name}\",{},{},{},{},{},{now},{low},{high},{},{}\r\n",
                row.title,
                row.unit,
                summary.median,
                summary.low,
                summary.high,
                summary.n,
                figure.disturbed,
                row.goal,
                row.state.text()
            );
        }
    }
    text.into_bytes()
}
