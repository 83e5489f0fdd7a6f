//! The attribute `#[locked]`. Use it as `locktopus::locked`, with the feature `macros`.
//!
//! | module | what is in it |
//! |---|---|
//! | `template` | names with arguments in them |
//! | `options` | what is written in the attribute, checked |
//! | `expand` | the function that comes out |
//!
//! Layers, lowest first: template, options, expand.

mod expand;
mod options;
mod template;

use proc_macro::TokenStream;
use syn::{ItemFn, parse_macro_input};

/// Runs an `async fn` under a lock. Described where it is exported: `locktopus::locked`.
#[proc_macro_attribute]
pub fn locked(options: TokenStream, function: TokenStream) -> TokenStream {
    let options = parse_macro_input!(options as options::Written);
    let function = parse_macro_input!(function as ItemFn);
    match expand::expand(options, &function) {
        Ok(expanded) => expanded.into(),
        Err(error) => {
            // With the function as it is, so that its callers have no errors of their own.
            let error = error.into_compile_error();
            quote::quote!(#error #function).into()
        }
    }
}
