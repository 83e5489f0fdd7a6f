//! Checks of the `INFO` answer: version, eviction, role, replicas.

use locktopus_contract::{BackendError, Diagnosis, Finding, Primary, Severity};

use super::ask::{Answers, finding};
use super::token_keys::Room;
use super::version::{self, ServerVersion};
use crate::client::{ClientError, Reply};
use crate::execution::executor::Executor;
use crate::wire::reply;

/// The check that fails for a server that does not answer.
pub(super) const UNREACHABLE: &str = "reach";

/// The check of a server that answers but leaves something out.
pub(super) const UNCHECKED: &str = "unchecked";

/// Fields of `INFO`, and the check that needs each.
const ASKED: [(&str, &str); 4] = [
    ("redis_version", "the version"),
    ("maxmemory_policy", "eviction"),
    ("aof_enabled", "persistence"),
    ("role", "the server's role"),
];

/// Facts for later checks.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// How full the servers are.
    pub(super) rooms: Vec<(String, Room)>,
    /// Servers that evict keys when they are full.
    pub(super) evicting: Vec<String>,
    /// Whether any server answered, so this user may ask more than locks need.
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
        match reply {
            Ok(reply) => {
                let text = match reply {
                    Reply::Bytes(text) => String::from_utf8_lossy(&text).into_owned(),
                    _ => String::new(),
                };
                read(&Info { node, text }, quarantine, &mut seen, out);
            }
            // A refusal is an answer.
            Err(error @ ClientError::Rejected { .. }) => {
                out.primaries.push(Primary::answering(&node, None));
                out.findings.push(refused(&node, &error));
                out.nodes.push(node);
            }
            Err(error) if nobody => return Err(executor.read_error(error)),
            Err(error) => {
                out.primaries.push(Primary::silent(&node));
                let message = format!(
                    "{node}: does not answer, so nothing of it could be checked; locks in its slots fail until it is back or \
                     another server serves them, all others work ({error})"
                );
                out.nodes.push(node);
                out.findings
                    .push(finding(Severity::Warning, UNREACHABLE, message));
            }
        }
    }
    Ok(seen)
}

fn refused(node: &str, error: &ClientError) -> Finding {
    let (check, advice) = match error {
        ClientError::Rejected { code, .. } if code == "NOPERM" => {
            ("permission", "grant +info to this user")
        }
        _ => (UNCHECKED, "let INFO through"),
    };
    // Servers echo the arguments of unknown commands.
    let error: String = error.to_string().chars().take(100).collect();
    let message = format!(
        "{node}: INFO is refused ({error}), so version, eviction, persistence and the server's role could not be checked, \
         nor whether other keys are in the database; {advice}, or check them by hand"
    );
    finding(Severity::Note, check, message)
}

/// A server's answer.
struct Info {
    node: String,
    text: String,
}

impl Info {
    fn field(&self, name: &str) -> Option<&str> {
        reply::info(&self.text, name)
    }
}

fn read(info: &Info, quarantine: bool, seen: &mut Seen, out: &mut Diagnosis) {
    let (node, field) = (&info.node, |name: &str| info.field(name));
    seen.informed = true;
    let run_id = field("run_id").map(str::to_owned);
    out.primaries.push(Primary::answering(node, run_id));
    let room = Room::from_info(&info.text, field);
    seen.rooms.extend(room.map(|room| (node.clone(), room)));
    let version = ServerVersion::from_info(field);
    out.nodes.push(
        version
            .as_ref()
            .map_or_else(|| node.clone(), |version| format!("{node} {version}")),
    );
    let mut found = |severity, check, message: String| {
        let message = format!("{node}: {message}");
        out.findings.push(finding(severity, check, message));
    };
    let missing = ASKED.iter().filter(|(name, _)| field(name).is_none());
    let missing: Vec<_> = missing.map(|(_, what)| *what).collect();
    if !missing.is_empty() {
        let message = format!(
            "INFO does not tell everything, so {} could not be checked",
            missing.join(", ")
        );
        found(Severity::Note, UNCHECKED, message);
    }
    if let Some(policy) = field("maxmemory_policy").filter(|policy| *policy != "noeviction") {
        let limited = field("maxmemory").is_some_and(|limit| limit != "0");
        let severity = if limited {
            Severity::Danger
        } else {
            Severity::Warning
        };
        let message = format!(
            "maxmemory-policy is {policy}: a full server drops locks that are held; set it to noeviction"
        );
        found(severity, "eviction", message);
        seen.evicting.push(node.clone());
    }
    if field("role") == Some("slave") {
        let message = "the server is a replica; locks must be taken on a primary";
        found(Severity::Danger, "role", message.to_owned());
    }
    let has_replicas = field("connected_slaves").is_some_and(|count| count != "0");
    if quarantine && has_replicas && field("min_slaves_good_slaves").is_none() {
        let message = "min-replicas-to-write is not set, so a primary that is cut off goes on granting while another one \
                       grants after its quarantine; set it to 1 or more";
        found(Severity::Warning, "split brain", message.to_owned());
    }
    if has_replicas {
        let message = "replication is asynchronous, so a failover can lose a lock that was granted; protect \
                       what matters with fencing tokens";
        found(Severity::Note, "replication", message.to_owned());
    }
    if !quarantine && let Some(message) = forgetful(info) {
        // With replicas, a failover usually precedes a restart.
        let severity = if has_replicas {
            Severity::Note
        } else {
            Severity::Warning
        };
        found(severity, PERSISTENCE, message.to_owned());
    }
    let version = version.iter();
    out.findings
        .extend(version.flat_map(|version| version::findings(node, version)));
}

/// The check of what a restart loses.
pub(crate) const PERSISTENCE: &str = "persistence";

/// Why a restart of this server would lose locks.
fn forgetful(info: &Info) -> Option<&'static str> {
    match (
        info.field("aof_enabled")?,
        info.field("aof_last_write_status"),
    ) {
        ("0", _) => Some(
            "appendonly is off: a restart forgets locks that are held, and grants them again; set it to yes, or use \
             safety=quarantine",
        ),
        (_, Some("err")) => Some(
            "the append-only file could not be written: a restart forgets locks that are held; look at the server's disk",
        ),
        _ => None,
    }
}
