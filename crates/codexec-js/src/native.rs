//! The native functions of the prelude. Guests never see them: the prelude keeps them in its
//! closures.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use codexec_types::{Ask, CallError, FromGuest, Image, ImageType, Json, OutputStream};
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Exception, Object, Result, TypedArray, Value};

use crate::positions::GuestTexts;
use crate::random::{self, Random};
use crate::url;
use crate::wire::{HostGone, Wire};

/// Longer texts are split into several frames.
const OUTPUT_BYTES: usize = 512 << 10;

/// Limit of an ask, so that it always fits into a frame.
const ASK_BYTES: usize = 9 << 20;

/// Limit of an image as base64.
const IMAGE_BYTES: usize = 8 << 20;

/// Limit of a progress message, which is a single short line.
const PROGRESS_BYTES: usize = 4 << 10;

/// Minimum interval between two checks for an interrupt while code computes.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// State that the natives share with the worker. Empty until a run starts.
#[derive(Default)]
pub(crate) struct HostLink {
    pub(crate) wire: RefCell<Option<Wire>>,
    pub(crate) texts: RefCell<GuestTexts>,
    pub(crate) began: RefCell<Option<Instant>>,
    last_check: Cell<Option<Instant>>,
    random: RefCell<Random>,
}

impl HostLink {
    pub(crate) fn with_wire<T>(
        &self,
        act: impl FnOnce(&mut Wire) -> std::result::Result<T, HostGone>,
    ) -> std::result::Result<T, HostGone> {
        self.wire.borrow_mut().as_mut().ok_or(HostGone).and_then(act)
    }

    /// Returns the milliseconds since the run started.
    pub(crate) fn now_ms(&self) -> f64 {
        self.began.borrow().map_or(0.0, |began| began.elapsed().as_secs_f64() * 1_000.0)
    }

    /// True if the current cell has been interrupted, as far as received.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.wire.borrow().as_ref().is_none_or(Wire::is_interrupted)
    }

    /// Reads the socket for an interrupt, at most every `CHECK_INTERVAL`. The engine calls this often.
    pub(crate) fn check_interrupt(&self) -> bool {
        // A native function that waits has borrowed the wire, and checks for interrupts itself.
        let Ok(mut wire) = self.wire.try_borrow_mut() else { return false };
        let Some(wire) = wire.as_mut() else { return true };
        let now = Instant::now();
        let is_due =
            self.last_check.get().is_none_or(|last_check| now > last_check + CHECK_INTERVAL);
        if !is_due || wire.is_interrupted() {
            return wire.is_interrupted();
        }
        self.last_check.set(Some(now));
        wire.poll_interrupt().unwrap_or(true)
    }

    fn print(&self, stream: OutputStream, text: &str) -> std::result::Result<(), HostGone> {
        let mut rest = text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.floor_char_boundary(OUTPUT_BYTES));
            rest = after;
            let frame = FromGuest::Output { stream, text: piece.to_owned() };
            self.with_wire(|wire| wire.send(&frame))?;
        }
        Ok(())
    }

    fn ask(&self, ask: Ask) -> std::result::Result<u32, HostGone> {
        self.with_wire(|wire| {
            let id = wire.take_id();
            wire.send(&FromGuest::Ask { id, ask })?;
            Ok(id)
        })
    }
}

/// Creates the object that every file of the prelude gets.
pub(crate) fn make_natives<'js>(ctx: &Ctx<'js>, host: &Rc<HostLink>) -> Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    add_communication(&natives, host)?;
    add_clock_and_random(&natives, host)?;
    natives.set("intl", crate::intl::make_natives(ctx)?)?;
    natives.set(
        "parseUrl",
        Func::from(|text: String, base: Option<String>| url::parse(&text, base.as_deref())),
    )?;
    natives.set(
        "setUrlPart",
        Func::from(|href: String, part: String, value: String| url::set_part(&href, &part, &value)),
    )?;
    let own = Rc::clone(host);
    natives.set(
        "mapStack",
        Func::from(move |stack: String| own.texts.borrow().parse_stack(&stack, "").text),
    )?;
    natives.set("byteLength", Func::from(|text: String| text.len()))?;
    natives.set(
        "encode",
        Func::from(|ctx: Ctx<'js>, text: String| TypedArray::<u8>::new(ctx, text.into_bytes())),
    )?;
    Ok(natives)
}

