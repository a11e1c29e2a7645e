//! The sandbox helper as a program of its own, so that tests find it; `rollmill` contains the same helper.

fn main() {
    rollmill_sandbox::helper_main_if_asked();
    eprintln!("this program is started by rollmill to hold a sandbox; run `rollmill` instead");
}
