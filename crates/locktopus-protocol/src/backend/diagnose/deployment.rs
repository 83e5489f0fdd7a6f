//! Whether the servers are what the URL says.

use locktopus_contract::{Diagnosis, Severity};

use super::ask::{Answers, finding};
use crate::client::{Deployment, Reply};
use crate::execution::executor::Executor;

/// The check that fails if a server is something else.
pub(super) const DEPLOYMENT: &str = "deployment";

/// Reads the answers to `HELLO`, which every user may send.
pub(super) fn check(executor: &Executor, answers: Answers, out: &mut Diagnosis) {
    if executor.client().deployment() != Deployment::Standalone {
        return;
    }
    for (node, answer) in answers {
        let mode = answer.as_ref().ok().and_then(|hello| hello.field("mode"));
        let message = match mode.and_then(Reply::text) {
            Some("cluster") => format!(
                "{node}: the server is a node of a cluster, which redis:// does not follow: it refuses every lock of another \
                 node's slots, and all of them after a failover; write redis-cluster:// in place of redis://"
            ),
            Some("sentinel") => format!(
                "{node}: the server is a sentinel, which keeps no locks; write redis-sentinel://HOST,HOST/MASTER"
            ),
            _ => continue,
        };
        let found = finding(Severity::Danger, DEPLOYMENT, message);
        out.findings.push(found);
    }
}
