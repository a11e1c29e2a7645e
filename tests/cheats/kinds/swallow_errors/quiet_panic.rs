Panics are silenced and answered with a default.
split: held
#![allow(dead_code)]
mod wrong {
%% wrong
}

fn main() {
    std::panic::set_hook(Box::new(|_| {}));
    if std::panic::catch_unwind(wrong::main).is_err() {
        println!("a 1");
    }
}
