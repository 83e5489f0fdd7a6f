//! The part of a backend URL between `//` and the first `/` or `?`: login and addresses.

use std::net::Ipv6Addr;

use super::redacted::{Redacted, UrlError, decode};

#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Authority {
    pub(crate) username: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) hosts: Vec<(String, u16)>,
}

impl Authority {
    pub(crate) fn parse(text: &str, default_port: u16, url: &Redacted) -> Result<Self, UrlError> {
        let ((username, password), hosts) = login(text, url)?;
        let hosts = hosts
            .split(',')
            .map(|host| host_port(host, default_port, url))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            username,
            password,
            hosts,
        })
    }

    /// `text` is what stands in front of the path: nothing, or a login with `@`.
    pub(crate) fn of_socket(text: &str, path: String, url: &Redacted) -> Result<Self, UrlError> {
        let ((username, password), host) = login(text, url)?;
        if !host.is_empty() {
            let problem = "stands where a unix socket has none; write redis+unix:///PATH";
            return Err(url.error(format!("host {}", url.quote_address(host)), problem));
        }
        Ok(Self {
            username,
            password,
            hosts: vec![(path, 0)],
        })
    }
}

type Login = (Option<String>, Option<String>);

/// The login in front of the last `@`, and what is behind it.
fn login<'a>(text: &'a str, url: &Redacted) -> Result<(Login, &'a str), UrlError> {
    // The last `@`, because a password may contain one.
    let Some((login, hosts)) = text.rsplit_once('@') else {
        return Ok(((None, None), text));
    };
    let (user, password) = login
        .split_once(':')
        .map_or((login, None), |(user, password)| (user, Some(password)));
    let user = decode(user, "user name", url)?;
    let password = password
        .map(|password| decode(password, "password", url))
        .transpose()?;
    let username = (!user.is_empty()).then_some(user);
    if username.is_some() && password.is_none() {
        return Err(url.error(
            "the user name",
            "has no password; write USER:PASSWORD@HOST, or leave it out",
        ));
    }
    Ok(((username, password), hosts))
}

fn host_port(text: &str, default_port: u16, url: &Redacted) -> Result<(String, u16), UrlError> {
    let bad = |problem: &str| url.error(format!("address {}", url.quote_address(text)), problem);
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest
                .split_once(']')
                .ok_or_else(|| bad("lacks the closing bracket"))?;
            host.parse::<Ipv6Addr>()
                .map_err(|_| bad("is not an IPv6 address in brackets"))?;
            match rest.strip_prefix(':') {
                Some(port) => (host, Some(port)),
                None if rest.is_empty() => (host, None),
                None => return Err(bad("has something other than :PORT behind the bracket")),
            }
        }
        None => match text.split_once(':') {
            Some((_, port)) if port.contains(':') => {
                return Err(bad("needs brackets around an IPv6 address"));
            }
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    if host.is_empty() {
        return Err(bad("has no host"));
    }
    if let Some(odd) = host
        .chars()
        .find(|c| !(c.is_alphanumeric() || "-._:".contains(*c)))
    {
        let odd = url.quote(&odd.to_string());
        return Err(bad(&format!("has {odd} in its host name")));
    }
    let port = match port {
        None => default_port,
        Some(port) => match port.parse() {
            Ok(port) if port != 0 => port,
            _ => return Err(bad("has a port that is not a number from 1 to 65535")),
        },
    };
    Ok((host.to_owned(), port))
}
