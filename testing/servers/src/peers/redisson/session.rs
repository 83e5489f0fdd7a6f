//! A running Redisson, and its threads.

use std::collections::HashMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::timeout;

use super::error::RedissonError;
use super::jar::Jar;
use super::reply::Reply;

/// How long a JVM may take to start and connect, on a machine with other work.
const START_WITHIN: Duration = Duration::from_secs(180);
/// Default limit of the wait for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(90);
/// Redisson waits for its connections to end.
const END_WITHIN: Duration = Duration::from_secs(60);
/// The name of the session itself, in place of a thread's name.
const SELF: &str = "-";
/// It runs only for seconds, so optimising its code would not pay off.
const SHORT_LIVED: [&str; 2] = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"];
/// Everything else must be escaped in a word of a command.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b':')
    .remove(b'{')
    .remove(b'}');

type Routes = Arc<Mutex<HashMap<String, UnboundedSender<Result<Reply, RedissonError>>>>>;
type Input = Arc<tokio::sync::Mutex<ChildStdin>>;

/// A process with one Redisson client. Killed when dropped.
#[derive(Debug)]
pub struct Redisson {
    process: Child,
    input: Input,
    routes: Routes,
    version: String,
    client_id: String,
    next_thread: AtomicU32,
}

impl Redisson {
    /// Starts a client of the servers that a Locktopus URL names. It supports the options
    /// `renewed_lease` and `namespace`, ignores those that only concern clients in Rust, and
    /// refuses all others.
    ///
    /// # Errors
    ///
    /// [`RedissonError`] if the process does not start or cannot connect.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the process.
    pub async fn start(jar: &Jar, url: &str) -> Result<Self, RedissonError> {
        Self::start_with(jar, url, Stdio::inherit()).await
    }

    /// As [`start`](Self::start), without the client's log: it writes pages for each server that
    /// dies.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    ///
    /// # Cancel safety
    ///
    /// As [`start`](Self::start).
    pub async fn start_silent(jar: &Jar, url: &str) -> Result<Self, RedissonError> {
        Self::start_with(jar, url, Stdio::null()).await
    }

    async fn start_with(jar: &Jar, url: &str, log: Stdio) -> Result<Self, RedissonError> {
        let [java, arguments @ ..] = jar.command_line("interop");
        let mut process = Command::new(java)
            .args(SHORT_LIVED)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .map_err(RedissonError::io("start Java"))?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            return Err(RedissonError::Gone);
        };
        let input = Arc::new(tokio::sync::Mutex::new(input));
        // Not as an argument, which every user of the machine could read.
        write(&input, url).await?;
        let mut output = BufReader::new(output).lines();
        let first = timeout(START_WITHIN, output.next_line()).await;
        let first = first
            .map_err(|_| silent("start", START_WITHIN))?
            .map_err(RedissonError::io("hear Java"))?
            .ok_or(RedissonError::Gone)?;
        let (version, client_id) = first
            .strip_prefix("- ok ")
            .and_then(|hello| hello.split_once(' '))
            .ok_or_else(|| RedissonError::Odd(first.clone()))?;
        let routes = Routes::default();
        tokio::spawn(deliver(output, Arc::clone(&routes)));
        Ok(Self {
            process,
            input,
            routes,
            version: version.to_owned(),
            client_id: client_id.to_owned(),
            next_thread: AtomicU32::new(1),
        })
    }

    /// A new Java thread.
    #[must_use]
    pub fn thread(&self) -> JavaThread {
        let number = self.next_thread.fetch_add(1, Ordering::Relaxed);
        let name = format!("T{number}");
        let (to, replies) = unbounded_channel();
        let mut routes = self.routes.lock().unwrap_or_else(PoisonError::into_inner);
        routes.insert(name.clone(), to);
        JavaThread {
            name,
            input: Arc::clone(&self.input),
            replies,
            asked: String::new(),
        }
    }

    /// The version of Redisson.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Redisson's id of this client, the first part of its owner ids.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The process, while it runs.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.id()
    }

    /// Kills the process as a crash would, and waits until it is gone. Nothing is released.
    ///
    /// # Errors
    ///
    /// [`RedissonError::Io`] if the system refuses.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future still kills the process.
    pub async fn kill(mut self) -> Result<(), RedissonError> {
        let killed = self.process.kill().await;
        killed.map_err(RedissonError::io("kill Java"))
    }

    /// Shuts the client down in good order. Locks that its threads still hold stay held until their
    /// leases end.
    ///
    /// # Errors
    ///
    /// [`RedissonError`] if it does not end, or had ended before.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future kills the process.
    pub async fn exit(mut self) -> Result<(), RedissonError> {
        write(&self.input, "- exit").await?;
        let ended = timeout(END_WITHIN, self.process.wait()).await;
        let status = ended
            .map_err(|_| silent("exit", END_WITHIN))?
            .map_err(RedissonError::io("wait for Java"))?;
        if status.success() {
            Ok(())
        } else {
            Err(RedissonError::Odd(format!("{status} at its end")))
        }
    }
}

