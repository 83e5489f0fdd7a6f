//! The template keeps the contract, for the kinds that it offers.

use std::sync::Arc;

use backend_template::TemplateConnector;
use locktopus::{Connectors, LockTarget};
use locktopus_conformance::{Flavour, Suite};

#[tokio::test(start_paused = true)]
async fn the_template_conforms() -> Result<(), Box<dyn std::error::Error>> {
    let template = TemplateConnector::default();
    let (wiped, seen) = (template.clone(), template.clone());
    let store = Arc::new(Connectors::new().with(template)?);
    let suite = Suite::new(move || {
        let store = Arc::clone(&store);
        async move {
            let client = store.connect_backend("template:").await;
            client.expect("a table in this process")
        }
    });
    let suite = suite
        .flavours(&[Flavour::Lock, Flavour::Mutex, Flavour::SingleKey])
        .wipe(move |target: LockTarget| {
            wiped.wipe(&target);
            async {}
        })
        .picture(move |part| {
            let picture = seen.picture(&part);
            async { picture }
        });
    suite.run().await.assert_passed();
    Ok(())
}
