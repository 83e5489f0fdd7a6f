//! Leaks on purpose: each makes one check fail.

use locktopus_servers::topology::{Node, TopologyError};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use super::asked::{Asked, Leak};
use super::held;
use super::stream::Places;
use super::tally::Tally;

/// How much memory grows in each [`MOMENT`].
const PIECE: usize = 4 * 1024 * 1024;
const MOMENT: std::time::Duration = std::time::Duration::from_millis(100);

/// What is kept until the last check.
#[derive(Debug, Default)]
pub(super) struct Planted {
    /// Kept open, and otherwise unused.
    connections: Vec<TcpStream>,
    files: Vec<std::fs::File>,
    tasks: Vec<JoinHandle<()>>,
}

/// Leaks that last for the whole run. Their tasks end with [`Planted`].
pub(super) fn from_the_beginning(asked: &Asked, places: &Places, tally: &Tally) -> Planted {
    let mut planted = Planted::default();
    if asked.plants(Leak::Memory) {
        planted.tasks.push(tokio::spawn(async {
            let mut pieces: Vec<Vec<u8>> = Vec::new();
            loop {
                pieces.push(vec![1; PIECE]);
                tokio::time::sleep(MOMENT).await;
            }
        }));
    }
    if asked.plants(Leak::Overlap) {
        places.contended.iter().for_each(|place| {
            place.enter();
        });
    }
    if asked.plants(Leak::Error) {
        tally.wrong("planted".to_owned());
    }
    planted
}

/// Leaks that remain at the end.
pub(super) async fn at_the_end(
    asked: &Asked,
    node: &Node,
    prefix: &str,
    mut planted: Planted,
) -> Result<Planted, TopologyError> {
    for task in planted.tasks.drain(..) {
        task.abort();
        let _ = task.await;
    }
    let name = format!("{prefix}:planted");
    if asked.plants(Leak::Held) {
        node.command(&["DEL", &held::name(prefix, 0)]).await?;
    }
    if asked.plants(Leak::Key) {
        node.command(&["SET", &name, "1"]).await?;
    }
    if asked.plants(Leak::Waiter) {
        let queue = format!("locktopus_queue:{{{name}}}");
        node.command(&["RPUSH", &queue, "nobody"]).await?;
    }
    let failed = |source: std::io::Error| TopologyError::NotReached {
        what: format!("a planted leak: {source}"),
        within: std::time::Duration::ZERO,
        last_seen: String::new(),
    };
    for (leak, command) in [(Leak::Channel, "SUBSCRIBE"), (Leak::Pattern, "PSUBSCRIBE")] {
        if asked.plants(leak) {
            let subscribe = async {
                let mut stream = TcpStream::connect(node.addr()).await?;
                let command = format!("{command} {name}\r\n");
                stream.write_all(command.as_bytes()).await?;
                std::io::Result::Ok(stream)
            };
            let stream = subscribe.await.map_err(failed)?;
            planted.connections.push(stream);
        }
    }
    if asked.plants(Leak::File) {
        let file = std::fs::File::open("/proc/self/status").map_err(failed)?;
        planted.files.push(file);
    }
    if asked.plants(Leak::Task) {
        planted.tasks.push(tokio::spawn(std::future::pending()));
    }
    Ok(planted)
}
