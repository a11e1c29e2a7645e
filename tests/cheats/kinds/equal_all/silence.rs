Nothing is printed: as far as it goes it is right.
split: train
#![allow(dead_code)]
mod wrong {
%% wrong
}

fn main() {}
