//! The list.
mod asking;
mod files;
mod kernel;
mod leftovers;
mod limits;
mod out;

use rollmill_sandbox::Sandbox;

pub use asking::ask;

use crate::Attack;

/// Every attack, those of one group together.
pub fn all() -> Vec<Attack> {
    [files::LIST, kernel::LIST, limits::LIST, out::LIST, leftovers::LIST].into_iter().flatten().copied().collect()
}

/// The processes of a bomb that a limit must hold: refused here, a bomb is not tried.
fn limit_is_proven(sandbox: &dyn Sandbox) -> bool {
    limits::many_children(sandbox) == Some(15)
}
