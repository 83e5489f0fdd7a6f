//! Lock contract, guards, watchdog and the in-memory backend of Locktopus.
