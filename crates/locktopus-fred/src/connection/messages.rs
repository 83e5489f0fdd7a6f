//! Subscribes on one connection, and forwards its messages.
//!
//! fred answers SUBSCRIBE before writing it, and discards the server's confirmation. So a PING
//! follows it on the same connection, and the answer to that confirms. SSUBSCRIBE is sent raw, one
//! channel per command, so each has exactly one answer: a confirmation or an error.
//!
//! Many subscriptions are in flight at once. One after another, a server 150 ms away would confirm
//! six a second. Answers arrive in the order of the commands, and each is matched to its own.

use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use fred::interfaces::{ClientLike, EventInterface, PubsubInterface};
use fred::types::{Message, Value};
use futures_util::future::join_all;
use locktopus_protocol::{Channel, ChannelFlavour, ClientError, PushEvent, Reply};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc::UnboundedSender;

use crate::connection::conn::Conn;
use crate::connection::error;
use crate::connection::request::Request;

static NONCE: AtomicU64 = AtomicU64::new(0);

/// Subscribes, confirmed by the server. One result for each channel.
pub(crate) async fn subscribe(conn: &Conn, channels: &[Channel]) -> Vec<Result<(), ClientError>> {
    let plain = names(channels, ChannelFlavour::Plain);
    if !plain.is_empty()
        && let Err(error) = subscribe_plain(conn, &plain).await
    {
        return vec![Err(error); channels.len()];
    }
    let each = channels.iter().map(|channel| async move {
        match channel.flavour {
            ChannelFlavour::Plain => Ok(()),
            ChannelFlavour::Sharded => subscribe_sharded(conn, &channel.name).await,
        }
    });
    join_all(each).await
}

fn names(channels: &[Channel], flavour: ChannelFlavour) -> Vec<Bytes> {
    let wanted = channels.iter().filter(|channel| channel.flavour == flavour);
    wanted.map(|channel| channel.name.clone()).collect()
}

/// SUBSCRIBE, confirmed by the server.
pub(crate) async fn subscribe_plain(conn: &Conn, channels: &[Bytes]) -> Result<(), ClientError> {
    let names = channels.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let nonce = NONCE.fetch_add(1, Ordering::Relaxed).to_string();
    // Boxed, because fred's futures for these take tens of kilobytes.
    let call = Box::pin(subscribe_and_ping(conn, names, &nonce));
    match conn.while_alive(call).await? {
        Ok(echo) if echo.as_str().is_some_and(|echo| echo == nonce) => {
            conn.subscribed.store(true, Ordering::SeqCst);
            Ok(())
        }
        Ok(_) => Err(out_of_step(conn)),
        Err(failure) if is_denial(failure.details()) => {
            // This refused SUBSCRIBE. From here on fred pairs answers with the wrong commands.
            conn.give_up(failure.details());
            Err(ClientError::rejected(failure.details()))
        }
        Err(failure) => Err(error::maybe_executed(&failure)),
    }
}

/// Sends both in one pipeline. fred discards a refusal if no command is waiting for an answer, so
/// the PING must be queued before the server can refuse SUBSCRIBE.
async fn subscribe_and_ping(
    conn: &Conn,
    names: Vec<String>,
    nonce: &str,
) -> Result<Value, fred::error::Error> {
    let pipeline = conn.client().pipeline();
    pipeline.subscribe(names).await?;
    let Request { name, args } =
        Request::of("PING", vec![Bytes::copy_from_slice(nonce.as_bytes())]);
    let _queued: Value = pipeline.custom(name, args).await?;
    pipeline.last().await
}

/// Whether this is a server's refusal. Those begin with a word in capitals (`ERR`, `NOPERM`);
/// fred's own errors do not.
fn is_denial(line: &str) -> bool {
    let code = line.split(' ').next().unwrap_or_default();
    code.len() > 1 && code.bytes().all(|byte| byte.is_ascii_uppercase())
}

/// SSUBSCRIBE, confirmed by the server.
async fn subscribe_sharded(conn: &Conn, channel: &Bytes) -> Result<(), ClientError> {
    let request = Request::of("SSUBSCRIBE", vec![channel.clone()]);
    match conn.send(request).await? {
        Reply::Array(push) if push.get(1) == Some(&Reply::Bytes(channel.clone())) => {
            conn.subscribed.store(true, Ordering::SeqCst);
            Ok(())
        }
        _ => Err(out_of_step(conn)),
    }
}

/// Unsubscribes without waiting for confirmations, which fred discards.
pub(crate) async fn unsubscribe(conn: &Conn, channels: &[Channel]) -> Result<(), ClientError> {
    let client = conn.client();
    let plain = names(channels, ChannelFlavour::Plain);
    if !plain.is_empty() {
        let names = plain.iter().map(text).collect::<Result<Vec<_>, _>>()?;
        written(conn, Box::pin(client.unsubscribe(names))).await?;
    }
    for channel in names(channels, ChannelFlavour::Sharded) {
        let name = text(&channel)?;
        written(conn, Box::pin(client.sunsubscribe(name))).await?;
    }
    Ok(())
}

/// Waits until fred has accepted a command whose answer it does not wait for.
///
/// Callers box the command, because fred's futures for these take tens of kilobytes.
async fn written(
    conn: &Conn,
    command: impl Future<Output = Result<(), fred::error::Error>>,
) -> Result<(), ClientError> {
    let outcome = conn.while_alive(command).await?;
    outcome.map_err(|failure| error::maybe_executed(&failure))
}

/// Forwards messages until the connection is dropped.
pub(crate) fn forward(conn: &Conn, events: UnboundedSender<PushEvent>) {
    let mut messages = conn.client().message_rx();
    let dead = conn.death();
    tokio::spawn(async move {
        loop {
            let message = tokio::select! {
                biased;
                message = messages.recv() => message,
                () = dead.cancelled() => return,
            };
            let event = match message {
                Ok(message) => event(message),
                Err(RecvError::Lagged(_)) => Some(PushEvent::Disrupted {
                    reason: "messages came faster than they were read",
                }),
                Err(RecvError::Closed) => return,
            };
            if event.is_some_and(|event| events.send(event).is_err()) {
                return;
            }
        }
    });
}

fn event(message: Message) -> Option<PushEvent> {
    let payload = match message.value {
        Value::String(text) => text.into_inner(),
        Value::Bytes(bytes) => bytes,
        other => Bytes::from(other.into_string()?),
    };
    Some(PushEvent::Message {
        channel: message.channel.into_inner(),
        payload,
    })
}

fn text(channel: &Bytes) -> Result<String, ClientError> {
    String::from_utf8(channel.to_vec()).map_err(|_| {
        ClientError::NotSent(format!(
            "channel {:?} is not UTF-8, and fred delivers no messages of such channels",
            channel.escape_ascii().to_string()
        ))
    })
}

fn out_of_step(conn: &Conn) -> ClientError {
    conn.kill();
    ClientError::MaybeExecuted("an answer did not belong to its subscription".to_owned())
}
