//! Leaders and periodic jobs of several processes that are killed, stopped and cut off.
//!
//! Each instance is its own process behind its own door. The process is this test program again,
//! which then runs only `worker`.

use crate::common;
#[path = "instances/fleet.rs"]
mod fleet;
#[path = "instances/worker.rs"]
mod work;

use std::time::Duration;

use common::{CLIENTS, LONG, close, eventually, locks, servers, unique};
use fleet::{Fault, Fleet, Line};
use locktopus::LeaderElection;
use locktopus_servers::topology::TopologyKind;

const LEASE: Duration = Duration::from_millis(1_500);

#[test]
#[ignore = "the process of an instance; started by the other tests"]
fn worker() {
    work::work();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_leader_at_a_time_whatever_happens_to_it() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let (name, locks) = (unique("leader"), locks(&place, client).await);
        let mut fleet = Fleet::new(&place, client, "leader", &name);
        fleet.start().await;
        let mut line = fleet.next("lead", |_| true).await;
        for fault in [Fault::Kill, Fault::Stop, Fault::CutOff] {
            let (leader, token) = (line.worker, line.token);
            if fleet.running() < 2 {
                fleet.start().await;
            }
            eventually("a candidate", LONG, async || {
                let seen = LeaderElection::new(&locks, &name).observe().await;
                match seen {
                    Ok(Some(incumbent)) if incumbent.candidates == 1 => Ok(()),
                    other => Err(other),
                }
            })
            .await;
            fleet.break_down(leader, fault);
            line = fleet.next("lead", |line| line.worker != leader).await;
            assert!(line.token > token, "{line:?} after {token}");
            fleet.mend(leader, fault);
            if fault != Fault::Kill {
                fleet.heard("ended", |line| line.token == token).await;
            }
            println!("{client} {fault:?}: the next leader, {line:?}");
        }
        fleet.one_at_a_time();
        drop(fleet);
        close(locks).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_run_of_a_job_is_begun_once_whatever_happens_to_it() {
    let place = servers(TopologyKind::Standalone).await;
    for client in CLIENTS {
        let mut fleet = Fleet::new(&place, client, "job", &unique("job"));
        for fault in [Fault::Kill, Fault::Stop, Fault::CutOff] {
            while fleet.running() < 3 {
                fleet.start().await;
            }
            let Line { worker, run, .. } = fleet.next("run", |_| true).await;
            fleet.break_down(worker, fault);
            let next = fleet
                .next("run", |line| line.worker != worker && line.run > run)
                .await;
            fleet.mend(worker, fault);
            println!("{client} {fault:?}: the next run, {next:?}");
        }
        for _ in 0..3 {
            fleet.next("run", |_| true).await;
        }
        let runs = fleet.one_at_a_time();
        assert!(
            runs.is_sorted_by(|a, b| a.run < b.run),
            "a run was begun twice, or too late: {runs:?}"
        );
    }
}
