//! The records of instances, each kept for the requested time.

use std::collections::HashMap;

use locktopus_contract::clock::timer_in;
use locktopus_contract::{Announcement, InstanceId, InstanceQuery, InstanceRecord};
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(super) struct InstanceRecords {
    known: HashMap<(String, InstanceId), StoredRecord>,
}

#[derive(Debug)]
struct StoredRecord {
    record: InstanceRecord,
    until: Instant,
}

impl InstanceRecords {
    pub(super) fn announced(&mut self, announcement: &Announcement) {
        // Rare and cheap: there is one record for each instance of this process.
        let now = Instant::now();
        self.known.retain(|_, known| known.until > now);
        let key = (announcement.namespace.clone(), announcement.instance);
        match &announcement.record {
            Some(record) => {
                let (record, until) = (record.clone(), timer_in(announcement.keep));
                self.known.insert(key, StoredRecord { record, until });
            }
            None => {
                self.known.remove(&key);
            }
        }
    }

    pub(super) fn of(&self, query: &InstanceQuery) -> Vec<Option<InstanceRecord>> {
        let now = Instant::now();
        let record = |instance: &InstanceId| {
            let known = self.known.get(&(query.namespace.clone(), *instance))?;
            (known.until > now).then(|| known.record.clone())
        };
        query.instances.iter().map(record).collect()
    }
}
