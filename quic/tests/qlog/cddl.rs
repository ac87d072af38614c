//! A checker of JSON against CDDL (RFC 8610), of which it knows what the drafts of qlog use.

use std::collections::HashMap;

use serde_json::{Map, Value};

/// Rules by name. The alternatives of a socket are collected from all files.
#[derive(Debug, Default)]
pub(crate) struct Rules(HashMap<String, Vec<Type>>);

#[derive(Clone, Debug)]
enum Type {
    Literal(String),
    Name(String),
    /// A number of bytes: the range of an unsigned integer.
    Sized(Box<Type>, u32),
    Matching(String),
    Map(Vec<Member>),
    List(Occurrence, Box<Type>),
    Choice(Vec<Type>),
}

#[derive(Clone, Copy, Debug)]
struct Occurrence {
    least: usize,
    most: usize,
}

#[derive(Clone, Debug)]
enum Member {
    Field {
        key: String,
        required: bool,
        of: Type,
    },
    /// `~Name`: the fields of another map.
    Fields(String),
    /// `* text => any`.
    Anything,
}

type Check = Result<(), String>;

impl Rules {
    /// Reads the rules of all files.
    pub(crate) fn read(files: &[&str]) -> Self {
        let mut rules = Self::default();
        for file in files {
            let mut parser = Parser {
                tokens: tokens(file),
                at: 0,
            };
            while parser.peek().is_some() {
                let (name, of) = parser.rule();
                rules.0.entry(name).or_default().push(of);
            }
        }
        rules
    }

    /// Forgets a rule, to be replaced by a stricter one.
    pub(crate) fn forget_open(&mut self, name: &str) {
        let alternatives = self.0.get_mut(name).expect("a rule");
        let is_open = |of: &Type| matches!(of, Type::Map(members) if members.iter().any(|member| matches!(member, Member::Anything)));
        alternatives.retain(|of| !is_open(of));
    }

    /// Checks a value against a rule.
    pub(crate) fn check(&self, name: &str, value: &Value) -> Check {
        let built_in = match name {
            "text" => Some(value.is_string()),
            "bool" => Some(value.is_boolean()),
            "float32" | "float64" => Some(value.is_number()),
            "uint" => Some(unsigned(value).is_some()),
            "any" => Some(true),
            _ => None,
        };
        match built_in {
            Some(true) => return Ok(()),
            Some(false) => return Err(format!("{value} is no {name}")),
            None => {}
        }
        // A socket without alternatives takes nothing.
        let Some(alternatives) = self.0.get(name) else {
            assert!(name.starts_with('$'), "no rule {name}");
            return Err(format!("nothing is a {name}"));
        };
        self.any(alternatives, value)
            .map_err(|error| format!("{name}: {error}"))
    }

    fn any(&self, alternatives: &[Type], value: &Value) -> Check {
        let mut errors = Vec::new();
        for of in alternatives {
            match self.check_type(of, value) {
                Ok(()) => return Ok(()),
                Err(error) => errors.push(error),
            }
        }
        // Alternatives that differ in a literal say nothing when they have another one.
        errors.sort_by_key(|error| error.contains(" is not \""));
        Err(errors.into_iter().next().unwrap_or_default())
    }

    fn check_type(&self, of: &Type, value: &Value) -> Check {
        match of {
            Type::Literal(text) if value == text => Ok(()),
            Type::Literal(text) => Err(format!("{value} is not {text:?}")),
            Type::Name(name) => self.check(name, value),
            Type::Choice(types) => self.any(types, value),
            Type::Sized(of, bytes) => {
                self.check_type(of, value)?;
                let fits = match unsigned(value) {
                    Some(number) => *bytes >= 8 || number < 1 << (8 * bytes),
                    None => value
                        .as_str()
                        .is_some_and(|text| text.len() == *bytes as usize),
                };
                fits.then_some(())
                    .ok_or_else(|| format!("{value} has not the size {bytes}"))
            }
            Type::Matching(pattern) => {
                let text = value
                    .as_str()
                    .ok_or_else(|| format!("{value} is no text"))?;
                matches(pattern, text)
                    .then_some(())
                    .ok_or_else(|| format!("{text:?} does not match {pattern:?}"))
            }
            Type::List(occurrence, of) => {
                let list = value
                    .as_array()
                    .ok_or_else(|| format!("{value} is no list"))?;
                if list.len() < occurrence.least || list.len() > occurrence.most {
                    return Err(format!("{} elements", list.len()));
                }
                list.iter().try_for_each(|value| self.check_type(of, value))
            }
            Type::Map(members) => {
                let map = value
                    .as_object()
                    .ok_or_else(|| format!("{value} is no map"))?;
                self.check_map(members, map)
            }
        }
    }

    fn check_map(&self, members: &[Member], map: &Map<String, Value>) -> Check {
        let members = self.flat(members);
        let is_open = members
            .iter()
            .any(|member| matches!(member, Member::Anything));
        let mut known = Vec::new();
        for member in &members {
            let Member::Field { key, required, of } = member else {
                continue;
            };
            known.push(key);
            match map.get(key) {
                Some(value) => self
                    .check_type(of, value)
                    .map_err(|error| format!("{key}: {error}"))?,
                None if *required => return Err(format!("{key} is missing")),
                None => {}
            }
        }
        let unknown = map.keys().find(|key| !known.contains(key));
        match unknown.filter(|_| !is_open) {
            Some(key) => Err(format!("the field {key} is not known")),
            None => Ok(()),
        }
    }

