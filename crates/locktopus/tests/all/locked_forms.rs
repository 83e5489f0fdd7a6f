//! Functions under a lock, in every form of function: code that compiles without the attribute
//! compiles with it.

use std::error::Error;
use std::fmt::{Debug, Display};
use std::num::ParseIntError;
use std::pin::Pin;
use std::sync::Arc;

use locktopus::{LockError, Locktopus, locked};

type Anything = Box<dyn Error + Send + Sync>;

async fn memory() -> Locktopus {
    locktopus::connect("memory:").await.unwrap()
}

#[derive(Clone)]
struct Till {
    locks: Locktopus,
    total: u32,
}

/// Kinds of return types and of returning.
mod returning {
    use super::*;

    #[locked(name = "a", locks = locks)]
    pub(super) async fn question_marks(locks: &Locktopus, text: &str) -> Result<u32, Anything> {
        let number = text.parse::<u32>()?;
        locks.lock("b").acquire().await?.release().await?;
        if number == 0 {
            return Err("zero".into());
        }
        if number == 1 {
            Err("one")?;
        }
        Ok(number)
    }

    /// The error becomes a trait object because of the return type alone.
    #[locked(name = "a", locks = locks)]
    pub(super) async fn unsized_errors(locks: &Locktopus, text: &str) -> Result<u32, Anything> {
        if let Err(error) = text.parse::<u32>() {
            return Err(Box::new(error));
        }
        Ok(0)
    }

    #[locked(name = "a", locks = locks)]
    pub(super) async fn unsized_values(
        locks: &Locktopus,
        big: bool,
    ) -> Result<Box<dyn Display + Send>, LockError> {
        if big {
            return Ok(Box::new(u64::MAX));
        }
        Ok(Box::new("small"))
    }

    #[locked(name = "a", locks = locks)]
    pub(super) async fn hidden_types(
        locks: &Locktopus,
        to: u32,
    ) -> Result<impl Iterator<Item = impl Display> + Debug, LockError> {
        Ok(0..to)
    }

    #[locked(name = "{word}", locks = locks)]
    pub(super) async fn borrowed<'a>(
        locks: &Locktopus,
        word: &'a str,
        _of_no_use: &str,
    ) -> Result<&'a str, LockError> {
        Ok(&word[1..])
    }

    #[locked(name = "a", locks = locks)]
    pub(super) async fn nothing_ever(locks: &Locktopus) -> Result<u32, LockError> {
        panic!("on purpose")
    }

    #[locked(name = "a", locks = locks)]
    pub(super) async fn collected(locks: &Locktopus) -> Result<Vec<u8>, LockError> {
        let parts = ["1", "2"].iter();
        Ok(parts.map(|part| part.parse().unwrap()).collect())
    }
}

/// Receivers and arguments of functions.
mod taking {
    use super::*;

    impl Till {
        #[locked(name = "till:{self.total}", locks = self.locks)]
        pub(super) async fn add(&mut self, more: u32) -> Result<u32, LockError> {
            self.total += more;
            Ok(self.total)
        }

        #[locked(name = "till", locks = self.locks)]
        pub(super) async fn shared(self: Arc<Self>) -> Result<usize, LockError> {
            Ok(Arc::strong_count(&self))
        }

        #[locked(name = "till", locks = self.locks.clone())]
        pub(super) async fn closed(mut self) -> Result<Self, LockError> {
            self.total = 0;
            Ok(self)
        }

        #[locked(name = "till", locks = locks)]
        pub(super) async fn opened(locks: Arc<Locktopus>) -> Result<Self, LockError> {
            let locks = Locktopus::clone(&locks);
            Ok(Self { locks, total: 1 })
        }
    }

    pub(super) trait Adds {
        fn locks(&self) -> &Locktopus;

        #[allow(async_fn_in_trait, reason = "for tests alone")]
        async fn one(&mut self) -> Result<u32, LockError>;

        #[allow(async_fn_in_trait, reason = "for tests alone")]
        #[locked(name = "two", locks = self.locks())]
        async fn two(&mut self) -> Result<u32, LockError> {
            self.one().await?;
            self.one().await
        }
    }

    impl Adds for Till {
        fn locks(&self) -> &Locktopus {
            &self.locks
        }

        #[locked(name = "one", locks = self.locks())]
        async fn one(&mut self) -> Result<u32, LockError> {
            self.total += 1;
            Ok(self.total)
        }
    }

