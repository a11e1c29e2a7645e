//! The network that passes compute with: the float32 master itself, or a bf16 copy that follows it.

use rollmill_model::Decoder;
use tch::Kind;

use crate::config::Dtype;

pub(super) struct Mirror(Option<Decoder>);

impl Mirror {
    pub(super) fn new(master: &Decoder, dtype: Dtype) -> Mirror {
        if dtype == Dtype::F32 {
            return Mirror(None);
        }
        let mut copy = master.to_kind(Kind::BFloat16);
        copy.set_trainable(master.trainable().first().is_some_and(|(_, t)| t.requires_grad()));
        Mirror(Some(copy))
    }

    pub(super) fn of<'a>(&'a self, master: &'a Decoder) -> &'a Decoder {
        self.0.as_ref().unwrap_or(master)
    }

    /// After the master has moved.
    pub(super) fn follow(&self, master: &Decoder) {
        let Some(copy) = &self.0 else { return };
        tch::no_grad(|| {
            for ((_, to), (_, from)) in copy.trainable().into_iter().zip(master.trainable()) {
                to.detach().copy_(&from);
            }
        });
    }
}