    /// Returns the members with those of `~Name` in their place.
    fn flat(&self, members: &[Member]) -> Vec<Member> {
        let mut flat = Vec::new();
        for member in members {
            match member {
                Member::Fields(name) => match &self.0[name][..] {
                    [Type::Map(inner)] => flat.extend(self.flat(inner)),
                    other => panic!("{name} is no map: {other:?}"),
                },
                member => flat.push(member.clone()),
            }
        }
        flat
    }
}

/// Returns an unsigned integer. Those that JavaScript would round may be texts.
fn unsigned(value: &Value) -> Option<u64> {
    let large = || {
        value
            .as_str()?
            .parse()
            .ok()
            .filter(|number| *number >= 1 << 53)
    };
    value.as_u64().or_else(large)
}

/// The patterns of the drafts.
fn matches(pattern: &str, text: &str) -> bool {
    let hex = |text: &str| {
        let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        text.bytes().all(digit)
    };
    match pattern {
        "([0-9a-f]{2})*" => text.len() % 2 == 0 && hex(text),
        "crypto_error_0x1[0-9a-f][0-9a-f]" => text
            .strip_prefix("crypto_error_0x1")
            .is_some_and(|rest| rest.len() == 2 && hex(rest)),
        other => panic!("pattern {other:?}"),
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Sign(&'static str),
}

const SIGNS: [&str; 15] = [
    "/=", "=>", "=", "/", "{", "}", "[", "]", ":", "?", "*", "+", "~", ",", "//=",
];

fn tokens(file: &str) -> Vec<Token> {
    let mut found = Vec::new();
    for line in file.lines() {
        let mut rest = line.trim_start();
        while !rest.is_empty() && !rest.starts_with(';') {
            let word = |letter: char| letter.is_alphanumeric() || "_$-.".contains(letter);
            let length = rest.find(|letter| !word(letter)).unwrap_or(rest.len());
            let used = if let Some(text) = rest.strip_prefix('"') {
                let length = text.find('"').expect("the end of a text");
                found.push(Token::Text(text[..length].to_owned()));
                length + 2
            } else if length > 0 {
                found.push(Token::Word(rest[..length].to_owned()));
                length
            } else {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let sign = sign.unwrap_or_else(|| panic!("{line}"));
                found.push(Token::Sign(sign));
                sign.len()
            };
            rest = rest[used..].trim_start();
        }
    }
    found
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Token {
        self.at += 1;
        self.tokens[self.at - 1].clone()
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    fn word(&mut self) -> String {
        match self.next() {
            Token::Word(word) => word,
            other => panic!("{other:?} is no word"),
        }
    }

    fn rule(&mut self) -> (String, Type) {
        let name = self.word();
        assert!(self.takes("=") || self.takes("/="), "after {name}");
        (name, self.choice())
    }

    fn choice(&mut self) -> Type {
        let mut types = vec![self.single()];
        while self.takes("/") {
            types.push(self.single());
        }
        match types.len() {
            1 => types.remove(0),
            _ => Type::Choice(types),
        }
    }

    fn single(&mut self) -> Type {
        let mut of = if self.takes("{") {
            Type::Map(self.members())
        } else if self.takes("[") {
            let occurrence = self.occurrence();
            let of = self.choice();
            assert!(self.takes("]"));
            Type::List(occurrence, Box::new(of))
        } else {
            match self.next() {
                Token::Text(text) => Type::Literal(text),
                Token::Word(word) => Type::Name(word),
                Token::Sign(sign) => panic!("{sign} begins no type"),
            }
        };
        while let Some(Token::Word(word)) = self.peek() {
            match word.as_str() {
                ".size" => {
                    self.at += 1;
                    let bytes = self.word().parse().expect("a number");
                    of = Type::Sized(Box::new(of), bytes);
                }
                ".regexp" => {
                    self.at += 1;
                    let Token::Text(pattern) = self.next() else {
                        panic!("no pattern");
                    };
                    of = Type::Matching(pattern);
                }
                ".default" => self.at += 2,
                _ => break,
            }
        }
        of
    }

    fn occurrence(&mut self) -> Occurrence {
        let many = usize::MAX;
        if self.takes("+") {
            return Occurrence {
                least: 1,
                most: many,
            };
        }
        if self.takes("*") {
            return Occurrence {
                least: 0,
                most: many,
            };
        }
        // `1*2`
        let least = self.word().parse().expect("a number");
        assert!(self.takes("*"));
        let most = self.word().parse().expect("a number");
        Occurrence { least, most }
    }

    fn members(&mut self) -> Vec<Member> {
        let mut members = Vec::new();
        while !self.takes("}") {
            if self.takes(",") {
                continue;
            }
            if self.takes("~") {
                members.push(Member::Fields(self.word()));
            } else if self.takes("*") {
                // `text => any`, or a socket for fields of extensions, of which we have none.
                if self.word() == "text" {
                    assert!(self.takes("=>"));
                    assert_eq!(self.word(), "any");
                    members.push(Member::Anything);
                }
            } else {
                let required = !self.takes("?");
                let key = self.word();
                assert!(self.takes(":"), "after {key}");
                let of = self.choice();
                members.push(Member::Field { key, required, of });
            }
        }
        members
    }
}
