//! From the command line to a listening server, until a signal ends it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::Context;
use rollmill_model::Decoder;
use rollmill_policy::tokenizer::Tokenizer;
use serde_json::json;
use tch::Device;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;

use crate::args::ServeArgs;
use crate::engine::Engine;
use crate::http::{Served, router};
use crate::protocol::Limits;
use crate::{checkpoint, process};

/// Serves until SIGTERM or Ctrl-C (success), or until the engine dies (101).
pub fn serve(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    if args.die_with_parent {
        process::die_with_parent()?;
    }
    set_threads(args.threads);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(run(args))
}

/// Sets libtorch's threads; by default one per core, whatever OMP_NUM_THREADS says.
pub(crate) fn set_threads(threads: Option<u16>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    tch::set_num_threads(threads.map_or(cores as i32, i32::from));
}

async fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let (served, engine_ended) = load(args)?;
    let listener = TcpListener::bind(SocketAddr::new(args.host, args.port)).await;
    let listener =
        listener.with_context(|| format!("cannot listen on {}:{}; take another port", args.host, args.port))?;
    announce(listener.local_addr()?, &served.checkpoint, args.port_file.as_deref())?;
    let (died, mut engine_died) = oneshot::channel();
    let engine = served.engine.clone();
    let ended = async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
            _ = engine_ended => { let _ = died.send(()); }
        }
        engine.stop();
    };
    axum::serve(listener, router(served)).with_graceful_shutdown(ended).await?;
    Ok(if engine_died.try_recv().is_ok() { ExitCode::from(101) } else { ExitCode::SUCCESS })
}

/// Loads everything; the receiver ends with the engine's thread.
fn load(args: &ServeArgs) -> anyhow::Result<(Arc<Served>, oneshot::Receiver<()>)> {
    let tokenizer = Arc::new(Tokenizer::load(&args.model)?);
    let decoder = Decoder::load(&args.model, args.dtype.kind(), Device::Cpu)?;
    let checkpoint = match &args.checkpoint_id {
        Some(id) => id.clone(),
        None => checkpoint::digest(&args.model).with_context(|| format!("cannot hash {}", args.model.display()))?,
    };
    let limits = Limits { context: args.context as usize, vocab_size: decoder.config.vocab_size };
    let slots = usize::from(args.slots);
    let (engine, thread) = Engine::start(decoder, tokenizer.clone(), slots, limits.context, usize::from(args.queue))?;
    let (alive, ended) = oneshot::channel();
    std::thread::spawn(move || {
        let _alive: oneshot::Sender<()> = alive;
        let _ = thread.join();
    });
    let model = args.model.canonicalize().unwrap_or_else(|_| args.model.clone());
    let model = model.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    let requests = AtomicU64::new(0);
    Ok((Arc::new(Served { engine, tokenizer, model, checkpoint, limits, slots, requests }), ended))
}

/// Says on stdout and in the port file that requests are welcome.
fn announce(address: SocketAddr, checkpoint: &str, port_file: Option<&Path>) -> anyhow::Result<()> {
    if let Some(path) = port_file {
        // renamed into place, so that nobody reads half a number
        let part = path.with_extension("part");
        let written =
            std::fs::write(&part, format!("{}\n", address.port())).and_then(|()| std::fs::rename(&part, path));
        written.with_context(|| format!("cannot write {}; check its folder", path.display()))?;
    }
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{}", json!({ "listening": address.to_string(), "checkpoint": checkpoint }))?;
    Ok(stdout.flush()?)
}
