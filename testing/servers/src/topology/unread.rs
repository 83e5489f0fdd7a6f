//! Counts bytes that arrived for a server and that it has not read yet, as the kernel reports.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use crate::topology::error::TopologyError;

/// How many bytes wait in the connection between `server` and `peer`; `None` without such a
/// connection. The process determines the network namespace.
pub(crate) fn unread(
    pid: u32,
    server: SocketAddr,
    peer: SocketAddr,
) -> Result<Option<u64>, TopologyError> {
    let path = PathBuf::from(format!("/proc/{pid}/net/tcp"));
    let table = std::fs::read_to_string(&path).map_err(|source| TopologyError::Io {
        doing: "read",
        path,
        source,
    })?;
    Ok(find(&table, server, peer))
}

fn find(table: &str, server: SocketAddr, peer: SocketAddr) -> Option<u64> {
    let (server, peer) = (in_hex(server)?, in_hex(peer)?);
    table.lines().find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, remote) = (fields.next()?, fields.next()?);
        let queues = fields.nth(1)?;
        let (_, received) = queues.split_once(':')?;
        let waits = u64::from_str_radix(received, 16).ok()?;
        (local == server && remote == peer).then_some(waits)
    })
}

/// An IPv4 address in the kernel's format: its bytes as one number in native byte order.
fn in_hex(addr: SocketAddr) -> Option<String> {
    let IpAddr::V4(ip) = addr.ip() else {
        return None;
    };
    let ip = u32::from_ne_bytes(ip.octets());
    Some(format!("{ip:08X}:{:04X}", addr.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let [server, peer, other]: [SocketAddr; 3] =
            ["127.0.0.1:6379", "127.0.0.1:40000", "127.0.0.1:40001"]
                .map(|addr| addr.parse().unwrap());
        let (server_hex, peer_hex) = (in_hex(server).unwrap(), in_hex(peer).unwrap());
        let table = format!(
            "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n\
             0: {peer_hex} {server_hex} 01 00000000:00000007 00:00000000 00000000\n\
             1: {server_hex} {peer_hex} 01 00000003:000000A1 00:00000000 00000000\n"
        );
        assert_eq!(find(&table, server, peer), Some(0xa1));
        assert_eq!(find(&table, server, other), None);
    }
}
