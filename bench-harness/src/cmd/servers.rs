//! Gets the servers of a run.

use std::time::Duration;

use locktopus_servers::topology::{ProviderKind, ServerImage, Spec, TopologyError};

use super::CommandError;
use crate::measure::model::{Report, Topology};
use crate::measure::run::{Place, PlaceError, ProviderChoice};

/// The options of the command line that choose servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Servers<'a> {
    pub(super) provider: ProviderChoice,
    pub(super) image: Option<&'a str>,
    pub(super) url: Option<&'a str>,
}

impl Servers<'_> {
    /// The place for a topology; `None` if it is not available here, which the report then says.
    pub(super) async fn open(
        &self,
        (topology, far): (Topology, bool),
        provider: &mut ProviderChoice,
        report: &mut Report,
    ) -> Result<Option<Place>, CommandError> {
        if topology == Topology::InProcess {
            return Ok(Some(Place::memory()));
        }
        if far && (self.url.is_some() || *provider == ProviderChoice::Pod) {
            report.skip(
                format!("{}, far away", topology.name()),
                "servers that are processes of this run",
            );
            return Ok(None);
        }
        if let Some(url) = self.url {
            let there = if url.contains("-cluster:") {
                Topology::Cluster
            } else if url.contains("-sentinel:") {
                Topology::Sentinel
            } else {
                Topology::Standalone
            };
            return Ok((there == topology).then(|| Place::external(url.to_owned(), topology, None)));
        }
        let Some(kind) = crate::measure::run::kind(topology) else {
            return Ok(None);
        };
        let mut spec = Spec::new(kind);
        if far {
            spec = spec.with_round_trip(Duration::ZERO);
        }
        if let Some(image) = self.image {
            let image: ServerImage = image
                .parse()
                .map_err(|error: TopologyError| CommandError::Usage(error.to_string()))?;
            spec = spec.with_image(image);
        }
        let candidates: &[ProviderKind] = match provider {
            ProviderChoice::Auto if far => &[ProviderKind::Plain],
            ProviderChoice::Auto => &[ProviderKind::Plain, ProviderKind::Pod],
            ProviderChoice::Plain => &[ProviderKind::Plain],
            ProviderChoice::Pod => &[ProviderKind::Pod],
            ProviderChoice::Memory => &[],
        };
        let mut reasons = Vec::new();
        for &candidate in candidates {
            match Place::start(topology, spec.clone(), candidate).await {
                Ok(place) => {
                    *provider = if candidate == ProviderKind::Plain {
                        ProviderChoice::Plain
                    } else {
                        ProviderChoice::Pod
                    };
                    return Ok(Some(place));
                }
                Err(PlaceError::Start { source, .. }) if self.provider == ProviderChoice::Auto => {
                    let first = source
                        .to_string()
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .to_owned();
                    reasons.push(format!("{candidate}: {first}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        let why = if reasons.is_empty() {
            "memory only was asked for".to_owned()
        } else {
            reasons.join("; ")
        };
        report.skip(
            topology.name(),
            format!("a server program or a container engine ({why})"),
        );
        Ok(None)
    }
}
