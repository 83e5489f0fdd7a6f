//! Several durations in words, for serde.

use std::time::Duration;

use serde::{Deserialize as _, Deserializer};

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Duration>, D::Error> {
    let words = Vec::<String>::deserialize(from)?;
    let parsed = words.iter().map(|word| humantime::parse_duration(word));
    parsed
        .collect::<Result<_, _>>()
        .map_err(serde::de::Error::custom)
}
