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
use std::marker::PhantomData;
use std::sync::Arc;

/// Rows of one group: small enough to page through trajectories of megabytes.
pub const ROW_GROUP: usize = 512;

/// Where a chunk's footer lists its keys.
const KEYS: &str = "rollmill.keys";

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
    let mut writer = PartWriter::<R>::new(plan, attempt)?;
    for group in rows.chunks(ROW_GROUP) {
        writer.write(group)?;
    }
    writer.finish()
}

/// Like [`encode`], and the footer lists the rows' keys, so that [`read_keys`] need not decode the rows.
pub fn encode_with_keys<R: Row>(rows: &[R], plan: &str, attempt: &str) -> Result<Bytes, PartError> {
    let mut writer = PartWriter::<R>::new(plan, attempt)?;
    for group in rows.chunks(ROW_GROUP) {
        writer.write(group)?;
    }
    let keys: Vec<String> = rows.iter().map(Row::key).collect();
    let keys = serde_json::to_string(&keys).map_err(|e| encode_error::<R>(e.to_string()))?;
    writer.parquet.append_key_value_metadata(KeyValue::new(KEYS.to_string(), keys));
    writer.finish()
}

/// Writes a part group by group: one group of rows and the encoded part are in memory, never all rows.
pub struct PartWriter<R: Row> {
    parquet: ArrowWriter<Vec<u8>>,
    hash: Sha256,
    row: PhantomData<fn(R)>,
}

impl<R: Row> PartWriter<R> {
    /// A part of the plan with nonce `plan`, written by `attempt`.
    pub fn new(plan: &str, attempt: &str) -> Result<PartWriter<R>, PartError> {
        let footer = [
            ("rollmill.table", R::TABLE.to_string()),
            ("rollmill.version", R::VERSION.to_string()),
            ("rollmill.plan", plan.to_string()),
            ("rollmill.attempt", attempt.to_string()),
        ];
        let footer = footer.into_iter().map(|(k, v)| KeyValue::new(k.to_string(), v)).collect();
        let level = ZstdLevel::try_new(3).map_err(|e| encode_error::<R>(e.to_string()))?;
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(ROW_GROUP))
            .set_created_by("rollmill".into())
            .set_key_value_metadata(Some(footer))
            .build();
        let parquet = ArrowWriter::try_new(Vec::new(), schema::<R>(), Some(properties))
            .map_err(|e| encode_error::<R>(e.to_string()))?;
        Ok(PartWriter { parquet, hash: Sha256::new(), row: PhantomData })
    }

    /// Adds rows. Groups of [`ROW_GROUP`] rows give the same bytes as [`encode`].
    pub fn write(&mut self, rows: &[R]) -> Result<(), PartError> {
        let fail = |e: String| encode_error::<R>(e);
        hash_rows(&mut self.hash, rows).map_err(|e| fail(e.to_string()))?;
        let batch: RecordBatch = serde_arrow::to_record_batch(&R::columns(), &rows).map_err(|e| fail(e.to_string()))?;
        self.parquet.write(&batch).map_err(|e| fail(e.to_string()))
    }

    /// The bytes.
    pub fn finish(mut self) -> Result<Bytes, PartError> {
        let hash = hex::encode(self.hash.finalize());
        self.parquet.append_key_value_metadata(KeyValue::new("rollmill.data_hash".to_string(), hash));
        let out = self.parquet.into_inner().map_err(|e| encode_error::<R>(e.to_string()))?;
        Ok(Bytes::from(out))
    }
}

fn encode_error<R: Row>(reason: String) -> PartError {
    PartError::Encode { table: R::TABLE, reason }
}

/// SHA-256 over the rows as JSON lines.
pub fn data_hash<R: Row>(rows: &[R]) -> Result<String, serde_json::Error> {
    let mut hash = Sha256::new();
    hash_rows(&mut hash, rows)?;
    Ok(hex::encode(hash.finalize()))
}

fn hash_rows<R: Row>(hash: &mut Sha256, rows: &[R]) -> Result<(), serde_json::Error> {
    for row in rows {
        hash.update(serde_json::to_vec(row)?);
        hash.update(b"\n");
    }
    Ok(())
}

/// The footer alone.
pub fn read_footer<R: Row>(bytes: &Bytes) -> Result<Footer, PartError> {
    Ok(open::<R>(bytes)?.1)
}

/// The keys of the rows, as [`encode_with_keys`] wrote them into the footer, and the footer.
pub fn read_keys<R: Row>(bytes: &Bytes) -> Result<(Vec<String>, Footer), PartError> {
    let fail = |reason: String| PartError::Decode { table: R::TABLE, reason };
    let (builder, footer) = open::<R>(bytes)?;
    let pairs = builder.metadata().file_metadata().key_value_metadata();
    let keys = pairs.and_then(|p| p.iter().find(|kv| kv.key == KEYS)).and_then(|kv| kv.value.as_deref());
    let keys = keys.ok_or_else(|| fail(format!("its footer lacks {KEYS}")))?;
    Ok((serde_json::from_str(keys).map_err(|e| fail(e.to_string()))?, footer))
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
