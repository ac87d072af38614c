//! Profile names in an application's configuration files.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Profile;

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(Name)
    }
}

/// Reads the name of a profile.
struct Name;

impl de::Visitor<'_> for Name {
    type Value = Profile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a profile")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Profile, E> {
        name.parse().map_err(E::custom)
    }
}
