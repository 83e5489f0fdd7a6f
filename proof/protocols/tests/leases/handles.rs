//! The end of a `Locktopus`, as shipped.

pub(crate) mod locktopus {
    use crate::engine::holding::services::Services;
    use crate::sync::Arc;

    pub(crate) struct Locktopus {
        pub(crate) services: Arc<Services>,
    }

    mod shutdown {
        include!(concat!(env!("OUT_DIR"), "/shutdown.rs"));
    }
}
