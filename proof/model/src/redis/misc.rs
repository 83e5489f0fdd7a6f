//! Commands about the server: its time, its replication, its channels.

use crate::redis::reply::{Outcome, Refusal, Reply};
use crate::redis::server::{Role, Server};
use crate::redis::value::Bytes;

pub(super) fn time(server: &mut Server, _words: &[Bytes]) -> Outcome {
    let (seconds, micros) = (server.clock / 1_000_000, server.clock % 1_000_000);
    let parts = [seconds, micros].map(|part| Reply::bulk(part.to_string()));
    Ok(Reply::Array(parts.to_vec()))
}

pub(super) fn publish(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(server.publish(&words[1], &words[2], false))
}

pub(super) fn publish_sharded(server: &mut Server, words: &[Bytes]) -> Outcome {
    Ok(server.publish(&words[1], &words[2], true))
}

pub(super) fn pubsub(server: &mut Server, words: &[Bytes]) -> Outcome {
    let sharded = match words[1].to_ascii_uppercase().as_slice() {
        b"NUMSUB" => false,
        b"SHARDNUMSUB" => true,
        _ => {
            let what = format!("PUBSUB {}", String::from_utf8_lossy(&words[1]));
            return Err(Refusal::Unsupported(what));
        }
    };
    let mut counts = Vec::new();
    for channel in &words[2..] {
        let count = server.listeners.get(&(sharded, channel.clone()));
        counts.push(Reply::bulk(channel.clone()));
        counts.push(Reply::count(count.copied().unwrap_or(0)));
    }
    Ok(Reply::Array(counts))
}

pub(super) fn info(server: &mut Server, words: &[Bytes]) -> Outcome {
    let [_, section] = words else {
        return Err(Refusal::Unsupported("INFO without one section".to_owned()));
    };
    if !section.eq_ignore_ascii_case(b"replication") {
        let what = format!("INFO {}", String::from_utf8_lossy(section));
        return Err(Refusal::Unsupported(what));
    }
    let role = match server.role {
        Role::Primary => "master",
        Role::Replica => "slave",
    };
    let replid = &server.replid;
    Ok(Reply::bulk(format!(
        "# Replication\r\nrole:{role}\r\nconnected_slaves:0\r\nmaster_failover_state:no-failover\r\n\
         master_replid:{replid}\r\nmaster_replid2:{}\r\nmaster_repl_offset:0\r\n",
        "0".repeat(40)
    )))
}