fn add_communication<'js>(natives: &Object<'js>, host: &Rc<HostLink>) -> Result<()> {
    let own = Rc::clone(host);
    natives.set(
        "print",
        Func::from(move |ctx: Ctx<'js>, is_error: bool, text: String| {
            let stream = if is_error { OutputStream::Err } else { OutputStream::Out };
            own.print(stream, &text).map_err(|_| host_gone_error(&ctx))
        }),
    )?;
    let own = Rc::clone(host);
    natives.set(
        "progress",
        Func::from(move |ctx: Ctx<'js>, mut text: String| {
            text.truncate(text.floor_char_boundary(PROGRESS_BYTES));
            own.with_wire(|wire| wire.send(&FromGuest::Progress(text)))
                .map_err(|_| host_gone_error(&ctx))
        }),
    )?;
    let own = Rc::clone(host);
    natives.set(
        "image",
        Func::from(move |ctx: Ctx<'js>, mime: String, base64: String| {
            let image = make_image(&ctx, &mime, base64)?;
            own.with_wire(|wire| wire.send(&FromGuest::Image(image)))
                .map_err(|_| host_gone_error(&ctx))
        }),
    )?;
    let own = Rc::clone(host);
    natives.set(
        "ask",
        Func::from(move |ctx: Ctx<'js>, text: String| {
            if text.len() > ASK_BYTES {
                let message =
                    format!("this is {} bytes long; at most {ASK_BYTES} are allowed", text.len());
                return Err(Exception::throw_range(&ctx, &message));
            }
            let ask = serde_json::from_str(&text).map_err(|_| {
                Exception::throw_type(&ctx, "this is not a valid request to the host")
            })?;
            own.ask(ask).map_err(|_| host_gone_error(&ctx))
        }),
    )?;
    let own = Rc::clone(host);
    natives.set(
        "wait",
        Func::from(move |ctx: Ctx<'js>, id: u32| {
            match own.with_wire(|wire| wire.wait_for(id)).map_err(|_| host_gone_error(&ctx))? {
                Some(result) => answer_value(&ctx, &result),
                // The interrupt handler stops code that catches this.
                None => Err(Exception::throw_internal(&ctx, "interrupted")),
            }
        }),
    )
}

fn make_image(ctx: &Ctx<'_>, mime: &str, base64: String) -> Result<Image> {
    if base64.len() > IMAGE_BYTES {
        let message = format!(
            "this image is {} characters of base64; at most {IMAGE_BYTES} are allowed",
            base64.len()
        );
        return Err(Exception::throw_range(ctx, &message));
    }
    let mime = ImageType::parse(mime).ok_or_else(|| {
        let message = format!(
            "emit takes png, jpeg, gif and webp images, and wav, mp3, ogg and flac audio, not \
             {mime:.60}"
        );
        Exception::throw_type(ctx, &message)
    })?;
    Ok(Image { mime, base64 })
}

fn add_clock_and_random<'js>(natives: &Object<'js>, host: &Rc<HostLink>) -> Result<()> {
    let own = Rc::clone(host);
    natives.set("now", Func::from(move || own.now_ms()))?;
    let own = Rc::clone(host);
    natives.set(
        "random",
        Func::from(move |ctx: Ctx<'js>| {
            own.random.borrow_mut().fraction().map_err(|_| no_random_error(&ctx))
        }),
    )?;
    natives.set(
        "randomBytes",
        Func::from(|ctx: Ctx<'js>, count: usize| {
            let bytes = random::bytes(count).map_err(|_| no_random_error(&ctx))?;
            TypedArray::<u8>::new(ctx, bytes)
        }),
    )
}

/// Returns `{ok: true, result}` or `{ok: false, error: {code, message, server, tool}}`, parsed by
/// the engine itself, so that no function that the guest has replaced is involved.
fn answer_value<'js>(
    ctx: &Ctx<'js>,
    result: &std::result::Result<Json, CallError>,
) -> Result<Value<'js>> {
    let text = match result {
        Ok(json) => format!("{{\"ok\":true,\"result\":{}}}", json.text()),
        Err(error) => format!("{{\"ok\":false,\"error\":{}}}", error_json(error)),
    };
    ctx.json_parse(text)
}

pub(crate) fn error_json(error: &CallError) -> String {
    serde_json::to_string(error).unwrap_or_else(|_| "null".to_owned())
}

fn host_gone_error(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_internal(ctx, "the host is gone")
}

fn no_random_error(ctx: &Ctx<'_>) -> rquickjs::Error {
    Exception::throw_internal(ctx, "random numbers are not available")
}
