//! Servers, proxies and users that refuse a command.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use locktopus::{Executed, Finding, LockError, Locktopus, Severity};
use locktopus_servers::rights::{self, PARTS};
use locktopus_servers::topology::{Deployment, Node, TopologyKind};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::common::{At, LONG, chain, eventually, plain_url_for, unique, url};

/// Commands to refuse in turn, whether or not locks need them.
pub(crate) const COMMANDS: &str = "info time scan exists hexists ping config client pubsub \
    acl wait role evalsha eval subscribe unsubscribe publish command script hset hget zadd del set";

/// A server that lacks a command.
pub(crate) struct Without {
    // Killed when dropped.
    _process: Child,
    url: String,
}

impl Without {
    async fn start(command: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let port = address.port().to_string();
        let start = |program: &str| {
            let renamed = ["--rename-command", command, ""];
            let mut server = Command::new(program);
            server.args(["--port", &port, "--bind", "127.0.0.1", "--save", ""]);
            server.args(renamed).current_dir(std::env::temp_dir());
            server.stdout(Stdio::null()).kill_on_drop(true).spawn()
        };
        let process = start("redis-server").or_else(|_| start("valkey-server"));
        eventually("the server", LONG, || TcpStream::connect(address)).await;
        Self {
            _process: process.unwrap(),
            url: url(&format!("redis://{address}"), ""),
        }
    }
}

/// The additional commands of safety modes, and the mode.
pub(crate) const OF_MODES: [(&str, &str); 3] = [
    ("wait", "safety=replicated"),
    ("role", "safety=replicated"),
    ("info", "safety=quarantine&quarantine_max_lease=1s"),
];

/// A server or proxy lacks the command.
pub(crate) async fn absent(
    command: &'static str,
    client: &'static str,
    options: &'static str,
) -> String {
    let server = Without::start(command).await;
    let joint = if server.url.contains('?') { '&' } else { '?' };
    let url = format!("{}{joint}client={client}&{options}", server.url);
    look(&url, command).await
}

/// The user may not send the command.
pub(crate) async fn denied(
    place: Arc<Deployment>,
    command: &'static str,
    client: &'static str,
    options: &'static str,
) -> String {
    // In its own namespace, because a user that may not release the probe leaves it held. Its name
    // gives nothing away.
    let user = unique("user");
    let right = format!("-{command}");
    allow(place.nodes(), &user, &["~*", "&*", "+@all", &right]).await;
    let url = url_of(&place, client, &user);
    look(&format!("{url}&namespace={user}:&{options}"), command).await
}

async fn allow(nodes: &[Node], user: &str, rights: &[&str]) {
    let words = [&["ACL", "SETUSER", user, "reset", "on", ">secret"], rights].concat();
    for node in nodes {
        node.command(&words).await.unwrap();
    }
}

fn url_of(place: &Deployment, client: &str, user: &str) -> String {
    plain_url_for(place, client).replace("://", &format!("://{user}:secret@"))
}

/// A refusal is an answer. If locks work, no finding says otherwise; if they do not, a danger names
/// the command.
async fn look(url: &str, command: &str) -> String {
    let locks = match locktopus::connect(url).await {
        Ok(locks) => locks,
        Err(error) => {
            let said = chain(&error);
            assert!(said.to_lowercase().contains(command), "{command}: {said}");
            return said;
        }
    };
    let findings = locks.diagnose().await.unwrap().findings;
    let tried = take_and_release(&locks).await;
    let _ = locks.shutdown(Duration::ZERO).await;
    let unasked = |found: &&Finding| !matches!(found.check, "version" | "persistence");
    let findings: Vec<_> = findings.iter().filter(unasked).collect();
    for found in &findings {
        assert_ne!(found.check, "reach", "{command}: {found}");
        for silence in ["does not answer", "no answer"] {
            assert!(!found.message.contains(silence), "{command}: {found}");
        }
    }
    let names_it = |found: &&&Finding| found.message.to_lowercase().contains(command);
    let named: Vec<_> = findings.iter().filter(names_it).collect();
    let worst = named.iter().map(|found| found.severity).max();
    let dangers = findings
        .iter()
        .filter(|found| found.severity == Severity::Danger);
    match &tried {
        Ok(()) => {
            assert!(
                dangers.count() == 0 || worst == Some(Severity::Danger),
                "{command}: {findings:?}"
            );
            // This one worked, but its waiters are not woken, or a mutex cannot be released.
            if PARTS[0]
                .words_on(TopologyKind::Standalone)
                .contains(&format!("+{command}"))
            {
                assert_eq!(worst, Some(Severity::Danger), "{command}: {findings:?}");
            }
            if matches!(command, "info" | "scan") && !url.contains("safety") {
                assert_eq!(worst, Some(Severity::Note), "{command}: {findings:?}");
            }
        }
        Err(LockError::Backend { source, .. }) => {
            assert_eq!(worst, Some(Severity::Danger), "{command}: {findings:?}");
            if command.starts_with("eval") {
                assert_eq!(source.executed(), Executed::No, "{source:?}");
            }
        }
        Err(error) => panic!("{command}: {error:?}"),
    }
    format!("{tried:?}; {worst:?} of {}", findings.len())
}

