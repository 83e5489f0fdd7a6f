//! The template keeps the contract, for the kinds that it offers.

use std::sync::Arc;

use backend_template::TemplateConnector;
use locktopus::Connectors;
use locktopus_conformance::{Flavour, Suite};

#[tokio::test(start_paused = true)]
async fn the_template_conforms() -> Result<(), Box<dyn std::error::Error>> {
    let store = Arc::new(Connectors::new().with(TemplateConnector::default())?);
    let suite = Suite::new(move || {
        let store = Arc::clone(&store);
        async move {
            let client = store.connect_backend("template:").await;
            client.expect("a table in this process")
        }
    });
    let suite = suite.flavours(&[Flavour::Lock, Flavour::Mutex, Flavour::SingleKey]);
    suite.run().await.assert_passed();
    Ok(())
}
