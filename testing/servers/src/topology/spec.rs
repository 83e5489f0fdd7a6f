//! The builder for what to start.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::topology::error::TopologyError;
use crate::topology::kind::TopologyKind;
use crate::topology::knobs::Knobs;

/// A container image, `name:tag`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServerImage {
    reference: String,
    colon: usize,
}

impl ServerImage {
    /// The images that `scripts/build-images` makes.
    pub const BUILT_HERE: [&'static str; 4] = [
        "redis:7.0",
        "redis:8.0",
        "valkey/valkey:8.1",
        "valkey/valkey:9.1",
    ];

    /// Name without the tag.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.reference[..self.colon]
    }

    /// Tag without the name.
    #[must_use]
    pub fn tag(&self) -> &str {
        &self.reference[self.colon + 1..]
    }

    /// The server program inside the image.
    #[must_use]
    pub fn server_program(&self) -> &'static str {
        if self.name().contains("valkey") {
            "valkey-server"
        } else {
            "redis-server"
        }
    }
}

impl Default for ServerImage {
    fn default() -> Self {
        Self {
            reference: "redis:8.0".to_owned(),
            colon: 5,
        }
    }
}

impl fmt::Display for ServerImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reference)
    }
}

impl FromStr for ServerImage {
    type Err = TopologyError;

    fn from_str(reference: &str) -> Result<Self, Self::Err> {
        match reference.rfind(':') {
            Some(colon)
                if colon > 0
                    && colon + 1 < reference.len()
                    && !reference[colon..].contains('/') =>
            {
                Ok(Self {
                    reference: reference.to_owned(),
                    colon,
                })
            }
            _ => Err(TopologyError::BadSpec {
                problem: format!("image {reference:?} has no tag: write it as name:tag"),
            }),
        }
    }
}

/// What to start. Build one with [`Spec::new`] and the setters.
#[derive(Debug, Clone)]
pub struct Spec {
    kind: TopologyKind,
    image: ServerImage,
    binary: Option<PathBuf>,
    knobs: Knobs,
    round_trip: Option<Duration>,
    tls: bool,
}

impl Spec {
    /// A topology with the default image, server program and knobs.
    #[must_use]
    pub fn new(kind: TopologyKind) -> Self {
        Self {
            kind,
            image: ServerImage::default(),
            binary: None,
            knobs: Knobs::default(),
            round_trip: None,
            tls: false,
        }
    }

    /// Sets the image that the pod provider runs.
    #[must_use]
    pub fn with_image(mut self, image: ServerImage) -> Self {
        self.image = image;
        self
    }

    /// Sets the program that the plain provider runs; it takes precedence over the environment.
    #[must_use]
    pub fn with_binary(mut self, binary: impl Into<PathBuf>) -> Self {
        self.binary = Some(binary.into());
        self
    }

    /// Sets the server options.
    #[must_use]
    pub fn with_knobs(mut self, knobs: Knobs) -> Self {
        self.knobs = knobs;
        self
    }

    /// Makes the servers distant: an exchange with them takes this much longer, for clients and for
    /// each other. Zero adds the same proxies, whose delay
    /// [`Deployment::set_round_trip`](super::Deployment::set_round_trip) can raise later. Only for
    /// processes.
    #[must_use]
    pub const fn with_round_trip(mut self, round_trip: Duration) -> Self {
        self.round_trip = Some(round_trip);
        self
    }

    /// Encrypts all traffic of clients and servers, on every port except the harness's own, with
    /// certificates made at the start. [`TopologyKind::Tls`] is encrypted without it.
    #[must_use]
    pub const fn with_tls(mut self) -> Self {
        self.tls = true;
        self
    }

    /// The topology.
    #[must_use]
    pub const fn kind(&self) -> TopologyKind {
        self.kind
    }

    /// The image that the pod provider runs.
    #[must_use]
    pub const fn image(&self) -> &ServerImage {
        &self.image
    }

    /// The explicit program of the plain provider.
    #[must_use]
    pub fn binary(&self) -> Option<&Path> {
        self.binary.as_deref()
    }

    /// The server options.
    #[must_use]
    pub const fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// How much longer an exchange takes than on this machine; `None` without proxies.
    #[must_use]
    pub const fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Whether clients and servers speak TLS.
    #[must_use]
    pub const fn tls(&self) -> bool {
        self.tls || matches!(self.kind, TopologyKind::Tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_references_are_split_at_the_tag() {
        let image: ServerImage = "valkey/valkey:8.1".parse().unwrap();
        assert_eq!((image.name(), image.tag()), ("valkey/valkey", "8.1"));
        assert_eq!(image.server_program(), "valkey-server");
        assert_eq!(ServerImage::default(), "redis:8.0".parse().unwrap());
        for bad in ["redis", "redis:", ":8", "host:5000/redis"] {
            assert!(bad.parse::<ServerImage>().is_err(), "{bad}");
        }
    }
}
