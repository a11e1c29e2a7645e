//! Named tensors in a safetensors file. In: names and tensors. Out: a file, or the tensors of one.
//! Must hold: the same values give the same bytes; a tensor is copied to bytes only while it is written, so a file of a
//! gigabyte costs no gigabyte of memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::View;
use tch::{Device, Kind, Tensor};

use crate::error::{Result, TrainError};

struct F32View<'a> {
    tensor: &'a Tensor,
    shape: Vec<usize>,
}

impl View for F32View<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let flat = self.tensor.detach().to_device(Device::Cpu).contiguous();
        let mut bytes = vec![0; self.data_len()];
        flat.copy_data_u8(&mut bytes, flat.numel());
        bytes.into()
    }

    fn data_len(&self) -> usize {
        self.tensor.numel() * 4
    }
}

/// Writes float32 tensors.
pub(crate) fn write<'a>(path: &Path, named: impl IntoIterator<Item = (String, &'a Tensor)>) -> Result<()> {
    let views = named.into_iter().map(|(name, tensor)| {
        let shape = tensor.size().iter().map(|&d| d as usize).collect();
        (name, F32View { tensor, shape })
    });
    safetensors::serialize_to_file(views, None, path)
        .map_err(|e| TrainError::checkpoint(path, format!("not written: {e}")))
}

/// Reads every tensor of a file onto `device`, as float32.
pub(crate) fn read(path: &Path, device: Device) -> Result<HashMap<String, Tensor>> {
    let named =
        Tensor::read_safetensors(path).map_err(|e| TrainError::checkpoint(path, format!("not readable: {e}")))?;
    Ok(named.into_iter().map(|(name, t)| (name, t.to_device(device).to_kind(Kind::Float))).collect())
}

/// Takes one tensor of a known shape out of what `read` gave.
pub(crate) fn take(from: &mut HashMap<String, Tensor>, path: &Path, name: &str, shape: &[i64]) -> Result<Tensor> {
    let tensor = from.remove(name).ok_or_else(|| TrainError::checkpoint(path, format!("lacks {name}")))?;
    match tensor.size() == shape {
        true => Ok(tensor),
        false => Err(TrainError::checkpoint(path, format!("{name} is {:?}, not {shape:?}", tensor.size()))),
    }
}