async fn take_and_release(locks: &Locktopus) -> Result<(), LockError> {
    let request = locks
        .lock(unique("refused"))
        .fixed_lease(Duration::from_secs(1));
    match request.try_acquire().await? {
        Some(guard) => guard.release().await,
        None => panic!("nobody else wants it"),
    }
}

/// The missing rights of a user, as the findings list them: for locks, and for all else.
async fn listed(
    place: &Deployment,
    client: &str,
    user: &str,
) -> Result<(Vec<String>, Vec<String>), String> {
    let url = format!("{}&checks=off&namespace=app:", url_of(place, client, user));
    let locks = locktopus::connect(&url).await;
    let locks = locks.map_err(|error| chain(&error))?;
    let findings = locks.diagnose().await.unwrap().findings;
    let _ = locks.shutdown(Duration::ZERO).await;
    let lists = |severity| {
        let lists = findings.iter().filter(move |found| {
            found.severity == severity && found.message.contains("this user lacks, for ")
        });
        let rights = lists.flat_map(|found| {
            let (_, lacks) = found.message.split_once("this user lacks, for ").unwrap();
            let (_, rights) = lacks.split_once(": ").unwrap();
            let rights = rights.split([' ', ';']);
            // The steps that they stop may follow.
            let rights = rights.take_while(|word| word.starts_with(['+', '~', '&']));
            rights.map(str::to_owned)
        });
        let mut rights: Vec<_> = rights.collect();
        rights.dedup();
        rights
    };
    Ok((lists(Severity::Danger), lists(Severity::Note)))
}

/// For a user with a single right, all others are listed. For a user that lacks one, on one server,
/// that one is.
pub(crate) async fn all_that_is_missing_is_listed((place, client): At) -> String {
    let user = format!("few-{client}");
    let of_locks = PARTS[0].words_on(place.kind());
    let listeners = match place.kind() {
        TopologyKind::Cluster { .. } => "+pubsub|shardnumsub",
        _ => "+pubsub|numsub",
    };
    let mut all = rights::all(place.kind());
    let extra = rights::FOR_OTHERS.split(' ').chain([listeners]);
    all.extend(extra.map(str::to_owned));
    let (nodes, last) = (place.nodes(), place.nodes().len() - 1);
    let with = async |rights: &[String], nodes: &[Node]| {
        let rights: Vec<_> = rights.iter().map(String::as_str).collect();
        allow(nodes, &user, &rights).await;
        listed(&place, client, &user).await
    };
    let few = ["+eval", "+cluster|slots"].map(str::to_owned);
    let (locks, others) = with(&few, nodes).await.unwrap();
    for right in all.iter().filter(|right| right.starts_with('+')) {
        let listed = locks.contains(right) || others.contains(right) || few.contains(right);
        assert!(listed, "{right}: {locks:?} {others:?}");
    }

    let mut places = 0;
    for right in &all {
        let mut rest = all.clone();
        rest.retain(|other| other != right);
        with(&all, nodes).await.unwrap();
        let (locks, others) = match with(&rest, &nodes[last..]).await {
            Ok(lists) => lists,
            Err(said) => {
                let command = right[1..].split('|').next().unwrap();
                assert!(said.to_lowercase().contains(command), "{right}: {said}");
                continue;
            }
        };
        let is_needed = of_locks.contains(right);
        let found = [&locks[..], &others].concat() == [right.clone()]
            && locks.len() == usize::from(is_needed);
        // Some rights name the same place in two ways, or are for other kinds of locks.
        let is_place = right.starts_with(['~', '&']);
        let is_nothing = is_place && locks.is_empty() && others.is_empty();
        assert!(found || is_nothing, "{right}: {locks:?} {others:?}");
        places += usize::from(found && is_place);
    }
    assert_eq!(places, 7);
    let elsewhere = all.iter().map(|right| right.replace("app:", "web:"));
    let elsewhere: Vec<_> = elsewhere.collect();
    let (lacks, _) = with(&elsewhere, nodes).await.unwrap();
    let places = lacks.iter().all(|right| right.starts_with(['~', '&']));
    assert!(places && lacks.len() == 7, "{lacks:?}");
    for right in [&lacks[..], &all[..]].concat() {
        assert!(!right.contains("locktopus:probe"), "{right}");
    }
    format!("{} found alone; {lacks:?}", all.len())
}
