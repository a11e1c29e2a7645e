//! One run: its store, its frozen configuration, and this process's identity in it.

use crate::config::{Config, Operations, SandboxSettings};
use crate::fork::{self, ForkedFrom};
use crate::{Clock, Drain, JobError, SystemClock, env};
use bytes::Bytes;
use rollmill_schema::Provenance;
use rollmill_store::{AttemptId, Blobs, Commit, Key, Nonce, create_once};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;

/// `run.toml`, as stored: create-only.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunFile {
    /// Id of the run: random, so that a fork is another run.
    run_id: String,
    fingerprint: String,
    code_version: String,
    /// The experiment as TOML text.
    experiment: String,
    /// The run this one is a fork of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    forked_from: Option<ForkedFrom>,
}

/// Flags that every job has.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// The run: a folder, or s3://bucket/prefix
    #[arg(long, env = env::RUN, value_name = "URI")]
    pub run: String,
    /// Work on this shard only (default: the scheduler's array index, else any free shard)
    #[arg(long)]
    pub shard: Option<u32>,
    /// With a shard: work on every Nth after it too, as an array of N elements does that is shorter than the plan
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true)]
    pub fold: u32,
    /// Leave with exit 11 instead of waiting for shards that other workers hold
    #[arg(long)]
    pub no_wait: bool,
    /// Seconds a silent worker keeps its shard
    #[arg(long, value_name = "SECONDS")]
    pub lease_seconds: Option<u64>,
    /// Finished items per chunk, at most
    #[arg(long, value_name = "ITEMS")]
    pub chunk_items: Option<usize>,
    /// Seconds between chunks, at most
    #[arg(long, value_name = "SECONDS")]
    pub chunk_seconds: Option<u64>,
    /// Tries of an item before it becomes a failed row
    #[arg(long, value_name = "TRIES")]
    pub item_tries: Option<u32>,
    /// How sandboxes are made: namespaces or docker, then root=, warm=, image=, runtime=, containers= after commas
    #[arg(long, env = env::SANDBOX, value_name = "BACKEND[,KEY=VALUE]")]
    pub sandbox: Option<SandboxSettings>,
    /// Show no progress
    #[arg(long, short)]
    pub quiet: bool,
}

/// An open run.
#[derive(Clone)]
pub struct Run {
    /// Where the bytes lie. Job code does not touch it.
    pub(crate) blobs: Arc<dyn Blobs>,
    /// Id of the run.
    pub id: String,
    /// The frozen experiment.
    pub config: Config,
    /// Settings that may change.
    pub operations: Operations,
    /// This process.
    pub attempt: AttemptId,
    /// Its clocks.
    pub clock: Arc<dyn Clock>,
    /// Raised when it should leave.
    pub drain: Drain,
    /// Whether to show progress.
    pub quiet: bool,
    /// The run this one is a fork of.
    pub forked_from: Option<ForkedFrom>,
}

impl Run {
    /// Creates the run at `address`, or opens the one that is there if its experiment is the same.
    pub async fn init(address: &str, config: &Config) -> Result<Run, JobError> {
        let blobs = rollmill_store::open(address, &env::s3_settings())?;
        rollmill_store::probe::probe(blobs.as_ref()).await?;
        Run::create(blobs, config, None).await
    }

    /// Makes the run at `address` a fork of `parent` that does `round` and all later ones itself, or opens the one that is
    /// there if it is that.
    pub async fn fork(parent: &Run, address: &str, config: &Config, round: u32) -> Result<Run, JobError> {
        fork::check(parent, config, round).await?;
        let blobs = rollmill_store::open(address, &env::s3_settings())?;
        rollmill_store::probe::probe(blobs.as_ref()).await?;
        let from = ForkedFrom { run_id: parent.id.clone(), address: parent.address(), round };
        if blobs.size(&Key::new("run.toml")?).await?.is_none() {
            fork::copy(parent, blobs.as_ref(), round).await?;
        }
        let run = Run::create(blobs, config, Some(from.clone())).await?;
        match &run.forked_from {
            Some(there) if (&there.run_id, there.round) == (&from.run_id, from.round) => Ok(run),
            there => {
                let said =
                    there.as_ref().map_or("no fork".into(), |f| format!("a fork of {} at {}", f.run_id, f.round));
                let difference = format!("it is {said}, not of {} at {}", from.run_id, from.round);
                Err(JobError::RunChanged { address: address.into(), difference })
            }
        }
    }

