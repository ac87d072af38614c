//! The report as one page for a browser, without anything from elsewhere.

use std::{
    fmt::Write as _,
    io,
    path::{Component, Path, PathBuf},
};

use super::{Line, Outcome, Report, Step};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

impl Report {
    /// Returns the page, with this prefix of its links to captures and logs: see [`logs_from`].
    pub fn html(&self, logs: &str) -> String {
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>Interoperability of hybriq</title>\n<style>\n{STYLE}</style>\n\
             <main>\n<h1>Interoperability of hybriq</h1>\n<p>{}</p>\n",
            escaped(&self.summary())
        );
        page += "<p>A verdict is taken from a capture of the link, decrypted with the key log. \
                 Point at a cell for what was measured; click or tap it to keep that, with links to its \
                 captures and logs, to which Enter leads.</p>\n";
        self.write_grid(&mut page, logs);
        page += "<p id=\"measured\" aria-live=\"polite\"></p>\n";
        self.write_failures(&mut page, logs);
        page += "<h2>Versions</h2>\n<ul>\n";
        for (name, version) in &self.versions {
            // Writing into a text does not fail.
            let _ = writeln!(page, "<li>{} {}</li>", escaped(name), escaped(version));
        }
        let _ = write!(
            page,
            "</ul>\n</main>\n<script>\n{SCRIPT}</script>\n</html>\n"
        );
        page
    }

    fn write_grid(&self, page: &mut String, prefix: &str) {
        *page += "<div class=\"grid\"><table>\n<thead><tr><th>client</th><th>server</th>";
        for (name, letters) in &self.cases {
            let _ = write!(
                page,
                "<th title=\"{}\">{}</th>",
                escaped(name),
                escaped(letters)
            );
        }
        *page += "</tr></thead>\n<tbody>\n";
        for (client, server) in self.pairs() {
            let _ = write!(
                page,
                "<tr><th>{}</th><th>{}</th>",
                escaped(client),
                escaped(server)
            );
            for (case, _) in &self.cases {
                match self.line(client, server, case) {
                    Some(line) => write_cell(page, line, prefix),
                    None => *page += "<td></td>",
                }
            }
            *page += "</tr>\n";
        }
        *page += "</tbody></table></div>\n<ul class=\"key\">";
        for outcome in [
            Outcome::Passed,
            Outcome::Failed,
            Outcome::Hung,
            Outcome::Unsupported,
            Outcome::Skipped,
        ] {
            let (letter, class) = look(outcome);
            let name = outcome.name().to_lowercase();
            let _ = write!(
                page,
                "<li><span class=\"{class}\">{letter}</span> {name}</li>"
            );
        }
        *page += "</ul>\n";
    }

    fn write_failures(&self, page: &mut String, prefix: &str) {
        if self.bad().next().is_none() {
            *page += "<p>Nothing failed.</p>\n";
            return;
        }
        *page += "<h2>Failures</h2>\n";
        for line in self.bad() {
            let id = escaped(&line.logs);
            let logs = format!("{prefix}{id}");
            let _ = write!(
                page,
                "<details id=\"{id}\"><summary>{}: {}</summary>\n\
                 <p>Captures: <a href=\"{logs}/client/link.pcap\">client</a>, \
                 <a href=\"{logs}/server/link.pcap\">server</a>. \
                 Output: <a href=\"{logs}/client/output.log\">client</a>, \
                 <a href=\"{logs}/server/output.log\">server</a>.",
                escaped(&line.title()),
                escaped(&line.text)
            );
            for end in qlogs(line) {
                let _ = write!(
                    page,
                    " <a href=\"{logs}/{end}/qlog/\">qlog of the {end}</a>."
                );
            }
            *page += "</p>\n";
            write_diagram(page, &line.steps);
            *page += "</details>\n";
        }
    }
}

/// Returns what leads from a page to the folder of the logs, as a prefix of links: empty where the page lies
/// in that folder.
///
/// # Errors
/// One of the folders is not there.
pub fn logs_from(page: &Path, logs: &Path) -> io::Result<String> {
    let folder = match page.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let (from, to) = (folder.canonicalize()?, logs.canonicalize()?);
    let common = from.components().zip(to.components());
    let common = common.take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(to.components().skip(common)).collect();
    let mut prefix = String::new();
    for part in &way {
        for byte in part.as_encoded_bytes() {
            // The unreserved characters of RFC 3986 §2.3.
            if byte.is_ascii_alphanumeric() || b"-._~".contains(byte) {
                prefix.push(char::from(*byte));
            } else {
                let _ = write!(prefix, "%{byte:02X}");
            }
        }
        prefix.push('/');
    }
    Ok(prefix)
}

/// Returns the letter and the class of an outcome.
const fn look(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Passed => ("✓", "passed"),
        Outcome::Failed => ("✗", "failed"),
        Outcome::Hung => ("H", "hung"),
        Outcome::Unsupported => ("–", "unsupported"),
        Outcome::Skipped => ("·", "skipped"),
    }
}

