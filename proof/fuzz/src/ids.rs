//! Owner ids, tickets, fences, and the records of instances.

use locktopus::{Fence, FencingToken, InstanceRecord, LeaseTicket, OwnerId};

use crate::input::{Input, text};

/// A byte for the kind of value, and then its bytes.
///
/// A value that was read is written so that it reads the same again, and `Debug` shows no secret.
///
/// # Panics
///
/// If one of these rules is broken.
pub fn ids(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 5 {
        0 => owner(input.rest()),
        1 => ticket(&text(input.rest())),
        2 => record(input.rest()),
        3 => token(input.number()),
        _ => fence(&text(input.rest())),
    }
}

fn owner(bytes: &[u8]) {
    let owner = OwnerId::from_bytes(bytes);
    assert_eq!(owner.expose(), bytes);
    let (shown, exposed) = (format!("{owner:?} {owner:#?}"), text(bytes));
    // Shorter ones occur in any text.
    assert!(
        bytes.len() < 9 || !shown.contains(exposed.as_ref()),
        "{shown}"
    );
    match owner.instance() {
        Some(instance) => assert_eq!(instance.to_string().len(), 12, "{exposed:?}"),
        None => assert_ne!(bytes.len(), 16, "a permit's id tells its instance"),
    }
}

fn ticket(text: &str) {
    let Ok(ticket) = text.parse::<LeaseTicket>() else {
        return;
    };
    let exposed = ticket.expose();
    let printable = exposed.bytes().all(|byte| byte.is_ascii_graphic());
    assert!(printable, "{text:?} becomes {exposed:?}");
    let again: LeaseTicket = exposed
        .parse()
        .unwrap_or_else(|error| panic!("{text:?} becomes {exposed:?}: {error}"));
    assert!(
        again == ticket && again.expose() == exposed,
        "{text:?} becomes {again:?}"
    );
    assert!(ticket.permits() > 0, "{ticket:?}");
    let secret = exposed.split('.').nth(3).unwrap_or_default();
    assert!(
        secret.len() < 9 || !format!("{ticket:?}").contains(secret),
        "{ticket:?}"
    );
}

fn record(bytes: &[u8]) {
    let Some(record) = InstanceRecord::parse(bytes) else {
        return;
    };
    let text = record.to_text();
    let again = InstanceRecord::parse(text.as_bytes());
    assert_eq!(again.as_ref(), Some(&record), "{text:?}");
}

fn token(number: i64) {
    let number = number.cast_unsigned();
    match FencingToken::new(number) {
        Some(token) => assert!(token.get() == number && number > 0 && number < 1 << 53),
        None => assert!(number == 0 || number >= 1 << 53),
    }
}

/// A fence has only one text.
fn fence(text: &str) {
    if let Ok(fence) = text.parse::<Fence>() {
        assert_eq!(fence.to_string(), text);
    }
}