/// One Java thread, which executes its commands in order. Redisson identifies owners by their
/// thread.
#[derive(Debug)]
pub struct JavaThread {
    name: String,
    input: Input,
    replies: UnboundedReceiver<Result<Reply, RedissonError>>,
    asked: String,
}

impl JavaThread {
    /// Its name, for commands about it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a command, such as `["lock", "try", name, "0", "30000"]`, without waiting for the
    /// answer. `Commands.java` lists all commands.
    ///
    /// # Errors
    ///
    /// [`RedissonError`] if the process is gone.
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: part of a line may have been written.
    pub async fn tell(&mut self, command: &[&str]) -> Result<(), RedissonError> {
        self.asked = command.join(" ");
        let words = command
            .iter()
            .map(|word| utf8_percent_encode(word, ESCAPED).to_string());
        let line: Vec<String> = std::iter::once(self.name.clone()).chain(words).collect();
        write(&self.input, &line.join(" ")).await
    }

    /// The answer to the oldest unanswered command.
    ///
    /// # Errors
    ///
    /// [`RedissonError::Silent`] after 90 seconds; [`RedissonError::Gone`] if the process is gone.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe: no answer is lost.
    pub async fn reply(&mut self) -> Result<Reply, RedissonError> {
        match timeout(ANSWER_WITHIN, self.replies.recv()).await {
            Ok(Some(reply)) => reply,
            Ok(None) => Err(RedissonError::Gone),
            Err(_) => Err(silent(&self.asked, ANSWER_WITHIN)),
        }
    }

    /// Sends a command and waits for the answer.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell) and [`reply`](Self::reply).
    ///
    /// # Cancel safety
    ///
    /// Not cancel safe: the next command would get this answer.
    pub async fn ask(&mut self, command: &[&str]) -> Result<Reply, RedissonError> {
        self.tell(command).await?;
        self.reply().await
    }

    /// Interrupts the present command, like `Thread.interrupt`.
    ///
    /// # Errors
    ///
    /// As [`tell`](Self::tell).
    ///
    /// # Cancel safety
    ///
    /// As [`tell`](Self::tell).
    pub async fn interrupt(&self) -> Result<(), RedissonError> {
        write(&self.input, &format!("- interrupt {}", self.name)).await
    }
}

/// Passes every answer to its thread. When this ends, the threads know that the process has ended.
async fn deliver(mut output: Lines<BufReader<ChildStdout>>, routes: Routes) {
    while let Ok(Some(line)) = output.next_line().await {
        let (thread, text) = line.split_once(' ').unwrap_or((&line, ""));
        if thread == SELF {
            continue;
        }
        let routes = routes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(to) = routes.get(thread) {
            // The thread may have been dropped; then its answers are not needed.
            let _ = to.send(Reply::parse(text));
        }
    }
    routes
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clear();
}

async fn write(input: &Input, line: &str) -> Result<(), RedissonError> {
    let mut input = input.lock().await;
    let line = format!("{line}\n");
    let written = async {
        input.write_all(line.as_bytes()).await?;
        input.flush().await
    };
    written.await.map_err(|error| match error.kind() {
        std::io::ErrorKind::BrokenPipe => RedissonError::Gone,
        _ => RedissonError::io("talk to Java")(error),
    })
}

fn silent(what: &str, within: Duration) -> RedissonError {
    RedissonError::Silent {
        what: what.to_owned(),
        within,
    }
}
