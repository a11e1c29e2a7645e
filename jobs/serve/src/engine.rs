//! The engine: one thread that owns the model and batches whatever requests there are, step by step.
//!
//! In: [`Request`]s through a bounded queue. Out: a [`Completion`] each. Requests join and leave between steps; long prompts
//! are fed in pieces, so that others go on. A request whose receiver is dropped gives its slot back at the next step.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use rollmill_model::{Decoder, ModelError, SlotStep};
use rollmill_policy::tokenizer::Tokenizer;
use tokio::sync::oneshot;

pub use crate::generation::{Completion, Finish, Request, StopReason};

use crate::generation::Generation;
use crate::slots::{Claim, Slots};

/// Tokens of prompts computed in one step, over all requests.
const PROMPT_TOKENS: usize = 256;

/// Why a request got no completion.
#[derive(Debug, Clone, thiserror::Error)]
pub enum EngineError {
    /// The queue is full: try again later.
    #[error("the queue is full; try again later")]
    Busy,
    /// The program is stopping: try again at its successor.
    #[error("the server is stopping; try again later")]
    Stopping,
    /// The model failed on this request; the detail says why. Do not repeat it.
    #[error("generation failed: {0}")]
    Failed(String),
}

type Reply = oneshot::Sender<Result<Completion, EngineError>>;

enum Message {
    Generate(Request, Reply),
    /// Looks at the stop flag.
    Wake,
}

/// The way to the engine; clones share it.
#[derive(Clone)]
pub struct Engine {
    inbox: SyncSender<Message>,
    stopping: Arc<AtomicBool>,
    generated: Arc<AtomicU64>,
    reused: Arc<AtomicU64>,
}

impl Engine {
    /// Starts the engine's thread. `queue` requests may wait for a slot.
    pub fn start(
        decoder: Decoder,
        tokenizer: Arc<Tokenizer>,
        slots: usize,
        context: usize,
        queue: usize,
    ) -> Result<(Engine, JoinHandle<()>), ModelError> {
        let (inbox, messages) = sync_channel(queue);
        let engine = Engine { inbox, stopping: Arc::default(), generated: Arc::default(), reused: Arc::default() };
        let mut worker = Worker {
            slots: Slots::new(&decoder, slots, context)?,
            decoder,
            tokenizer,
            active: (0..slots).map(|_| None).collect(),
            waiting: VecDeque::new(),
            messages,
            logits: vec![],
            shared: engine.shared(),
        };
        let thread = std::thread::Builder::new().name("engine".into()).spawn(move || worker.run());
        let thread = thread.map_err(|e| ModelError::Step(format!("cannot start the engine's thread: {e}")))?;
        Ok((engine, thread))
    }

    /// Queues a request; the receiver gets its completion. Dropping the receiver cancels it.
    pub fn submit(&self, request: Request) -> Result<oneshot::Receiver<Result<Completion, EngineError>>, EngineError> {
        if self.stopping.load(Ordering::SeqCst) {
            return Err(EngineError::Stopping);
        }
        let (reply, receiver) = oneshot::channel();
        match self.inbox.try_send(Message::Generate(request, reply)) {
            Ok(()) => Ok(receiver),
            Err(TrySendError::Full(_)) => Err(EngineError::Busy),
            Err(TrySendError::Disconnected(_)) => Err(EngineError::Stopping),
        }
    }

    /// Ends the thread after its current step; whatever is queued or active gets [`EngineError::Stopping`].
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        // a full queue needs no wake-up: the engine is not waiting for messages
        let _ = self.inbox.try_send(Message::Wake);
    }

    /// Tokens sampled since the start.
    pub fn tokens_generated(&self) -> u64 {
        self.generated.load(Ordering::Relaxed)
    }

    /// Prompt tokens found in the cache, and so not computed, since the start.
    pub fn prompt_tokens_reused(&self) -> u64 {
        self.reused.load(Ordering::Relaxed)
    }

    fn shared(&self) -> Shared {
        Shared { stopping: self.stopping.clone(), generated: self.generated.clone(), reused: self.reused.clone() }
    }
}

/// What the thread shares with [`Engine`]; it must not hold the sender, or its queue would never close.
struct Shared {
    stopping: Arc<AtomicBool>,
    generated: Arc<AtomicU64>,
    reused: Arc<AtomicU64>,
}

struct Worker {
    decoder: Decoder,
    tokenizer: Arc<Tokenizer>,
    slots: Slots,
    /// By slot.
    active: Vec<Option<(Generation, Reply)>>,
    /// Requests for which a prefix is being computed; never more than slots.
    waiting: VecDeque<(Request, Reply)>,
    messages: Receiver<Message>,
    /// Reused between steps.
    logits: Vec<f32>,
    shared: Shared,
}

