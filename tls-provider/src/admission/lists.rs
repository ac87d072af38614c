//! Lists of both ends' values in the reason for a refusal.

/// Largest number of bytes of a reason that reach the peer: hybriq's transport cuts longer ones.
const TOLD: usize = 256;

/// Returns a reason with the lists of the server and of the client after its second and third
/// words. Long lists are cut at a name, so that the peer also reads both lists and what to do.
pub(super) fn with_lists(
    words: [&str; 4],
    server: impl Iterator<Item = String>,
    client: impl Iterator<Item = String>,
) -> String {
    let words_len: usize = words.iter().map(|words| words.len()).sum();
    let room = TOLD.saturating_sub(words_len);
    let (server, client) = (names(server), names(client));
    let room_beside = |other: &[String]| (room / 2).max(room.saturating_sub(joined(other).len()));
    let [what, before_server, before_client, remedy] = words;
    let (server, client) = (
        cut(&server, room_beside(&client)),
        cut(&client, room_beside(&server)),
    );
    format!("{what}{before_server}{server}{before_client}{client}{remedy}")
}

/// Returns as many names as could be shown. A peer sends as many as it likes.
fn names(list: impl Iterator<Item = String>) -> Vec<String> {
    list.take(TOLD).collect()
}

fn joined(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        _ => names.join(", "),
    }
}

/// Returns the names that fit into this many bytes.
fn cut(names: &[String], room: usize) -> String {
    let all = joined(names);
    if all.len() <= room {
        return all;
    }
    let mut shown = String::new();
    for name in names {
        if shown.len() + name.len() + ", others".len() > room {
            break;
        }
        shown = shown + name + ", ";
    }
    shown + "others"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(server: &[&str], client: &[&str]) -> String {
        let owned = |list: &[&str]| list.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let words = [
            "nothing in common",
            ": the server has ",
            ", the client ",
            "; do this",
        ];
        with_lists(words, owned(server).into_iter(), owned(client).into_iter())
    }

    #[test]
    fn short_lists_are_whole() {
        assert_eq!(
            told(&["h3", "hq"], &[]),
            "nothing in common: the server has h3, hq, the client none; do this"
        );
        // One list may use the room that the other leaves.
        let long = ["x".repeat(40), "y".repeat(40), "z".repeat(40)];
        let long: Vec<&str> = long.iter().map(String::as_str).collect();
        assert!(told(&long, &["h3"]).contains(&long.join(", ")));
        assert!(told(&["h3"], &long).contains(&long.join(", ")));
    }

    #[test]
    fn long_lists_of_both_ends_and_the_remedy_reach_the_peer() {
        for len in [1, 29, 128] {
            let name = "n".repeat(len);
            let many = vec![name.as_str(); 1000];
            let text = told(&many, &many);
            assert!(text.len() <= TOLD, "{} bytes", text.len());
            assert_eq!(text.matches("others").count(), 2, "{text}");
            assert!(text.ends_with("; do this"), "{text}");
            assert!(len > 29 || text.matches(&name).count() >= 4, "{text}");
        }
    }
}
