//! Properties of names, tried on random ones.

use locktopus_core::{LockName, MAX_NAME_BYTES, NameEncoding, NameError};

const NAMES: u64 = 1_000_000;

/// Random numbers (SplitMix64). They are the same in every run, so a failure can be repeated.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Any bytes, or text of characters with a special meaning. Mostly short, so that names
    /// collide.
    fn bytes(&mut self, out: &mut Vec<u8>) {
        const MEANINGFUL: &[u8; 16] = b"{}%2:a7B*[\\\0 \"\n\xff";
        let dice = self.next();
        let length = 1 + (dice >> 8) % if dice & 7 == 0 { 40 } else { 8 };
        out.clear();
        let mut bits = 0;
        for at in 0..length {
            bits = if at % 8 == 0 { self.next() } else { bits >> 8 };
            let byte = bits as u8;
            out.push(if dice & 8 == 0 {
                byte
            } else {
                MEANINGFUL[usize::from(byte % 16)]
            });
        }
    }
}

#[test]
fn any_bytes_come_back_from_a_name() {
    let mut random = Random(1);
    let mut bytes = Vec::new();
    for _ in 0..NAMES {
        random.bytes(&mut bytes);
        let name = LockName::encode(&bytes).unwrap();
        assert_eq!(name.decode().as_deref(), Ok(bytes.as_slice()), "{name:?}");
        // Characters without a meaning in any key, channel, pattern, shell or log line.
        let harmless = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/@+,=%".contains(&b);
        assert!(
            name.as_str().bytes().all(harmless),
            "{bytes:?} became {name:?}"
        );
    }
}

/// With the test above: no two texts stand for the same bytes, so one lock never has two names.
#[test]
fn only_one_text_stands_for_given_bytes() {
    const TEXTS: u64 = NAMES / 4;
    let mut random = Random(2);
    let (mut text, mut decoded) = (Vec::new(), 0);
    for _ in 0..TEXTS {
        random.bytes(&mut text);
        let digits = random.next();
        // Mostly nearly valid.
        for (at, byte) in text.iter_mut().enumerate() {
            if digits >> (at % 21 * 3) & 7 != 0 {
                *byte = b"%%a27BFz"[usize::from(*byte % 8)];
            }
        }
        let name = String::from_utf8_lossy(&text);
        let name = LockName::new(&name).unwrap();
        match name.decode() {
            Ok(bytes) => {
                assert_eq!(LockName::encode(bytes).as_ref(), Ok(&name));
                decoded += 1;
            }
            Err(error) => {
                let named = matches!(&error, NameError::NotEncoded { name: told, .. } if told == name.as_str());
                assert!(named, "{error:?}");
            }
        }
    }
    assert!(
        (TEXTS / 20..TEXTS / 2).contains(&decoded),
        "{decoded} were right"
    );
}

#[test]
fn names_in_a_namespace_come_back_too() {
    for namespace in ["", "shop:", "{tenant}:", "100%"] {
        for encoding in [NameEncoding::Plain, NameEncoding::Escaped] {
            let name = encoding.encode(namespace, "{é} 7").unwrap();
            assert!(name.as_str().starts_with(namespace));
            assert_eq!(
                encoding.decode(namespace, &name).unwrap(),
                "{é} 7".as_bytes()
            );
            let error = encoding.decode("other", &name).unwrap_err();
            assert!(error.to_string().contains(r#""other""#), "{error}");
        }
    }
    let plain = NameEncoding::Plain.encode("shop:", "{é} 7").unwrap();
    assert_eq!(plain, LockName::in_namespace("shop:", "{é} 7").unwrap());
}

#[test]
fn limits_are_told_with_what_breaks_them() {
    // The limit is for the stored name: three bytes for each of these.
    let long = vec![0xff_u8; MAX_NAME_BYTES / 3 + 1];
    assert!(LockName::encode(&long[1..]).is_ok());
    let error = LockName::encode(&long).unwrap_err();
    let expected = (3 * long.len(), long.len());
    assert!(
        matches!(error, NameError::EncodedTooLong { bytes, raw_bytes, .. } if (bytes, raw_bytes) == expected),
        "{error:?}"
    );
    let text = error.to_string();
    for word in ["342 bytes", "1026", "1024", "encoded"] {
        assert!(text.contains(word), "{text}");
    }
    let close = NameEncoding::Escaped.encode("ns:", &long[1..]).unwrap_err();
    assert!(
        matches!(close, NameError::EncodedTooLong { bytes: 1026, .. }),
        "{close:?}"
    );

    assert_eq!(LockName::encode(b""), Err(NameError::Empty));
    assert_eq!(NameEncoding::Plain.encode("ns:", ""), Err(NameError::Empty));
    let error = NameEncoding::Plain.encode("", b"ab\xffc").unwrap_err();
    assert!(
        matches!(error, NameError::NotText { at: 2, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("Escaped"), "{error}");
}
