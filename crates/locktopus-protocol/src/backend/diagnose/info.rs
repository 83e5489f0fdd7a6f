//! What `INFO` says: version, eviction, role, replicas.

use locktopus_core::{BackendError, Diagnosis, Primary, Severity};

use super::ask::{Answers, finding};
use super::token_keys::Room;
use super::version::{self, ServerVersion};
use crate::client::{ClientError, Reply};
use crate::execution::executor::Executor;

/// The check that fails for a server that does not answer.
pub(super) const UNREACHABLE: &str = "reach";

/// What later checks want to know of it.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How full the servers are.
    pub(super) rooms: Vec<(String, Room)>,
    /// Servers that forget keys when they are full.
    pub(super) evicting: Vec<String>,
    /// Whether any of them answered, so that this user may ask more than locks need.
    pub(super) informed: bool,
}

pub(super) fn check(
    executor: &Executor,
    answers: Answers,
    quarantine: bool,
    out: &mut Diagnosis,
) -> Result<Seen, BackendError> {
    let mut seen = Seen::default();
    let away = |reply: &Result<Reply, ClientError>| {
        matches!(
            reply,
            Err(ClientError::NotSent(_) | ClientError::MaybeExecuted(_))
        )
    };
    let nobody = answers.iter().all(|(_, reply)| away(reply));
    for (node, reply) in answers {
        let text = match reply {
            Ok(Reply::Bytes(text)) => String::from_utf8_lossy(&text).into_owned(),
            Ok(_) => String::new(),
            Err(ClientError::Rejected { code, .. }) if code == "NOPERM" => {
                out.nodes.push(node.clone());
                out.primaries.push(Primary::answering(&node, None));
                let message = format!(
                    "{node}: INFO is not permitted, so eviction policy and version could not be checked; \
                     grant +info to this user or check them by hand"
                );
                out.findings
                    .push(finding(Severity::Note, "permission", message));
                continue;
            }
            Err(error) if nobody => return Err(executor.read_error(error)),
            Err(error) => {
                out.nodes.push(node.clone());
                out.primaries.push(Primary::silent(&node));
                let message = format!(
                    "{node}: does not answer, so nothing of it could be checked; locks in its slots fail until it is back or \
                     another server serves them, all others work ({error})"
                );
                out.findings
                    .push(finding(Severity::Warning, UNREACHABLE, message));
                continue;
            }
        };
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(str::trim)
        };
        seen.informed = true;
        let run_id = field("run_id").map(str::to_owned);
        out.primaries.push(Primary::answering(&node, run_id));
        let room = Room::from_info(&text, field);
        seen.rooms.extend(room.map(|room| (node.clone(), room)));
        let version = ServerVersion::from_info(field);
        out.nodes.push(
            version
                .as_ref()
                .map_or_else(|| node.clone(), |version| format!("{node} {version}")),
        );
        if let Some(version) = &version {
            out.findings.extend(version::findings(&node, version));
        }
        if let Some(policy) = field("maxmemory_policy").filter(|policy| *policy != "noeviction") {
            let limited = field("maxmemory").is_some_and(|limit| limit != "0");
            let severity = if limited {
                Severity::Danger
            } else {
                Severity::Warning
            };
            let message = format!(
                "{node}: maxmemory-policy is {policy}: a full server drops locks that are held; set it to noeviction"
            );
            out.findings.push(finding(severity, "eviction", message));
            seen.evicting.push(node.clone());
        }
        if field("role") == Some("slave") {
            let message =
                format!("{node}: the server is a replica; locks must be taken on a primary");
            out.findings
                .push(finding(Severity::Danger, "role", message));
        }
        let has_replicas = field("connected_slaves").is_some_and(|count| count != "0");
        if quarantine && has_replicas && field("min_slaves_good_slaves").is_none() {
            let message = format!(
                "{node}: min-replicas-to-write is not set, so a primary that is cut off goes on granting while another one \
                 grants after its quarantine; set it to 1 or more"
            );
            out.findings
                .push(finding(Severity::Warning, "split brain", message));
        }
        if has_replicas {
            let message = format!(
                "{node}: replication is asynchronous, so a failover can lose a lock that was granted; protect \
                 what matters with fencing tokens"
            );
            out.findings
                .push(finding(Severity::Note, "replication", message));
        }
    }
    Ok(seen)
}
