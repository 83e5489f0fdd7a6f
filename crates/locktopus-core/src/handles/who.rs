//! The instances behind owner ids.

use std::collections::{BTreeSet, HashMap};

use locktopus_contract::clock::timer_in;
use locktopus_contract::{
    BackendError, InstanceId, InstanceQuery, InstanceRecord, MAX_INSTANCES_PER_QUERY, OwnerId,
};

use crate::handles::locktopus::Locktopus;

/// The records of the instances that hold or wait. Made by [`Locktopus::who`].
///
/// ```
/// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let locks = locktopus::connect("memory:").await?;
/// use locktopus::KnownInstances;
/// let _guard = locks.lock("invoice:42").acquire().await?;
/// let state = locks.lock("invoice:42").inspect().await?;
/// let who: KnownInstances = locks.who(state.owners()).await?;
/// let label = who.of(&state.holders[0].owner).map(|record| record.label());
/// assert_eq!(label, None); // this one has no label
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct KnownInstances {
    known: HashMap<InstanceId, InstanceRecord>,
}

impl KnownInstances {
    /// The record of the instance that made this owner id. `None` if the instance has no label,
    /// ended more than two minutes ago without a shutdown or could not write its record, or if the
    /// owner id comes from another library.
    #[must_use]
    pub fn of(&self, owner: &OwnerId) -> Option<&InstanceRecord> {
        self.known.get(&owner.instance()?)
    }
}

impl Locktopus {
    /// Looks up the [labels](crate::LocktopusBuilder::label) of these holders and waiters. Sends
    /// one request for every 256 instances among them, however many owners; none if no owner can
    /// have a label.
    ///
    /// Each instance writes its own record, and a server may forget it. Use it to find a stuck
    /// process, and not as proof of anything.
    ///
    /// ```
    /// # #[tokio::main] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use locktopus_core::Locktopus;
    /// # use locktopus_memory::MemoryBackend;
    /// let backend = MemoryBackend::new();
    /// let worker = Locktopus::builder(backend.another_client()).label("billing-worker").build()?;
    /// let _held = worker.lock("import").acquire().await?;
    ///
    /// let operator = Locktopus::builder(backend).build()?;
    /// let state = operator.lock("import").inspect().await?;
    /// # // The record is written in the background.
    /// # let written = async {
    /// #     while operator.who(state.owners()).await?.of(&state.holders[0].owner).is_none() {
    /// #         tokio::task::yield_now().await;
    /// #     }
    /// #     Ok::<_, locktopus_core::BackendError>(())
    /// # };
    /// # tokio::time::timeout(std::time::Duration::from_secs(10), written).await??;
    /// let who = operator.who(state.owners()).await?;
    /// for holder in &state.holders {
    ///     if let Some(record) = who.of(&holder.owner) {
    ///         println!("{} on {:?}, process {:?}", record.label(), record.host(), record.process());
    ///     }
    /// }
    /// # let holder = &state.holder().expect("held").owner;
    /// # assert_eq!(who.of(holder).map(|record| record.label()), Some("billing-worker"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The backend's error. Locks are not affected.
    ///
    /// # Cancel safety
    ///
    /// Cancel safe; reads only.
    pub async fn who(
        &self,
        owners: impl IntoIterator<Item = &OwnerId>,
    ) -> Result<KnownInstances, BackendError> {
        let mut who = KnownInstances::default();
        if self.services().backend.instances().is_none() {
            return Ok(who);
        }
        let instances = owners.into_iter().filter_map(OwnerId::instance);
        let instances: BTreeSet<InstanceId> = instances.collect();
        let instances: Vec<_> = instances.into_iter().collect();
        for some in instances.chunks(MAX_INSTANCES_PER_QUERY) {
            let records = self.records(some).await?;
            let told = some.iter().zip(records);
            who.known
                .extend(told.filter_map(|(instance, record)| Some((*instance, record?))));
        }
        Ok(who)
    }

    async fn records(
        &self,
        instances: &[InstanceId],
    ) -> Result<Vec<Option<InstanceRecord>>, BackendError> {
        let services = self.services();
        let query = InstanceQuery {
            namespace: self.namespace().to_owned(),
            instances: instances.to_vec(),
            deadline: timer_in(services.call_timeout()),
        };
        services.instances(&query).await
    }
}
