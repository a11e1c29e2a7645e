//! Weights between a folder and a [`Decoder`]: Hugging Face safetensors, one file or sharded with an index.
//!
//! What must hold: the tensors of the folder are exactly those of the config, by name and shape. Saved files have the
//! same bytes for the same weights (F32, sorted by the format, one fixed metadata entry).

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use safetensors::tensor::View;
use safetensors::{Dtype, SafeTensors};
use tch::{Device, Kind, Tensor};

use crate::config::read_json;
use crate::layout::layout;
use crate::lora::Adapter;
use crate::{Decoder, ModelConfig, ModelError};

impl Decoder {
    /// Reads a Hugging Face folder: `config.json` and `model.safetensors`, or shards named by
    /// `model.safetensors.index.json`. Weights are converted to `kind` and moved to `device`.
    pub fn load(dir: &Path, kind: Kind, device: Device) -> Result<Decoder, ModelError> {
        let config = ModelConfig::load(dir)?;
        let mut found = HashMap::new();
        for file in weight_files(dir)? {
            read_file(&file, kind, device, &mut found)?;
        }
        // Old exports carry the rotary table, and a copy of the tied output matrix.
        let copy = config.tie_word_embeddings.then_some("lm_head.weight");
        found.retain(|name, _| !name.ends_with("rotary_emb.inv_freq") && Some(name.as_str()) != copy);
        let says = format!("config.json (model_type {})", config.family.model_type());
        let named = arrange(layout(&config), dir, &says, found)?;
        Ok(Decoder { config, named, lora: None })
    }

    /// Writes `model.safetensors` (F32, Hugging Face names, adapters merged into the weights), `config.json` and
    /// `generation_config.json` into `dir`, which is made if absent. Nothing else is copied (no tokenizer).
    pub fn save(&self, dir: &Path) -> Result<(), ModelError> {
        std::fs::create_dir_all(dir).map_err(|e| ModelError::io(dir, e))?;
        let adapter = |name: &str| self.lora.as_ref().and_then(|lora| lora.adapter(name));
        let views = self.named.iter().map(|(name, tensor)| (name.as_str(), AsF32::of(tensor, adapter(name))));
        write_safetensors(&dir.join("model.safetensors"), views)?;
        self.config.save(dir)
    }
}

/// Writes tensors as F32 with metadata {"format": "pt"}; the same tensors give the same bytes.
pub(crate) fn write_tensors(path: &Path, tensors: &[(&str, &Tensor)]) -> Result<(), ModelError> {
    let views = tensors.iter().map(|(name, tensor)| (*name, AsF32::of(tensor, None)));
    write_safetensors(path, views)
}

/// Writes a safetensors file with the metadata `transformers` asks for, readable by all (the format crate's is private).
pub(crate) fn write_safetensors<S, V>(path: &Path, views: impl IntoIterator<Item = (S, V)>) -> Result<(), ModelError>
where
    S: AsRef<str> + Ord + std::fmt::Display,
    V: View,
{
    let metadata = HashMap::from([("format".to_string(), "pt".to_string())]);
    safetensors::serialize_to_file(views, Some(metadata), path)
        .map_err(|e| ModelError::bad(path, format!("cannot be written ({e}); check the folder and the free space")))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644)).map_err(|e| ModelError::io(path, e))
}

/// Reads every tensor of one file into `found`, by name.
pub(crate) fn read_file(
    path: &Path,
    kind: Kind,
    device: Device,
    found: &mut HashMap<String, Tensor>,
) -> Result<(), ModelError> {
    let bytes = std::fs::read(path).map_err(|e| ModelError::io(path, e))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|e| ModelError::bad(path, format!("is no safetensors file ({e}); fetch it again")))?;
    for (name, view) in file.iter() {
        let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
        let stored = kind_of(view.dtype()).ok_or_else(|| {
            ModelError::bad(path, format!("{name} has dtype {:?}; convert it to F32, F16 or BF16", view.dtype()))
        })?;
        let tensor = Tensor::f_from_data_size(view.data(), &shape, stored)?;
        if found.insert(name.to_string(), tensor.f_to_kind(kind)?.f_to_device(device)?).is_some() {
            return Err(ModelError::bad(path, format!("{name} is also in another shard; remove one of the two")));
        }
    }
    Ok(())
}

