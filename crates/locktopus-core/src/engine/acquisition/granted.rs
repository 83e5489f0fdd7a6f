//! From a grant of the backend to a held lease.

use locktopus_contract::FencingToken;
use locktopus_contract::clock::{self, BootInstant};

use super::attempts::Acquisition;
use super::kept_lease::Keeping;
use super::lead::Stop;
use super::plan::least_validity;
use crate::engine::holding::hold::Hold;
use crate::engine::settings::WaitStrategy;

impl Acquisition<'_> {
    pub(super) fn valid_until(&self, sent: BootInstant) -> BootInstant {
        let margin = &self.services.settings.margin;
        margin.valid_until(sent, self.plan.lease)
    }

    /// The lock is ours, through an attempt or a heartbeat sent at `sent`; the grant was seen at
    /// `granted_at`. With `recall`, this process hears if others want it.
    pub(super) fn take(
        &mut self,
        sent: BootInstant,
        granted_at: BootInstant,
        token: Option<FencingToken>,
        recall: bool,
    ) -> Result<Hold, Stop> {
        self.state.failing_since = None;
        let plan = self.plan;
        let token = token.filter(|_| plan.target.kind().has_tokens());
        let ask = &self.state.ask;
        let mut lease = plan.granted(self.services, &ask.owner, token, sent);
        lease.late_attempt = self.state.late_attempt;
        let valid_until = self.valid_until(sent);
        let keeping = self.state.hints.take_if(|_| recall).map(|mut hints| {
            hints.hold();
            Box::new(Keeping::new(hints, plan.lease_cache, valid_until))
        });
        // If this fails, dropping `self` gives the grant back.
        let held = match self.lead.as_mut() {
            Some(lead) => {
                let held = lead.won(lease, ask.tokens, granted_at, keeping)?;
                // The local queue has the way back; there is nothing to leave to the next leader.
                self.lead = None;
                held
            }
            None => {
                let hold_until = lease.hold_until();
                let lease = lease.start(self.services, granted_at)?;
                lease.begin_turn(self.services, hold_until, granted_at)
            }
        };
        self.state.settled();
        self.state.late_attempt = false;
        self.stop_listening();
        Ok(held)
    }

    /// Decides whether a pushed grant may be used without asking the backend.
    ///
    /// The message may be old or forged, or the waiter may have been silent for long. The grant is
    /// believed if its token is greater than the last answer's to this owner, so that it is no
    /// leftover of an earlier grant. Validity counts from when that answer's attempt was sent,
    /// which was before the grant. Source: the model, which broke every weaker rule.
    pub(super) fn believe(&mut self, token: FencingToken) -> Result<Option<Hold>, Stop> {
        let Some(place) = self
            .state
            .place
            .filter(|place| token.get() > place.last_token)
        else {
            return Ok(None);
        };
        let now = clock::now();
        if !self.plan.target.kind().is_held() {
            // These permits cannot be lost, but asking again could take others, because these may
            // have come back meanwhile.
            return self.take(place.sent, now, Some(token), false).map(Some);
        }
        let WaitStrategy::HandOff { confirm: false, .. } = self.plan.strategy else {
            return Ok(None);
        };
        if self.services.safety().confirms_pushes() {
            return Ok(None);
        }
        let left = self.valid_until(place.sent).since(now);
        if left < least_validity(self.plan.lease, self.plan.renewed) {
            return Ok(None);
        }
        // The maximum hold time counts from then too, so little of it may be left: a new attempt
        // restarts it.
        if let Some(most) = self.plan.max_hold
            && now.since(place.sent) > most / 10
        {
            return Ok(None);
        }
        self.take(place.sent, now, Some(token), false).map(Some)
    }
}