    #[locked(name = "{r#type}:{type:>width$}:{many.0:?}:{number}", locks = locks, bind = lease)]
    pub(super) async fn odd_names<T, const N: usize>(
        locks: &Locktopus,
        r#type: &str,
        width: usize,
        many: &([T; N], u8),
        number: impl Display + Send,
    ) -> Result<String, LockError>
    where
        T: Debug + Sync,
    {
        assert_eq!((many.0.len(), r#type.len()), (N, 1), "{number}");
        Ok(lease.name().as_str().to_owned())
    }

    #[locked(name = "{first}:{all:?}:{id}", locks = locks, bind = lease)]
    pub(super) async fn patterns(
        locks: &Locktopus,
        all @ [first, ..]: [u8; 3],
        Order { id, .. }: Order,
    ) -> Result<String, LockError> {
        Ok(format!("{} {first}{all:?}{id}", lease.name().as_str()))
    }

    pub(super) struct Order {
        pub(super) id: u32,
        pub(super) _what: String,
    }

    macro_rules! made {
        ($function:ident, $lock:literal, $locks:expr, $argument:ident) => {
            #[locked(name = $lock, locks = $locks, wait = "1s", bind = lease)]
            pub(super) async fn $function($argument: &Till) -> Result<u32, LockError> {
                let again = $locks.lock(lease.name().as_str()).acquire().await?;
                Ok(u32::try_from(again.hold_count()).unwrap())
            }
        };
    }

    made!(by_a_macro, "till:{till.total}", till.locks, till);
}

/// Attributes inside, above and below.
#[expect(clippy::mixed_attributes_style, reason = "it has to work")]
#[doc(hidden)]
#[deny(unused_variables)]
#[locked(name = "a", locks = memory().await)]
#[must_use = "an attribute below"]
#[allow(clippy::needless_pass_by_value)]
async fn attributes(word: String) -> Result<String, LockError> {
    #![allow(unused_variables)]
    let unused = 1;
    Ok(word)
}

#[locked(name = "a", locks = memory().await, bind = lease)]
#[tokio::test]
async fn a_test_under_a_lock() -> Result<(), LockError> {
    lease.ensure_valid()
}

#[tokio::test]
async fn what_is_returned_becomes_what_the_signature_says() {
    let locks = memory().await;
    assert_eq!(returning::question_marks(&locks, "7").await.unwrap(), 7);
    for text in ["", "0", "1"] {
        returning::question_marks(&locks, text).await.unwrap_err();
    }
    let error = returning::unsized_errors(&locks, "x").await.unwrap_err();
    assert!(error.is::<ParseIntError>());
    for (big, text) in [(true, "18446744073709551615"), (false, "small")] {
        let value = returning::unsized_values(&locks, big).await.unwrap();
        assert_eq!(value.to_string(), text);
    }
    let hidden = returning::hidden_types(&locks, 3).await.unwrap();
    assert_eq!(hidden.map(|n| n.to_string()).collect::<String>(), "012");
    let word = String::from("word");
    assert_eq!(returning::borrowed(&locks, &word, "").await.unwrap(), "ord");
    assert_eq!(returning::collected(&locks).await.unwrap(), [1, 2]);
    let panicked = tokio::spawn({
        let locks = locks.clone();
        async move { returning::nothing_ever(&locks).await }
    });
    assert!(panicked.await.unwrap_err().is_panic());
    // The lock was released with it.
    returning::collected(&locks).await.unwrap();
    assert_eq!(
        attributes("as it was".to_owned()).await.unwrap(),
        "as it was"
    );
}

#[tokio::test]
async fn methods_traits_and_patterns() {
    use taking::Adds as _;

    let locks = memory().await;
    let mut till = Till::opened(Arc::new(locks.clone())).await.unwrap();
    assert_eq!(till.add(6).await.unwrap(), 7);
    assert_eq!(
        (till.one().await.unwrap(), till.two().await.unwrap()),
        (8, 10)
    );
    assert_eq!(Arc::new(till.clone()).shared().await.unwrap(), 1);
    assert_eq!(taking::by_a_macro(&till).await.unwrap(), 2);
    assert_eq!(till.closed().await.unwrap().total, 0);
    let name = taking::odd_names(&locks, "t", 3, &([1, 2], 0), 5).await;
    assert_eq!(name.unwrap(), "t:  t:[1, 2]:5");
    let order = taking::Order {
        id: 9,
        _what: String::new(),
    };
    let said = taking::patterns(&locks, [4, 5, 6], order).await.unwrap();
    assert_eq!(said, "4:[4, 5, 6]:9 4[4, 5, 6]9");
}

/// Generic callers and trait objects need futures that are `Send`.
#[tokio::test]
async fn futures_can_be_sent_and_boxed() {
    fn boxed<'a, T: 'a>(
        future: impl Future<Output = T> + Send + 'a,
    ) -> Pin<Box<dyn Future<Output = T> + Send + 'a>> {
        Box::pin(future)
    }
    let locks = memory().await;
    assert_eq!(
        boxed(returning::question_marks(&locks, "7")).await.unwrap(),
        7
    );
    boxed(returning::unsized_values(&locks, true))
        .await
        .unwrap();
    let till = Arc::new(Till { locks, total: 0 });
    boxed(till.shared()).await.unwrap();
}