impl Worker {
    fn run(&mut self) {
        loop {
            self.drop_cancelled();
            if !self.admit() || self.shared.stopping.load(Ordering::SeqCst) {
                return self.refuse_all();
            }
            if self.active.iter().any(Option::is_some)
                && let Err(error) = self.step()
            {
                self.fail_active(&EngineError::Failed(error.to_string()));
            }
        }
    }

    fn drop_cancelled(&mut self) {
        self.waiting.retain(|(_, reply)| !reply.is_closed());
        for slot in 0..self.active.len() {
            if self.active[slot].as_ref().is_some_and(|(_, reply)| reply.is_closed()) {
                self.active[slot] = None;
                self.slots.release(slot);
            }
        }
    }

    /// Gives slots to requests while there are both; waits for one where there is nothing else to do. False at the end.
    fn admit(&mut self) -> bool {
        for (request, reply) in std::mem::take(&mut self.waiting) {
            self.place(request, reply);
        }
        while self.slots.any_free() && self.waiting.len() < self.active.len() {
            let idle = self.waiting.is_empty() && self.active.iter().all(Option::is_none);
            let message = if idle {
                self.messages.recv().ok()
            } else {
                match self.messages.try_recv() {
                    Ok(message) => Some(message),
                    Err(std::sync::mpsc::TryRecvError::Empty) => return true,
                    Err(std::sync::mpsc::TryRecvError::Disconnected) => None,
                }
            };
            match message {
                Some(Message::Generate(request, reply)) => self.place(request, reply),
                Some(Message::Wake) => return true,
                // nobody can ask any more: finish what is there
                None => return !idle,
            }
        }
        true
    }

    fn place(&mut self, request: Request, reply: Reply) {
        if reply.is_closed() {
            return;
        }
        match self.slots.claim(&request.prompt) {
            Claim::Slot(slot, held) => {
                self.shared.reused.fetch_add(held as u64, Ordering::Relaxed);
                self.active[slot] = Some((Generation::new(request), reply));
            }
            Claim::Wait => self.waiting.push_back((request, reply)),
        }
    }

    /// One pass of the model over all active slots, then one draw for each that has its whole sequence in the cache.
    fn step(&mut self) -> Result<(), ModelError> {
        let (cache, tokens) = self.slots.split();
        let mut budget = PROMPT_TOKENS;
        let mut steps: Vec<SlotStep<'_>> = vec![];
        for slot in (0..self.active.len()).filter(|&slot| self.active[slot].is_some()) {
            let lacking = &tokens(slot)[cache.len(slot)..];
            // single tokens always go; prompts share the budget
            let take = if lacking.len() == 1 { 1 } else { lacking.len().min(budget) };
            budget -= if lacking.len() == 1 { 0 } else { take };
            if take > 0 {
                steps.push(SlotStep { slot, tokens: &lacking[..take] });
            }
        }
        let fed: Vec<usize> = steps.iter().map(|step| step.slot).collect();
        let logits = self.decoder.step(cache, &steps)?;
        drop((steps, tokens));
        self.logits.resize(logits.numel(), 0.0);
        logits.f_copy_data(&mut self.logits, logits.numel())?;
        let rows = std::mem::take(&mut self.logits);
        for (slot, row) in fed.into_iter().zip(rows.chunks(self.decoder.config.vocab_size as usize)) {
            if self.slots.is_fed(slot) {
                self.draw(slot, row);
            }
        }
        self.logits = rows;
        Ok(())
    }

    fn draw(&mut self, slot: usize, logits: &[f32]) {
        let Some((mut generation, reply)) = self.active[slot].take() else { return };
        let (ends, context) = (&self.decoder.config.eos_token_ids, self.slots.cache.capacity());
        let finished = match generation.draw(logits, &self.tokenizer, ends, context) {
            Ok((token, None)) => {
                self.shared.generated.fetch_add(1, Ordering::Relaxed);
                self.slots.push(slot, i64::from(token));
                self.active[slot] = Some((generation, reply));
                return;
            }
            Ok((_, Some(completion))) => {
                self.shared.generated.fetch_add(1, Ordering::Relaxed);
                Ok(completion)
            }
            Err(error) => Err(error),
        };
        self.slots.release(slot);
        // an error means that the client went away; nobody is left to tell
        let _ = reply.send(finished);
    }

    fn fail_active(&mut self, error: &EngineError) {
        for slot in 0..self.active.len() {
            if let Some((_, reply)) = self.active[slot].take() {
                self.slots.wipe(slot);
                let _ = reply.send(Err(error.clone()));
            }
        }
    }

    fn refuse_all(&mut self) {
        self.fail_active(&EngineError::Stopping);
        for (_, reply) in self.waiting.drain(..) {
            let _ = reply.send(Err(EngineError::Stopping));
        }
        while let Ok(message) = self.messages.try_recv() {
            if let Message::Generate(_, reply) = message {
                let _ = reply.send(Err(EngineError::Stopping));
            }
        }
    }
}