fn kind_of(dtype: Dtype) -> Option<Kind> {
    match dtype {
        Dtype::F64 => Some(Kind::Double),
        Dtype::F32 => Some(Kind::Float),
        Dtype::F16 => Some(Kind::Half),
        Dtype::BF16 => Some(Kind::BFloat16),
        _ => None,
    }
}

fn weight_files(dir: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let (whole, index) = (dir.join("model.safetensors"), dir.join("model.safetensors.index.json"));
    // where both are, `transformers` takes the whole file too: shards may be older than a model saved over them
    if whole.exists() || !index.exists() {
        return Ok(vec![whole]);
    }
    let json = read_json(&index)?;
    let map = json.get("weight_map").and_then(|m| m.as_object());
    let map = map.ok_or_else(|| ModelError::bad(&index, "has no weight_map; fetch the file again"))?;
    let files: Option<BTreeSet<&str>> = map.values().map(|v| v.as_str().filter(|f| !f.contains('/'))).collect();
    let files = files.ok_or_else(|| ModelError::bad(&index, "weight_map must name files of this folder; fix it"))?;
    Ok(files.into_iter().map(|file| dir.join(file)).collect())
}

/// Takes the wanted tensors out of `found` in order; complains of missing, extra and misshapen ones by name. `says` is who
/// wants them.
pub(crate) fn arrange(
    wanted: Vec<(String, Vec<i64>)>,
    path: &Path,
    says: &str,
    mut found: HashMap<String, Tensor>,
) -> Result<Vec<(String, Tensor)>, ModelError> {
    let missing: Vec<&str> =
        wanted.iter().map(|(name, _)| name.as_str()).filter(|name| !found.contains_key(*name)).collect();
    if !missing.is_empty() {
        let detail =
            format!("lacks the tensors {}, which {says} asks for; fetch all files, or fix it", listed(&missing));
        return Err(ModelError::bad(path, detail));
    }
    let mut named = Vec::with_capacity(wanted.len());
    for (name, shape) in wanted {
        let Some(tensor) = found.remove(&name) else { continue };
        if tensor.size() != shape {
            let detail = format!("{name} has shape {:?}, {says} says {shape:?}; fix one of them", tensor.size());
            return Err(ModelError::bad(path, detail));
        }
        named.push((name, tensor));
    }
    let extra: BTreeSet<&str> = found.keys().map(String::as_str).collect();
    if !extra.is_empty() {
        let names: Vec<&str> = extra.into_iter().collect();
        let detail = format!("has tensors that {says} does not account for: {}; fix one of them", listed(&names));
        return Err(ModelError::bad(path, detail));
    }
    Ok(named)
}

fn listed(names: &[&str]) -> String {
    let shown = names.iter().take(5).copied().collect::<Vec<_>>().join(", ");
    if names.len() > 5 { format!("{shown} and {} more", names.len() - 5) } else { shown }
}

/// A tensor as the bytes of a safetensors entry; converted one at a time, when written.
struct AsF32<'a> {
    tensor: &'a Tensor,
    /// Merged into the tensor.
    adapter: Option<Adapter<'a>>,
    shape: Vec<usize>,
}

impl<'a> AsF32<'a> {
    fn of(tensor: &'a Tensor, adapter: Option<Adapter<'a>>) -> AsF32<'a> {
        AsF32 { tensor, adapter, shape: tensor.size().iter().map(|&n| n as usize).collect() }
    }
}

impl View for AsF32<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let tensor = self.tensor.detach();
        let tensor = self.adapter.as_ref().map_or(tensor.shallow_clone(), |adapter| adapter.merge(&tensor));
        let tensor = tensor.to_device(Device::Cpu).to_kind(Kind::Float).contiguous();
        let mut bytes = vec![0u8; self.data_len()];
        tensor.copy_data_u8(&mut bytes, tensor.numel());
        Cow::Owned(bytes)
    }

    fn data_len(&self) -> usize {
        4 * self.tensor.numel()
    }
}
