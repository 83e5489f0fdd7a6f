//! Random sequences of calls on a real server, against a sequential reference. Every other owner is
//! a client of another library. Leases outlast the sequences, so time does not matter.

use crate::common;
use crate::sequences_common;

use std::sync::Arc;

use common::{CLIENTS, servers, unique, url_for};
use locktopus::DynBackend;
use locktopus_conformance::Flavour;
use locktopus_servers::topology::TopologyKind;
use sequences_common::{Sequence, Subject, hold};
use tokio::runtime::Runtime;

/// All kinds together take some seconds, unoptimised.
const CASES: u32 = 100;

/// Every kind on one server, one after the other.
#[test]
fn standalone() {
    let runtime = Runtime::new().unwrap();
    let place = runtime.block_on(servers(TopologyKind::Standalone));
    let mut clients: Vec<DynBackend> = Vec::new();
    for client in CLIENTS {
        let url = url_for(&place, client);
        clients.push(runtime.block_on(locktopus::connect_backend(&url)).unwrap());
    }
    for flavour in Flavour::ALL {
        hold(flavour, false, CASES, |sequence: Sequence| {
            runtime.block_on(async {
                let clients = clients.iter().map(Arc::clone).collect();
                let name = unique("sequence");
                let subject = Subject::new(clients, &name, &sequence.reference, false).await;
                sequence.play(subject).await
            })
        });
    }
    for client in clients {
        runtime.block_on(client.close());
    }
}
