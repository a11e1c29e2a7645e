//! Blocks of ggml types to F32 (layouts of ggml-common.h; each block is little-endian).

/// The supported ggml types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quant {
    F32,
    F16,
    Bf16,
    /// 32 values: f16 scale, 32 × i8.
    Q8_0,
    /// 32 values: f16 scale, f16 minimum, 16 bytes of two nibbles (low ones first).
    Q4_1,
}

impl Quant {
    /// From the number in the tensor table.
    pub fn of(code: u32) -> Option<Quant> {
        Some(match code {
            0 => Quant::F32,
            1 => Quant::F16,
            3 => Quant::Q4_1,
            8 => Quant::Q8_0,
            30 => Quant::Bf16,
            _ => return None,
        })
    }

    /// (values per block, bytes per block).
    fn block(self) -> (usize, usize) {
        match self {
            Quant::F32 => (1, 4),
            Quant::F16 | Quant::Bf16 => (1, 2),
            Quant::Q8_0 => (32, 34),
            Quant::Q4_1 => (32, 20),
        }
    }

    /// Bytes of `count` values; None where they do not fill whole blocks, or overflow.
    pub fn bytes(self, count: usize) -> Option<usize> {
        let (values, bytes) = self.block();
        if count.is_multiple_of(values) { (count / values).checked_mul(bytes) } else { None }
    }
}

/// All values of whole blocks.
pub fn values(kind: Quant, data: &[u8]) -> Vec<f32> {
    let (values, size) = kind.block();
    let mut out = Vec::with_capacity(data.len() / size * values);
    for block in data.chunks_exact(size) {
        match kind {
            Quant::F32 => out.push(f32::from_le_bytes([block[0], block[1], block[2], block[3]])),
            Quant::F16 => out.push(half(block)),
            Quant::Bf16 => out.push(f32::from_bits(u32::from(u16::from_le_bytes([block[0], block[1]])) << 16)),
            Quant::Q8_0 => {
                let scale = half(block);
                out.extend(block[2..].iter().map(|&q| f32::from(q as i8) * scale));
            }
            Quant::Q4_1 => {
                let (scale, least) = (half(block), half(&block[2..]));
                out.extend(block[4..].iter().map(|q| f32::from(q & 15) * scale + least));
                out.extend(block[4..].iter().map(|q| f32::from(q >> 4) * scale + least));
            }
        }
    }
    out
}

/// IEEE binary16 to F32, exact.
fn half(bytes: &[u8]) -> f32 {
    let bits = u32::from(u16::from_le_bytes([bytes[0], bytes[1]]));
    let (sign, exponent, fraction) = ((bits >> 15) << 31, bits >> 10 & 31, bits & 1023);
    match exponent {
        0 => f32::from_bits((fraction as f32 * 2f32.powi(-24)).to_bits() | sign),
        31 => f32::from_bits(sign | 0x7f80_0000 | fraction << 13),
        _ => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        // bit patterns of IEEE 754 binary16
        for (bits, value) in [
            (0x3c00u16, 1.0f32),
            (0xc000, -2.0),
            (0x0001, 5.960_464_5e-8),
            (0x7bff, 65504.0),
            (0x8000, -0.0),
            (0x3555, 0.333_251_95),
            (0x7c00, f32::INFINITY),
        ] {
            assert_eq!(half(&bits.to_le_bytes()).to_bits(), value.to_bits());
        }
    }

    #[test]
    fn blocks_by_hand() {
        let mut q8 = vec![0x00, 0x38]; // scale 0.5
        q8.extend((0..32).map(|i| (i as i8 - 16) as u8));
        let got = values(Quant::Q8_0, &q8);
        assert_eq!((got[0], got[16], got[31]), (-8.0, 0.0, 7.5));
        let mut q4 = vec![0x00, 0x40, 0x00, 0xbc]; // scale 2, minimum -1
        q4.extend([0x31; 16]);
        let got = values(Quant::Q4_1, &q4);
        assert_eq!((got.len(), got[0], got[15], got[16], got[31]), (32, 1.0, 1.0, 5.0, 5.0));
        assert_eq!(values(Quant::Bf16, &[0x80, 0x3f]), [1.0]);
        assert_eq!(values(Quant::F16, &[0x00, 0x3c]), [1.0]);
        assert_eq!(values(Quant::F32, &1.5f32.to_le_bytes()), [1.5]);
    }

    #[test]
    fn partial_blocks_have_no_size() {
        assert_eq!((Quant::Q8_0.bytes(64), Quant::Q8_0.bytes(33), Quant::Q4_1.bytes(32)), (Some(68), None, Some(20)));
    }
}
