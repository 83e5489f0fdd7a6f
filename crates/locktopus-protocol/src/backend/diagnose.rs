//! Connect-time checks: settings and faults of a Redis or Valkey server that silently break locks.

mod ask;
mod clocks;
mod deployment;
mod info;
mod neighbours;
mod probe;
mod rights;
mod routed;
mod token_keys;
mod version;

use std::time::SystemTime;

use async_trait::async_trait;
use futures_util::future::OptionFuture;
use locktopus_contract::{BackendError, Diagnosis, Diagnostics};
use tokio::time::Instant;

use super::RedisBackend;
use super::safety::Safety;
use crate::client::role::ROLE_QUESTION;
use ask::ask_all;
use rights::Rights;

#[async_trait]
impl Diagnostics for RedisBackend {
    async fn diagnose(&self, deadline: Instant) -> Result<Diagnosis, BackendError> {
        let context = &*self.contexts.here()?;
        let executor = &context.executor;
        executor.check_open()?;
        let mut diagnosis = Diagnosis::default();
        let quarantine = matches!(context.safety, Safety::Quarantine(_));
        // Concurrently: a server that hangs delays each question.
        let hello = [ROLE_QUESTION.as_bytes()];
        let before = SystemTime::now();
        let rights = Rights::new(context);
        let asked_rights = rights.as_ref().map(|rights| rights.ask(context, deadline));
        let (infos, times, hellos, permitted) = tokio::join!(
            ask_all(executor, &[b"INFO"], deadline),
            ask_all(executor, &[b"TIME"], deadline),
            ask_all(executor, &hello, deadline),
            OptionFuture::from(asked_rights)
        );
        let asked = SystemTime::now();
        let seen = info::check(executor, infos?, quarantine, &mut diagnosis)?;
        let piled_up = token_keys::check(context, &seen.rooms, deadline).await?;
        diagnosis.findings.extend(piled_up);
        // Each question that a user may not ask adds a line to the server's log of refusals.
        if seen.informed {
            let neighbours = neighbours::check(context, &seen.evicting, deadline).await?;
            diagnosis.findings.extend(neighbours);
        }
        clocks::check(times?, before..asked, &mut diagnosis);
        deployment::check(executor, hellos?, &mut diagnosis);
        let found = |check| diagnosis.findings.iter().any(|found| found.check == check);
        // A replica refuses every lock, and the probe would retry until the deadline.
        if !found("role") && !found(deployment::DEPLOYMENT) {
            let some_away = found(info::UNREACHABLE);
            let denied = probe::check(self, context, some_away, deadline, &mut diagnosis).await;
            let mut lacking = match (rights, permitted) {
                (Some(rights), Some(permitted)) => rights.check(permitted?, &diagnosis),
                _ => Vec::new(),
            };
            let steps = probe::report(denied, &mut lacking);
            diagnosis.findings.extend(steps.into_iter().chain(lacking));
        }
        diagnosis
            .findings
            .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        Ok(diagnosis)
    }
}
