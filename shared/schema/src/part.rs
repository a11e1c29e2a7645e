//! A part: rows of one table as Parquet, with a footer that says whose they are.

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Rows of one group: small enough to page through trajectories of megabytes.
const ROW_GROUP: usize = 512;

/// A table's row type.
pub trait Row: Serialize + DeserializeOwned + Clone + Send + Sync + 'static {
    /// The table's name, which is also its folder.
    const TABLE: &'static str;
    /// Version of the schema. A reader accepts this one and older ones that only lack nullable columns.
    const VERSION: u32;
    /// The columns, in order.
    fn columns() -> Vec<FieldRef>;
    /// What identifies the row within its stage: the plan's item.
    fn key(&self) -> String;
}

/// What a part's footer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Table name.
    pub table: String,
    /// Schema version.
    pub version: u32,
    /// Nonce of the plan the part belongs to.
    pub plan: String,
    /// The attempt that wrote it.
    pub attempt: String,
    /// SHA-256 of the rows as JSON lines, in order.
    pub data_hash: String,
}

/// Why a part cannot be written or read. None of these passes by itself: stop the run.
#[derive(Debug, thiserror::Error)]
pub enum PartError {
    /// A row does not fit its schema: a bug.
    #[error("a row of table {table} does not fit its schema: {reason}")]
    Encode {
        /// The table.
        table: &'static str,
        /// What the encoder said.
        reason: String,
    },
    /// The bytes are no Parquet, or lack our footer.
    #[error("no readable part of table {table}: {reason}")]
    Decode {
        /// The table that was expected.
        table: &'static str,
        /// What the decoder said.
        reason: String,
    },
    /// Another table, or a newer version than this program knows.
    #[error(
        "expected table {table} up to version {version}, found {found} version {found_version}; use a newer rollmill"
    )]
    Version {
        /// The table that was expected.
        table: &'static str,
        /// The newest version known.
        version: u32,
        /// The table found.
        found: String,
        /// The version found.
        found_version: u32,
    },
}

fn schema<R: Row>() -> Arc<Schema> {
    Arc::new(Schema::new(R::columns()))
}

/// Rows to Parquet bytes. Deterministic: equal rows and identities give equal bytes.
pub fn encode<R: Row>(rows: &[R], plan: &str, attempt: &str) -> Result<Bytes, PartError> {
    let fail = |reason: String| PartError::Encode { table: R::TABLE, reason };
    let footer = [
        ("rollmill.table", R::TABLE.to_string()),
        ("rollmill.version", R::VERSION.to_string()),
        ("rollmill.plan", plan.to_string()),
        ("rollmill.attempt", attempt.to_string()),
        ("rollmill.data_hash", data_hash(rows).map_err(|e| fail(e.to_string()))?),
    ];
    let footer = footer.into_iter().map(|(k, v)| KeyValue::new(k.to_string(), v)).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3).map_err(|e| fail(e.to_string()))?))
        .set_max_row_group_row_count(Some(ROW_GROUP))
        .set_created_by("rollmill".into())
        .set_key_value_metadata(Some(footer))
        .build();
    let mut out = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut out, schema::<R>(), Some(properties)).map_err(|e| fail(e.to_string()))?;
    for group in rows.chunks(ROW_GROUP) {
        let batch: RecordBatch =
            serde_arrow::to_record_batch(&R::columns(), &group).map_err(|e| fail(e.to_string()))?;
        writer.write(&batch).map_err(|e| fail(e.to_string()))?;
    }
    writer.close().map_err(|e| fail(e.to_string()))?;
    Ok(Bytes::from(out))
}

/// SHA-256 over the rows as JSON lines.
pub fn data_hash<R: Row>(rows: &[R]) -> Result<String, serde_json::Error> {
    let mut hash = Sha256::new();
    for row in rows {
        hash.update(serde_json::to_vec(row)?);
        hash.update(b"\n");
    }
    Ok(hex::encode(hash.finalize()))
}

/// The footer alone.
pub fn read_footer<R: Row>(bytes: &Bytes) -> Result<Footer, PartError> {
    Ok(open::<R>(bytes)?.1)
}

/// Parquet bytes to rows and footer. Columns a file lacks must be nullable; columns it has beyond ours are not read.
pub fn decode<R: Row>(bytes: &Bytes) -> Result<(Vec<R>, Footer), PartError> {
    let fail = |reason: String| PartError::Decode { table: R::TABLE, reason };
    let (builder, footer) = open::<R>(bytes)?;
    let mut rows = Vec::new();
    for batch in builder.build().map_err(|e| fail(e.to_string()))? {
        let batch = batch.map_err(|e| fail(e.to_string()))?;
        let mut more: Vec<R> = serde_arrow::from_record_batch(&batch).map_err(|e| fail(e.to_string()))?;
        rows.append(&mut more);
    }
    Ok((rows, footer))
}

fn open<R: Row>(bytes: &Bytes) -> Result<(ParquetRecordBatchReaderBuilder<Bytes>, Footer), PartError> {
    let fail = |reason: String| PartError::Decode { table: R::TABLE, reason };
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes.clone()).map_err(|e| fail(e.to_string()))?;
    let pairs = builder.metadata().file_metadata().key_value_metadata();
    let get = |name: &str| {
        let found = pairs.and_then(|p| p.iter().find(|kv| kv.key == name)).and_then(|kv| kv.value.clone());
        found.ok_or_else(|| fail(format!("its footer lacks {name}")))
    };
    let version = get("rollmill.version")?;
    let footer = Footer {
        table: get("rollmill.table")?,
        version: version.parse().map_err(|_| fail(format!("its version is {version:?}")))?,
        plan: get("rollmill.plan")?,
        attempt: get("rollmill.attempt")?,
        data_hash: get("rollmill.data_hash")?,
    };
    if footer.table != R::TABLE || footer.version > R::VERSION {
        let (found, found_version) = (footer.table, footer.version);
        return Err(PartError::Version { table: R::TABLE, version: R::VERSION, found, found_version });
    }
    Ok((builder, footer))
}