fn write_cell(page: &mut String, line: &Line, prefix: &str) {
    let (letter, class) = look(line.outcome);
    let mut measured = format!("{}: {}", line.title(), line.outcome.name().to_lowercase());
    if !line.text.is_empty() {
        measured = format!("{measured}, {}", line.text);
    }
    let measured = escaped(&measured);
    let cell = if line.outcome.is_bad() {
        format!("<a href=\"#{}\">{letter}</a>", escaped(&line.logs))
    } else {
        letter.to_owned()
    };
    let logs = match line.outcome {
        Outcome::Skipped => String::new(),
        _ => format!(
            " data-logs=\"{prefix}{}\" data-qlogs=\"{}\"",
            escaped(&line.logs),
            qlogs(line).join(" ")
        ),
    };
    let _ = write!(
        page,
        "<td class=\"{class}\" tabindex=\"0\" title=\"{measured}\"{logs}>{cell}</td>"
    );
}

/// Returns the ends that write qlog files: hybriq.
fn qlogs(line: &Line) -> Vec<&'static str> {
    let ends = [("client", &line.client), ("server", &line.server)];
    let ours = ends
        .into_iter()
        .filter(|(_, peer)| peer.starts_with("hybriq"));
    ours.map(|(end, _)| end).collect()
}

/// Draws the datagrams between two lines, as a table that a reader of a screen can read.
fn write_diagram(page: &mut String, steps: &[Step]) {
    if steps.is_empty() {
        *page += "<p>No datagram was seen.</p>\n";
        return;
    }
    *page += "<table class=\"steps\">\n<thead><tr><th>ms</th><th>client</th><th></th>\
              <th>server</th></tr></thead>\n";
    for Step {
        at,
        from_client,
        arrived,
        left_out,
        text,
    } in steps
    {
        if *left_out > 0 {
            let _ = writeln!(
                page,
                "<tr><td></td><td colspan=\"3\">{left_out} datagrams are left out</td></tr>"
            );
        }
        let arrow = match (from_client, arrived) {
            (true, true) => "───▶",
            (true, false) => "──✗ lost",
            (false, true) => "◀───",
            (false, false) => "lost ✗──",
        };
        let text = escaped(text);
        let (client, server) = if *from_client {
            (text.as_str(), "")
        } else {
            ("", text.as_str())
        };
        let _ = writeln!(
            page,
            "<tr><td>{at:.1}</td><td>{client}</td><td>{arrow}</td><td>{server}</td></tr>"
        );
    }
    *page += "</table>\n";
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::report::tests::report;

    #[test]
    fn a_failure_has_its_reason_its_datagrams_and_its_logs() {
        let page = report(&[
            ("handshake", Outcome::Passed, "12 ms"),
            ("retry", Outcome::Failed, "no <Retry> & \"token\""),
        ])
        .html("");
        assert!(page.contains("hybriq → aioquic, handshake: passed, 12 ms"));
        assert!(page.contains("no &lt;Retry&gt; &amp; &quot;token&quot;"));
        assert!(page.contains("Initial 0: CRYPTO") && page.contains("✗ lost"));
        assert!(page.contains("7 datagrams are left out"));
        assert!(page.contains("hybriq_aioquic/retry/client/link.pcap"));
        assert!(page.contains("href=\"hybriq_aioquic/retry/client/qlog/\""));
        assert!(page.contains("data-logs=\"hybriq_aioquic/handshake\" data-qlogs=\"client\""));
        assert!(
            !page.contains("http://") && !page.contains("https://"),
            "nothing is fetched"
        );
    }

    #[test]
    fn links_lead_from_the_page_to_the_logs() {
        let base = std::env::temp_dir().join(format!("hybriq-page-{}", std::process::id()));
        let (pages, logs) = (base.join("pages"), base.join("logs #1"));
        std::fs::create_dir_all(&pages).expect("a folder");
        std::fs::create_dir_all(&logs).expect("a folder");
        let from = |page: PathBuf| logs_from(&page, &logs).expect("both are there");
        assert_eq!(from(logs.join("matrix.html")), "");
        assert_eq!(from(base.join("matrix.html")), "logs%20%231/");
        assert_eq!(from(pages.join("matrix.html")), "../logs%20%231/");
        assert!(logs_from(&base.join("absent/matrix.html"), &logs).is_err());
        std::fs::remove_dir_all(&base).expect("it was made");
        let page = report(&[("retry", Outcome::Failed, "")]).html("../logs/");
        assert!(page.contains("href=\"../logs/hybriq_aioquic/retry/client/link.pcap\""));
        assert!(page.contains("data-logs=\"../logs/hybriq_aioquic/retry\""));
        assert!(page.contains("id=\"hybriq_aioquic/retry\""));
    }

    #[test]
    fn without_failures_the_page_says_so() {
        let page = report(&[("v2", Outcome::Passed, "")]).html("");
        assert!(page.contains("Nothing failed."));
    }
}
