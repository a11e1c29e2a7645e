The program says that it took no time.
split: held
#![allow(dead_code)]
mod wrong {
%% wrong
}

fn main() {
    wrong::main();
    eprintln!("0.000000000 seconds");
}
