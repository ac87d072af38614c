//! Links with names: values of the axis that stand for arguments of `netbench link`.

/// Names, and what they stand for. Queues hold one product of rate and round trip unless they say
/// otherwise. The MTU is the payload of an Ethernet frame over IPv4.
pub(crate) const LINKS: [(&str, &str); 9] = [
    ("clean", "--rate 20mbit --delay 25ms --mtu 1472"),
    ("fast", "--rate 100mbit --delay 50ms --mtu 1472"),
    ("lossy", "--rate 100mbit --delay 25ms --loss 1% --mtu 1472"),
    (
        "shallow",
        "--rate 50mbit --delay 15ms --queue 0.2bdp --mtu 1472",
    ),
    (
        "bursts",
        "--rate 50mbit --delay 25ms --burst-loss 0.5%x8 --mtu 1472",
    ),
    (
        "reordered",
        "--rate 50mbit --delay 25ms --reorder 2%,10ms --mtu 1472",
    ),
    (
        "blackout",
        "--rate 50mbit --delay 25ms --blackout 4s,2s --mtu 1472",
    ),
    ("long", "--rate 200mbit --delay 125ms --mtu 1472"),
    (
        "marked",
        "--rate 50mbit --delay 10ms --queue 2bdp --ecn-mark 1ms --mtu 1472",
    ),
];

/// Returns the arguments of `netbench link` for a value of the axis.
pub(crate) fn arguments(link: &str) -> &str {
    let named = LINKS.iter().find(|(name, _)| *name == link);
    named.map_or(link, |(_, args)| args)
}

/// Reads the values of one text: arguments, or names separated by commas; `all` stands for every
/// name, `none` for no link.
pub(super) fn read(text: &str) -> Result<Vec<String>, String> {
    if text.trim_start().starts_with('-') || text.trim().is_empty() {
        return Ok(vec![text.trim().to_owned()]);
    }
    let mut links = Vec::new();
    for name in text.split(',').map(str::trim) {
        match name {
            "none" => links.push(String::new()),
            "all" => links.extend(LINKS.map(|(name, _)| name.to_owned())),
            _ if LINKS.iter().any(|(known, _)| *known == name) => links.push(name.to_owned()),
            _ => {
                let known = LINKS.map(|(name, _)| name).join(", ");
                return Err(format!(
                    "unknown link '{name}'; valid: all, none, {known}, or the arguments of \
                     `netbench link`"
                ));
            }
        }
    }
    Ok(links)
}
