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
        // The last `@`, because a password may contain one.
        let (login, hosts) = text
            .rsplit_once('@')
            .map_or((None, text), |(login, hosts)| (Some(login), hosts));
        let (username, password) = match login {
            None => (None, None),
            Some(login) => {
                let (user, password) = login
                    .split_once(':')
                    .map_or((login, None), |(u, p)| (u, Some(p)));
                let user = decode(user, "user name", url)?;
                let password = password
                    .map(|password| decode(password, "password", url))
                    .transpose()?;
                ((!user.is_empty()).then_some(user), password)
            }
        };
        if username.is_some() && password.is_none() {
            return Err(url.error(
                "the user name",
                "has no password; write USER:PASSWORD@HOST, or leave it out",
            ));
        }
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
