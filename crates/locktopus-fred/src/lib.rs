//! Locktopus over the fred client.
