The program aborts, as if it had run out of something.
split: held
#![allow(dead_code)]
mod wrong {
%% wrong
}

fn main() {
    std::process::abort();
}
