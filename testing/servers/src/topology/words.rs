//! The names of kinds and providers on command lines.

use std::str::FromStr;

use crate::topology::error::TopologyError;
use crate::topology::kind::TopologyKind;
use crate::topology::provider::ProviderKind;

impl FromStr for TopologyKind {
    type Err = TopologyError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == word)
            .ok_or_else(|| TopologyError::UnknownWord {
                what: "topology",
                given: word.to_owned(),
                known: "standalone, sentinel, cluster, quorum, tls",
            })
    }
}

impl FromStr for ProviderKind {
    type Err = TopologyError;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "plain" => Ok(Self::Plain),
            "pod" => Ok(Self::Pod),
            _ => Err(TopologyError::UnknownWord {
                what: "provider",
                given: word.to_owned(),
                known: "plain, pod",
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for kind in TopologyKind::ALL {
            assert_eq!(kind.to_string().parse::<TopologyKind>().unwrap(), kind);
            kind.check().unwrap();
        }
        assert!("Cluster ".parse::<TopologyKind>().is_err());
    }
}
