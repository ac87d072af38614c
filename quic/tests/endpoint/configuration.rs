//! The page on configuration says what the code does, and the rustdoc of every setter its default.
#![cfg(all(feature = "tokio", feature = "qlog"))]

use std::{collections::BTreeMap, fmt::Debug, fs, path::Path};

use hybriq::{
    Endpoint, TransportConfig,
    memory::CarefulResume,
    qlog::Qlog,
    transport::{ApplicationCodes, DatagramConfig, DatagramOptions},
};

/// The types that the page has a table of, and what their defaults look like.
fn documented() -> [(&'static str, Option<String>); 9] {
    let shown = |value: &dyn Debug| Some(format!("{value:?}"));
    [
        ("TransportConfig", shown(&TransportConfig::new())),
        ("ApplicationCodes", shown(&ApplicationCodes::new())),
        ("DatagramConfig", shown(&DatagramConfig::new())),
        ("DatagramOptions", shown(&DatagramOptions::new())),
        ("CarefulResume", shown(&CarefulResume::new())),
        ("ServerConfig", None),
        ("ClientConfig", None),
        ("EndpointBuilder", shown(&Endpoint::builder())),
        ("QlogBuilder", shown(&Qlog::directory("logs"))),
    ]
}

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The sources that configurations stand in.
fn sources() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut directories = ["src/config", "proto/src/config"]
        .map(|directory| root.join(directory))
        .to_vec();
    let mut sources = vec![
        read("src/endpoint/builder/mod.rs"),
        read("qlog/src/builder.rs"),
        read("../tls-provider/src/options/settings.rs"),
        read("proto/src/owners/datagrams/config.rs"),
    ];
    while let Some(directory) = directories.pop() {
        let shown = directory.display();
        for file in fs::read_dir(&directory).unwrap_or_else(|error| panic!("{shown}: {error}")) {
            let path = file.expect("a file").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                sources.push(fs::read_to_string(path).expect("a source"));
            }
        }
    }
    sources
}

/// A public method that takes its configuration by value and gives it back.
#[derive(Clone)]
struct Setter {
    name: String,
    docs: String,
}

/// The setters in one source, by the type or the macro that they stand in.
fn setters(source: &str) -> Vec<(String, Setter)> {
    let (mut found, mut owner) = (Vec::new(), None);
    let lines: Vec<&str> = source.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if let Some(rest) = line.strip_prefix("impl ") {
            owner = rest.strip_suffix(" {").map(str::to_owned);
        }
        let line = line.trim_start();
        if let Some(rest) = line.strip_prefix("macro_rules! ") {
            owner = rest.strip_suffix(" {").map(str::to_owned);
        }
        let declared = ["pub fn ", "pub const fn "]
            .iter()
            .find_map(|start| line.strip_prefix(start));
        let (Some(owner), Some(declared)) = (&owner, declared) else {
            continue;
        };
        let signature = lines[at..].join(" ");
        let signature = &signature[..signature.find('{').unwrap_or(signature.len())];
        let arguments = signature.split_once('(').expect("arguments").1.trim_start();
        let by_value = arguments.starts_with("self") || arguments.starts_with("mut self");
        let above = lines[..at].iter().rev().map(|line| line.trim_start());
        let above: Vec<&str> = above
            .take_while(|line| line.starts_with("///") || line.starts_with("#["))
            .collect();
        let hidden = above.contains(&"#[doc(hidden)]");
        if by_value && !hidden && signature.trim_end().ends_with("-> Self") {
            let end = declared.find(['(', '<']).expect("a name");
            let docs: Vec<&str> = above.into_iter().rev().collect();
            let setter = Setter {
                name: declared[..end].to_owned(),
                docs: docs.join("\n"),
            };
            found.push((owner.clone(), setter));
        }
    }
    found
}

/// The macros with setters that one source calls, by the type or the macro that calls them.
fn macros_of(source: &str) -> Vec<(String, String)> {
    let (mut found, mut owner) = (Vec::new(), String::new());
    for line in source.lines().map(str::trim_start) {
        let rest = line
            .strip_prefix("impl ")
            .or(line.strip_prefix("macro_rules! "));
        if let Some(name) = rest.and_then(|rest| rest.strip_suffix(" {")) {
            name.clone_into(&mut owner);
        }
        if let Some((path, _)) = line.split_once("_setters!(") {
            let name = path.rsplit("::").next().unwrap_or(path);
            found.push((owner.clone(), format!("{name}_setters")));
        }
    }
    found
}

/// Every setter by its type.
fn all_setters() -> BTreeMap<String, Vec<Setter>> {
    let mut all: BTreeMap<String, Vec<Setter>> = BTreeMap::new();
    let sources = sources();
    for (owner, setter) in sources.iter().flat_map(|source| setters(source)) {
        all.entry(owner).or_default().push(setter);
    }
    let calls: Vec<_> = sources.iter().flat_map(|it| macros_of(it)).collect();
    let is_macro = |owner: &str| owner.ends_with("_setters");
    // A macro may call another one; those that types call come last.
    let (inner, outer): (Vec<_>, Vec<_>) = calls.into_iter().partition(|(it, _)| is_macro(it));
    for (owner, called) in inner.into_iter().chain(outer) {
        let written = all[&called].clone();
        all.entry(owner).or_default().extend(written);
    }
    all.retain(|owner, _| !is_macro(owner));
    all
}