    /// Creates `run.toml`, or opens the run that is there if its experiment is the same.
    pub async fn create(
        blobs: Arc<dyn Blobs>,
        config: &Config,
        forked_from: Option<ForkedFrom>,
    ) -> Result<Run, JobError> {
        let address = blobs.address();
        let file = RunFile {
            run_id: Nonce::fresh().to_string(),
            fingerprint: config.fingerprint(),
            code_version: crate::CODE_VERSION.into(),
            experiment: config.experiment(),
            forked_from,
        };
        let text = toml::to_string(&file)
            .map_err(|e| JobError::Config { place: address.clone(), reason: format!("cannot be stored ({e})") })?;
        create_once(blobs.as_ref(), &Key::new("run.toml")?, Bytes::from(text)).await?;
        let run = Run::from_blobs(blobs, config.operations()?).await?;
        if run.config.fingerprint() != config.fingerprint() {
            let difference = run.config.difference(config);
            return Err(JobError::RunChanged { address, difference });
        }
        Ok(run)
    }

    /// Opens an existing run with default operational settings.
    pub async fn open(address: &str) -> Result<Run, JobError> {
        // A mistyped folder must not be made by looking at it.
        if !address.contains("://") && address != "memory:" && !Path::new(address).is_dir() {
            return Err(JobError::NoRun { address: address.into() });
        }
        let blobs = rollmill_store::open(address, &env::s3_settings())?;
        Run::from_blobs(blobs, Operations::default()).await
    }

    /// Opens the run that `args` name and applies them.
    pub async fn from_args(args: &RunArgs) -> Result<Run, JobError> {
        let mut run = Run::open(&args.run).await?;
        let operations = &mut run.operations;
        operations.lease_seconds = args.lease_seconds.unwrap_or(operations.lease_seconds);
        operations.chunk_items = args.chunk_items.unwrap_or(operations.chunk_items);
        operations.chunk_seconds = args.chunk_seconds.unwrap_or(operations.chunk_seconds);
        operations.item_tries = args.item_tries.unwrap_or(operations.item_tries);
        operations.sandbox = args.sandbox.clone().unwrap_or_default();
        run.quiet = args.quiet;
        run.drain = Drain::on_signals()?;
        Ok(run)
    }

    /// Opens the run in a store that is already open.
    pub async fn from_blobs(blobs: Arc<dyn Blobs>, operations: Operations) -> Result<Run, JobError> {
        let key = Key::new("run.toml")?;
        let Some(bytes) = blobs.get(&key).await? else {
            return Err(JobError::NoRun { address: blobs.address() });
        };
        let corrupt = |reason: String| JobError::Corrupt { key: key.to_string(), reason };
        let text = std::str::from_utf8(&bytes).map_err(|e| corrupt(e.to_string()))?;
        let file: RunFile = toml::from_str(text).map_err(|e| corrupt(e.message().to_string()))?;
        let config = Config::parse(&file.experiment, "run.toml")?;
        Ok(Run {
            blobs,
            id: file.run_id,
            config,
            operations,
            attempt: AttemptId::fresh(),
            clock: Arc::new(SystemClock::default()),
            drain: Drain::default(),
            quiet: false,
            forked_from: file.forked_from,
        })
    }

    /// Where the run lies, for people.
    pub fn address(&self) -> String {
        self.blobs.address()
    }

    /// The version of scoring that the configuration names: which rewards a reader takes unless it is told otherwise.
    pub fn score_version(&self) -> Result<String, JobError> {
        #[derive(Deserialize)]
        struct Version {
            #[serde(default = "first")]
            version: String,
        }
        fn first() -> String {
            "v1".into()
        }
        Ok(self.config.section::<Version>("score")?.version)
    }

    /// The provenance of a row this process writes.
    pub fn provenance(&self, round: u32, seed: i64) -> Provenance {
        Provenance {
            run_id: self.id.clone(),
            round: round as i32,
            attempt: self.attempt.to_string(),
            code_version: crate::CODE_VERSION.into(),
            seed,
        }
    }

    /// Creates a small record once; returns the record that is there now, and whether it is this one.
    pub(crate) async fn record<T: Serialize + serde::de::DeserializeOwned>(
        &self,
        key: &Key,
        value: T,
    ) -> Result<(T, bool), JobError> {
        let corrupt = |e: serde_json::Error| JobError::Corrupt { key: key.to_string(), reason: e.to_string() };
        let bytes = serde_json::to_vec(&value).map_err(corrupt)?;
        match create_once(self.blobs.as_ref(), key, Bytes::from(bytes)).await? {
            Commit::Mine => Ok((value, true)),
            Commit::Lost(bytes) => Ok((serde_json::from_slice(&bytes).map_err(corrupt)?, false)),
        }
    }

    /// Reads a small record.
    pub(crate) async fn read_record<T: serde::de::DeserializeOwned>(&self, key: &Key) -> Result<Option<T>, JobError> {
        let Some(bytes) = self.blobs.get(key).await? else { return Ok(None) };
        let corrupt = |e: serde_json::Error| JobError::Corrupt { key: key.to_string(), reason: e.to_string() };
        serde_json::from_slice(&bytes).map(Some).map_err(corrupt)
    }
}
