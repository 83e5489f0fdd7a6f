//! The function that comes out.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{FnArg, Ident, ItemFn, Pat, ReturnType};

use crate::options::{Kind, Timed, WhenBusy, Written};
use crate::template::Template;

/// The function with its body under the lock.
pub(crate) fn expand(options: Written, function: &ItemFn) -> syn::Result<TokenStream> {
    check_function(function)?;
    check_options(&options)?;
    let request = request(&options, function)?;
    let ItemFn {
        attrs,
        vis,
        sig,
        block,
    } = function;
    let output = match &sig.output {
        ReturnType::Type(_, output) => output.span(),
        ReturnType::Default => sig.ident.span(),
    };
    let helper = Ident::new(
        match options.when_busy {
            Some(WhenBusy::Skip) => "run_or_skip",
            _ => "run",
        },
        output,
    );
    let lease = match &options.bind {
        Some(bind) => quote!(#bind),
        None => quote!(_),
    };
    // At the place of the return type: if that is none, the compiler complains about it.
    let call = quote_spanned!(output=> ::locktopus::locked::#helper);
    Ok(quote! {
        #(#attrs)*
        #vis #sig {
            let __locktopus_request = #request;
            #call(__locktopus_request, |#lease: ::locktopus::Lease| async move #block).await
        }
    })
}

fn request(options: &Written, function: &ItemFn) -> syn::Result<TokenStream> {
    let whole = Span::call_site();
    let missing = |message| syn::Error::new(whole, message);
    let text = options.name.as_ref().ok_or_else(|| {
        missing("which lock? Say `name = \"...\"`, with arguments as in \"invoice:{id}\"")
    })?;
    let name = Template::parse(text, &arguments(function))?;
    let locks = options.locks.as_ref().ok_or_else(|| {
        missing(
            "whose locks? Say `locks = ...`: a `Locktopus`, such as `self.locks` or an argument",
        )
    })?;
    let locks = quote_spanned!(locks.span()=> ::locktopus::locked::locks(&(#locks)));
    let request = match options.kind.unwrap_or(Kind::Lock) {
        Kind::Lock => quote!(#locks.lock(#name)),
        Kind::FairLock => quote!(#locks.fair_lock(#name)),
        Kind::Mutex => quote!(#locks.mutex(#name)),
        Kind::Read => quote!(#locks.rw_lock(#name).read()),
        Kind::Write => quote!(#locks.rw_lock(#name).write()),
        Kind::Semaphore => quote!(#locks.semaphore(#name).permits(1)),
        Kind::PermitSemaphore => quote!(#locks.permit_semaphore(#name).permits(1)),
    };
    let at_once = Timed {
        time: std::time::Duration::ZERO,
        span: whole,
    };
    let wait = match options.when_busy.unwrap_or(WhenBusy::Wait) {
        WhenBusy::Wait => options.wait.as_ref(),
        WhenBusy::Skip | WhenBusy::Error => Some(options.wait.as_ref().unwrap_or(&at_once)),
    };
    let durations = [
        ("wait_at_most", wait),
        ("renewed_lease", options.lease.as_ref()),
        ("fixed_lease", options.fixed_lease.as_ref()),
        ("max_hold", options.max_hold.as_ref()),
    ];
    let durations = durations.into_iter().filter_map(|(method, timed)| {
        let timed = timed?;
        let method = Ident::new(method, whole);
        let (seconds, nanos) = (timed.time.as_secs(), timed.time.subsec_nanos());
        Some(quote!(.#method(::core::time::Duration::new(#seconds, #nanos))))
    });
    Ok(quote!(#request #(#durations)*))
}

fn check_function(function: &ItemFn) -> syn::Result<()> {
    let sig = &function.sig;
    if sig.asyncness.is_none() {
        let message = "#[locked] is for `async fn`: waiting for a lock takes time";
        return Err(syn::Error::new(sig.fn_token.span, message));
    }
    if matches!(sig.output, ReturnType::Default) {
        let message = "a function with #[locked] returns a `Result<T, E>` with `E: From<LockError>`: the lock may not be there to \
                       be had, and may be lost";
        return Err(syn::Error::new(sig.ident.span(), message));
    }
    Ok(())
}

fn check_options(options: &Written) -> syn::Result<()> {
    if let (Some(_), Some(fixed)) = (&options.lease, &options.fixed_lease) {
        let message = "either `lease`, which is renewed, or `fixed_lease`, which is not";
        return Err(syn::Error::new(fixed.span, message));
    }
    if let (Some(WhenBusy::Error), Some(wait)) = (options.when_busy, &options.wait) {
        let message =
            "`when_busy = \"error\"` does not wait; leave it out to wait this long and fail then";
        return Err(syn::Error::new(wait.span, message));
    }
    Ok(())
}

/// Everything that the patterns of the arguments bind.
fn arguments(function: &ItemFn) -> Vec<String> {
    let mut names = Vec::new();
    for argument in &function.sig.inputs {
        match argument {
            FnArg::Receiver(_) => names.push("self".to_owned()),
            FnArg::Typed(typed) => bound(&typed.pat, &mut names),
        }
    }
    names
}

fn bound(pattern: &Pat, names: &mut Vec<String>) {
    match pattern {
        Pat::Ident(ident) => names.push(ident.ident.to_string()),
        Pat::Reference(reference) => bound(&reference.pat, names),
        Pat::Paren(inner) => bound(&inner.pat, names),
        Pat::Tuple(tuple) => tuple.elems.iter().for_each(|part| bound(part, names)),
        Pat::TupleStruct(tuple) => tuple.elems.iter().for_each(|part| bound(part, names)),
        Pat::Struct(fields) => {
            let parts = fields.fields.iter();
            parts.for_each(|field| bound(&field.pat, names));
        }
        _ => {}
    }
}
