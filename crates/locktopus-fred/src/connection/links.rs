//! The connections to one server.

use std::fmt;
use std::future::{Future as _, poll_fn};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;

use futures_util::future::join;
use locktopus_protocol::sentinels::Target;
use locktopus_protocol::{ClientError, PushEvent, Reply, lock};
use tokio::sync::mpsc::UnboundedSender;

use crate::connection::dial::Dialer;
use crate::connection::link::Link;
use crate::connection::request::Request;

/// The connections to one server, each opened on first use: a node of a cluster may be only a
/// target of redirects.
pub(crate) struct Links {
    pub(crate) target: Target,
    pub(crate) dialer: Arc<Dialer>,
    events: UnboundedSender<PushEvent>,
    commands: OnceLock<Link>,
    blocking: OnceLock<Link>,
    messages: OnceLock<Link>,
    asking: OnceLock<Link>,
    /// Held while `ASKING` and its command are queued.
    turns: Mutex<()>,
}

impl Links {
    pub(crate) fn new(
        target: Target,
        dialer: Arc<Dialer>,
        events: UnboundedSender<PushEvent>,
    ) -> Self {
        Self {
            target,
            dialer,
            events,
            commands: OnceLock::new(),
            blocking: OnceLock::new(),
            messages: OnceLock::new(),
            asking: OnceLock::new(),
            turns: Mutex::default(),
        }
    }

    fn link(&self, events: Option<&UnboundedSender<PushEvent>>) -> Link {
        Link::new(
            Arc::clone(&self.dialer),
            self.target.clone(),
            events.cloned(),
        )
    }

    /// The link for commands.
    pub(crate) fn commands(&self) -> &Link {
        self.commands.get_or_init(|| self.link(None))
    }

    /// The link for commands that may block for almost as long as a command may take.
    pub(crate) fn blocking(&self) -> &Link {
        self.blocking.get_or_init(|| self.link(None))
    }

    /// The link for subscriptions.
    pub(crate) fn messages(&self) -> &Link {
        self.messages.get_or_init(|| self.link(Some(&self.events)))
    }

    /// The link for subscriptions, if it was ever used.
    pub(crate) fn open_messages(&self) -> Option<&Link> {
        self.messages.get()
    }

    /// Sends one command after `ASKING`.
    ///
    /// `ASKING` applies only to the next command on its connection. So these pairs have their own
    /// connection, and nothing may come between the two. Callers do not wait for each other's
    /// answers.
    pub(crate) async fn ask(&self, words: &[&[u8]]) -> Result<Reply, ClientError> {
        let request = Request::new(words)?;
        let conn = self.asking.get_or_init(|| self.link(None)).conn().await?;
        let mut room = conn.room(2).await?;
        let asking = conn.send_in(room.split(1), Request::of("ASKING", Vec::new()));
        let mut pair = Box::pin(join(asking, conn.send_in(Some(room), request)));
        let begun = poll_fn(|context| {
            let _turn = lock(&self.turns);
            // The first poll queues both.
            Poll::Ready(pair.as_mut().poll(context))
        });
        let (asked, answer) = match begun.await {
            Poll::Ready(answers) => answers,
            Poll::Pending => pair.await,
        };
        match asked {
            // The command was refused too: the slot is not on this node yet.
            Err(refusal @ ClientError::Rejected { .. }) => Err(refusal),
            Ok(_) | Err(_) => answer,
        }
    }

    /// Triggers a check of the connections for commands, after a caller timed out.
    pub(crate) fn suspect(&self) {
        self.commands().suspect();
        if let Some(blocking) = self.blocking.get() {
            blocking.suspect();
        }
    }

    pub(crate) fn close(&self) {
        let all = [&self.commands, &self.blocking, &self.messages, &self.asking];
        all.into_iter()
            .filter_map(OnceLock::get)
            .for_each(Link::close);
    }
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links")
            .field("target", &format_args!("{}", self.target))
            .field("commands", &self.commands.get())
            .finish_non_exhaustive()
    }
}
