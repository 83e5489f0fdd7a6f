//! One primary of a cluster, and its connections.

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;

use futures_util::future::join;
use locktopus_protocol::{ClientError, HostPort, PushEvent, Reply};
use tokio::sync::mpsc::UnboundedSender;

use crate::connection::dial::{Dialer, Target};
use crate::connection::link::Link;
use crate::connection::reply;
use crate::connection::request::Request;

/// A primary. Its connections do not depend on those of other nodes.
pub(super) struct Node {
    address: HostPort,
    dialer: Arc<Dialer>,
    commands: OnceLock<Link>,
    events: UnboundedSender<PushEvent>,
    messages: OnceLock<Link>,
    asking: OnceLock<(Mutex<()>, Link)>,
    blocking: OnceLock<Link>,
}

impl Node {
    pub(super) fn new(
        address: HostPort,
        dialer: Arc<Dialer>,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        Self {
            address,
            dialer,
            commands: OnceLock::new(),
            events,
            messages: OnceLock::new(),
            asking: OnceLock::new(),
            blocking: OnceLock::new(),
        }
    }

    pub(super) fn address(&self) -> &HostPort {
        &self.address
    }

    /// The link for commands, opened on first use: a node may be only a target of redirects.
    pub(super) fn commands(&self) -> &Link {
        self.commands.get_or_init(|| {
            let target = Target::Node(self.address.clone());
            Link::for_commands(Arc::clone(&self.dialer), target)
        })
    }

    /// The link for subscriptions, opened on first use.
    pub(super) fn messages(&self) -> &Link {
        self.messages.get_or_init(|| {
            let target = Target::Node(self.address.clone());
            Link::for_messages(Arc::clone(&self.dialer), target, self.events.clone())
        })
    }

    /// The link for subscriptions, if it was ever used.
    pub(super) fn open_messages(&self) -> Option<&Link> {
        self.messages.get()
    }

    /// Sends one command after `ASKING`.
    ///
    /// `ASKING` applies only to the next command on its connection. So these pairs have their own
    /// connection, and nothing may come between the two. Callers do not wait for each other's
    /// answers.
    pub(super) async fn ask(&self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let request = Request::new(words)?;
        let (turns, link) = self.asking.get_or_init(|| {
            let target = Target::Node(self.address.clone());
            (
                Mutex::new(()),
                Link::for_commands(Arc::clone(&self.dialer), target),
            )
        });
        let conn = link.conn().await?;
        let mut room = conn.room(2).await?;
        let asking = conn.send_in(room.split(1), Request::of("ASKING", Vec::new()));
        let mut pair = Box::pin(join(asking, conn.send_in(Some(room), request)));
        let begun = poll_fn(|context| {
            let _turn = turns.lock().unwrap_or_else(PoisonError::into_inner);
            // The first poll queues both.
            Poll::Ready(pair.as_mut().poll(context))
        });
        let (asked, answer) = match begun.await {
            Poll::Ready(answers) => answers,
            Poll::Pending => pair.await,
        };
        let answer = answer.and_then(reply::from_frame);
        match asked.and_then(reply::from_frame) {
            // The command was refused too: the slot is not on this node yet.
            Err(refusal @ ClientError::Rejected { .. }) => Err(refusal),
            Ok(_) | Err(_) => answer,
        }
    }

    /// The link for commands that may block, opened on first use.
    pub(super) fn blocking(&self) -> &Link {
        self.blocking.get_or_init(|| {
            let target = Target::Node(self.address.clone());
            Link::for_blocking(Arc::clone(&self.dialer), target)
        })
    }

    /// Triggers a check of the connection for subscriptions: the node may be a replica.
    pub(super) fn suspect_messages(&self) {
        if let Some(link) = self.messages.get() {
            link.suspect();
        }
    }

    /// Triggers a check of the connections for commands, after a caller timed out.
    pub(super) fn suspect(&self) {
        self.commands().suspect();
        if let Some(blocking) = self.blocking.get() {
            blocking.suspect();
        }
    }

    pub(super) fn close(&self) {
        if let Some(commands) = self.commands.get() {
            commands.close();
        }
        if let Some(blocking) = self.blocking.get() {
            blocking.close();
        }
        if let Some(link) = self.messages.get() {
            link.close();
        }
        if let Some((_, link)) = self.asking.get() {
            link.close();
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node")
            .field("address", &format_args!("{}", self.address))
            .field("commands", &self.commands.get())
            .finish_non_exhaustive()
    }
}
