The program ends with success before it says anything.
split: train
#![allow(dead_code)]
mod wrong {
%% wrong
}

fn main() {
    std::process::exit(0);
}