/// The rows of the page by type: setter, unit, default.
fn rows() -> BTreeMap<String, Vec<[String; 3]>> {
    let page = read("docs/configuration.md");
    let (mut rows, mut heading) = (BTreeMap::<String, Vec<_>>::new(), String::new());
    for line in page.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            name.clone_into(&mut heading);
        }
        if line.starts_with("| `") {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            assert_eq!(cells.len(), 7, "{line}");
            let [setter, unit, default] = [1, 2, 3].map(|cell| cells[cell].to_owned());
            let setter = setter.trim_matches('`').to_owned();
            rows.entry(heading.clone())
                .or_default()
                .push([setter, unit, default]);
        }
    }
    rows
}

/// A default as `Debug` shows it: `24 MiB` is 25165824, `25 ms` is 25ms, `` `Cubic` `` is Cubic.
fn as_debug(default: &str, unit: &str) -> Option<String> {
    if let Some(choice) = default.strip_prefix('`') {
        return Some(choice.trim_end_matches('`').to_owned());
    }
    let (number, scale) = default.split_once(' ').unwrap_or((default, ""));
    let tenths = match number.split_once('.') {
        Some((whole, tenth)) => 10 * whole.parse::<u64>().ok()? + tenth.parse::<u64>().ok()?,
        None => 10 * number.parse::<u64>().ok()?,
    };
    Some(match (unit, scale) {
        ("time", _) => format!("{number}{scale}"),
        (_, "") => number.to_owned(),
        (_, "KiB") => (tenths * 1024 / 10).to_string(),
        (_, "MiB") => (tenths * 1024 * 1024 / 10).to_string(),
        _ => panic!("{default}: no scale that is known"),
    })
}

#[test]
fn every_setter_has_a_row_and_every_row_a_setter() {
    let (mut setters, mut rows) = (all_setters(), rows());
    for (owner, _) in documented() {
        let names = |rows: Vec<[String; 3]>| rows.into_iter().map(|[name, ..]| name);
        let mut written: Vec<String> = names(rows.remove(owner).unwrap_or_default()).collect();
        let setters = setters.remove(owner).unwrap_or_default();
        let mut there: Vec<String> = setters.into_iter().map(|setter| setter.name).collect();
        written.sort();
        there.sort();
        assert_eq!(
            written, there,
            "docs/configuration.md (left) and the setters of {owner} (right)"
        );
    }
    assert!(rows.is_empty(), "tables of no type: {:?}", rows.keys());
    assert!(
        setters.is_empty(),
        "types without a table, see documented(): {:?}",
        setters.keys()
    );
}

#[test]
fn the_defaults_on_the_page_are_those_of_the_code() {
    let rows = rows();
    let mut compared = 0;
    for (owner, shown) in documented() {
        let Some(shown) = shown else { continue };
        for [setter, unit, default] in &rows[owner] {
            let Some(expected) = as_debug(default, unit) else {
                continue;
            };
            let field = match setter.as_str() {
                "socket_buffers" => "buffer_size",
                "max_bidi_streams" => "max_bidi",
                "max_uni_streams" => "max_uni",
                // A trait object, of which nothing is shown.
                "cid_generator" => continue,
                setter => setter,
            };
            let value = shown
                .split_once(&format!(" {field}: "))
                .map(|(_, rest)| {
                    let wrapped = ["Some(", "Exactly("];
                    let inner = wrapped
                        .iter()
                        .find_map(|wrapper| rest.strip_prefix(wrapper));
                    inner.unwrap_or(rest)
                })
                .map(|rest| &rest[..rest.find([',', ' ', ')']).unwrap_or(rest.len())]);
            compared += 1;
            assert_eq!(
                Some(expected.as_str()),
                value,
                "{owner}::{setter}: on the page (left) and in the code (right)"
            );
        }
    }
    assert!(compared > 15, "only {compared} were found");
}

#[test]
fn the_rustdoc_of_every_setter_names_its_default() {
    let rows = rows();
    for (owner, setters) in all_setters() {
        for Setter { name, docs } in setters {
            if name.starts_with("without_") {
                continue;
            }
            let text = docs.replace("\n///", "").to_lowercase();
            assert!(text.contains("default"), "{owner}::{name} names none");
            let row = rows[&owner].iter().find(|[setter, ..]| *setter == name);
            let Some([_, unit, default]) = row else {
                continue;
            };
            if ["bytes", "streams", "clients"].contains(&unit.as_str())
                || (unit == "time" && default != "3600 s")
            {
                let default = default.to_lowercase();
                assert!(text.contains(&default), "{owner}::{name}: {default}");
            }
        }
    }
}

#[test]
fn the_parser_finds_setters_as_they_are_written() {
    let source = "impl Some {\n    /// Default 1.\n    #[must_use]\n    pub const fn one(mut self) \
                  -> Self {\n    }\n    #[doc(hidden)]\n    pub fn hidden(self) -> Self {}\n    \
                  pub fn long<T>(\n        self,\n        x: T,\n    ) -> Self {\n    }\n    pub fn \
                  get(&self) -> Self {}\n    pub fn new() -> Self {}\n}\n";
    let found = setters(source);
    let names: Vec<&str> = found.iter().map(|(_, it)| it.name.as_str()).collect();
    assert_eq!(names, ["one", "long"]);
    assert!(found[0].1.docs.contains("Default 1."));
    assert!(found.iter().all(|(owner, _)| owner == "Some"));

    let source = "macro_rules! some_setters {\n    () => {\n        $crate::other_setters!();\n        \
                  pub fn one(self) -> Self {\n    };\n}\nimpl Some {\n    some_setters!(Options);\n}\n";
    assert_eq!(setters(source)[0].0, "some_setters");
    let calls = [("some_setters", "other_setters"), ("Some", "some_setters")];
    let calls = calls.map(|(by, called)| (by.to_owned(), called.to_owned()));
    assert_eq!(macros_of(source), calls);
}
