//! The part of a backend URL between `//` and the first `/` or `?`: login and addresses.

use std::net::Ipv6Addr;

use super::shown::{UrlFault, decode};

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) hosts: Vec<(String, u16)>,
}

impl Authority {
    pub(super) fn parse(text: &str, default_port: u16) -> Result<Self, UrlFault> {
        let ((username, password), hosts) = login(text)?;
        let hosts = addresses(hosts, default_port)?;
        Ok(Self {
            username,
            password,
            hosts,
        })
    }

    /// `text` is the part before the path: nothing, or a login with `@`.
    pub(super) fn of_socket(text: &str, path: String) -> Result<Self, UrlFault> {
        let ((username, password), host) = login(text)?;
        if !host.is_empty() {
            let problem = "stands where a unix socket has none; write redis+unix:///PATH";
            return Err(UrlFault::new("a host", problem));
        }
        Ok(Self {
            username,
            password,
            hosts: vec![(path, 0)],
        })
    }
}

type Login = (Option<String>, Option<String>);

/// The login before the last `@`, and the rest.
fn login(text: &str) -> Result<(Login, &str), UrlFault> {
    // The last `@`, because a password may contain one.
    let Some((login, hosts)) = text.rsplit_once('@') else {
        return Ok(((None, None), text));
    };
    let (user, password) = login
        .split_once(':')
        .map_or((login, None), |(user, password)| (user, Some(password)));
    let user = decode(user, "user name")?;
    let password = password
        .map(|password| decode(password, "password"))
        .transpose()?;
    let username = (!user.is_empty()).then_some(user);
    if username.is_some() && password.is_none() {
        return Err(UrlFault::new(
            "the user name",
            "has no password; write USER:PASSWORD@HOST, or leave it out",
        ));
    }
    Ok(((username, password), hosts))
}

/// `HOST:PORT,HOST:PORT`.
pub(crate) fn addresses(text: &str, default_port: u16) -> Result<Vec<(String, u16)>, UrlFault> {
    let of = text.split(',').count();
    let address = |(at, address)| {
        host_port(address, default_port).map_err(|problem| match of {
            1 => UrlFault::new("the address", problem),
            _ => UrlFault::new(format!("address {} of {of}", at + 1), problem),
        })
    };
    text.split(',').enumerate().map(address).collect()
}

/// An address, or what is wrong with it.
fn host_port(text: &str, default_port: u16) -> Result<(String, u16), &'static str> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or("lacks the closing bracket")?;
            host.parse::<Ipv6Addr>()
                .map_err(|_| "is not an IPv6 address in brackets")?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err("has something other than :PORT behind the bracket"),
            }
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err("needs brackets around an IPv6 address");
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err("has no host");
    }
    if !host
        .chars()
        .all(|c| c.is_alphanumeric() || "-._:".contains(c))
    {
        return Err(
            "has a character in it that no host name has; options are written behind ? and joined by &, and a password \
             is written redis://USER:PASSWORD@HOST",
        );
    }
    let port = match port {
        None => default_port,
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err("has a port that is not a number from 1 to 65535"),
        },
    };
    Ok((host.to_owned(), port))
}
