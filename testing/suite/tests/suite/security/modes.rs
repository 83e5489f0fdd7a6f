//! The safety modes need a few more rights. With all of them a lock can be acquired, and without
//! any one of them it cannot.

use std::sync::Arc;

use locktopus_servers::rights::{self, Mode, rules};
use locktopus_servers::topology::Deployment;

use crate::common::{CLIENTS, SOON, unique};
use crate::security::acl::url_of;

pub(crate) async fn just_enough(place: Arc<Deployment>, mode: Mode) -> String {
    let needed: Vec<_> = mode.rights.split(' ').map(str::to_owned).collect();
    let all = [rights::all(place.kind()), needed.clone()].concat();
    for client in CLIENTS {
        let grants = grants(&place, client, mode, &all).await;
        grants.unwrap_or_else(|error| panic!("{}: {error}", mode.options));
        for right in &needed {
            let less: Vec<_> = all.iter().filter(|word| *word != right).cloned().collect();
            let granted = self::grants(&place, client, mode, &less).await;
            assert!(granted.is_err(), "{}: {right} is not missed", mode.options);
        }
    }
    format!("{} rights are needed", needed.len())
}

async fn grants(
    place: &Deployment,
    client: &str,
    mode: Mode,
    rights: &[String],
) -> Result<(), Box<dyn std::error::Error>> {
    let user = unique("mode");
    let rules = rules(rights);
    let start = ["ACL", "SETUSER", &user, "reset", "on", ">secret"];
    let words: Vec<_> = start.into_iter().chain(rules.split(' ')).collect();
    for node in place.nodes() {
        node.command(&words).await?;
    }
    let url = url_of(place, client, &user);
    let locks = locktopus::connect(&format!("{url}&checks=off&{}", mode.options)).await?;
    let request = locks.lock(unique("app:mode")).wait_at_most(SOON);
    let released = request.acquire().await?.release().await;
    let _ = locks.shutdown(SOON).await;
    Ok(released?)
}
