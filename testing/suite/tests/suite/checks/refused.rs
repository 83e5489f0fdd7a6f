//! Servers, proxies and users that do not let a command through.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use locktopus::{Executed, Finding, LockError, Locktopus, Severity};
use locktopus_servers::rights::{self, PARTS};
use locktopus_servers::topology::{Deployment, TopologyKind};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::common::{LONG, chain, close, eventually, plain_url_for, unique, url};

/// Each is refused in turn, whether locks need it or not.
pub(crate) const COMMANDS: [&str; 24] = [
    "info",
    "time",
    "scan",
    "exists",
    "hexists",
    "ping",
    "config",
    "client",
    "pubsub",
    "acl",
    "wait",
    "role",
    "evalsha",
    "eval",
    "subscribe",
    "unsubscribe",
    "publish",
    "command",
    "script",
    "hset",
    "hget",
    "zadd",
    "del",
    "set",
];

/// A server that does not have a command.
pub(crate) struct Without {
    // Ends with this.
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

/// What safety modes ask for besides, and the mode.
pub(crate) const OF_MODES: [(&str, &str); 3] = [
    ("wait", "safety=replicated"),
    ("role", "safety=replicated"),
    ("info", "safety=quarantine&quarantine_max_lease=1s"),
];

/// A server or proxy does not have the command.
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
    // In a namespace of its own: whoever may not release the probe leaves it held. And its name says nothing.
    let user = unique("user");
    let right = format!("-{command}");
    allow(&place, &user, &["~*", "&*", "+@all", &right]).await;
    let url = url_of(&place, client, &user);
    look(&format!("{url}&namespace={user}:&{options}"), command).await
}

async fn allow(place: &Deployment, user: &str, rights: &[&str]) {
    let words = [&["ACL", "SETUSER", user, "reset", "on", ">secret"], rights].concat();
    place.nodes()[0].command(&words).await.unwrap();
}

fn url_of(place: &Deployment, client: &str, user: &str) -> String {
    plain_url_for(place, client).replace("://", &format!("://{user}:secret@"))
}

/// Whatever is refused: it is an answer. If locks work, nothing says that they do not; if not, a danger names the command.
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
            // Locks work, and waiters are not woken.
            if matches!(command, "subscribe" | "publish") {
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

/// The rights that a user lacks, as the findings list them: for locks, and for all else.
async fn listed(place: &Deployment, client: &str, user: &str) -> (Vec<String>, Vec<String>) {
    let url = format!("{}&checks=off&namespace=app:", url_of(place, client, user));
    let locks = locktopus::connect(&url).await.unwrap();
    let findings = locks.diagnose().await.unwrap().findings;
    close(locks).await;
    let lists = |severity| {
        let lists = findings.iter().filter(move |found| {
            found.severity == severity && found.message.starts_with("this user lacks, for ")
        });
        let rights = lists.flat_map(|found| {
            let (_, rights) = found.message.split_once(": ").unwrap();
            rights.split(' ').map(str::to_owned).collect::<Vec<_>>()
        });
        rights.collect::<Vec<_>>()
    };
    (lists(Severity::Danger), lists(Severity::Note))
}

/// With one right, all others are listed; with all but one, that one.
pub(crate) async fn all_that_is_missing_is_listed(
    place: Arc<Deployment>,
    client: &'static str,
) -> String {
    let user = format!("few-{client}");
    let of_locks = PARTS[0].words_on(TopologyKind::Standalone);
    allow(&place, &user, &["+eval"]).await;
    let (locks, others) = listed(&place, client, &user).await;
    let commands = of_locks.iter().filter(|right| right.starts_with('+'));
    for right in commands.filter(|right| *right != "+eval") {
        assert!(locks.contains(right), "{right}: {locks:?}");
    }
    let all = rights::all(TopologyKind::Standalone);
    for right in all.iter().filter(|right| right.starts_with('+')) {
        let is_listed = locks.contains(right) || others.contains(right);
        assert!(is_listed || right == "+eval", "{right}: {others:?}");
    }

    let with = async |rights: &[String]| {
        let rights: Vec<_> = rights.iter().map(String::as_str).collect();
        allow(&place, &user, &rights).await;
        listed(&place, client, &user).await.0
    };
    let mut found_alone = 0;
    for right in &of_locks {
        let mut rest = all.clone();
        rest.retain(|other| other != right);
        let lacks = with(&rest).await;
        // The probe does without a few, and some name the same place in two ways.
        assert!(
            lacks.is_empty() || lacks == [right.clone()],
            "{right}: {lacks:?}"
        );
        found_alone += lacks.len();
    }
    assert!(found_alone > 25, "{found_alone}");
    let elsewhere: Vec<_> = all
        .iter()
        .map(|right| right.replace("app:", "web:"))
        .collect();
    let lacks = with(&elsewhere).await;
    let places = lacks.iter().all(|right| right.starts_with(['~', '&']));
    assert!(places && lacks.len() == 7, "{lacks:?}");
    for right in [&lacks[..], &all[..]].concat() {
        assert!(!right.contains("locktopus:probe"), "{right}");
    }
    format!("{found_alone} found alone; {lacks:?}")
}
