//! Makes a root file system: `prepare NAME` for a profile, `prepare NAME PACKAGE...`, or `prepare NAME /path/of/image`.
use std::path::PathBuf;

use rollmill_sandbox::{NamespacesOptions, RootSource, prepare};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or("usage: prepare NAME [PACKAGE... | /IMAGE]")?;
    let rest: Vec<String> = args.collect();
    let source = match rest.first() {
        None => RootSource::profile(&name).ok_or("no such profile")?,
        Some(image) if image.starts_with('/') => RootSource::Image(PathBuf::from(image)),
        Some(_) => RootSource::Packages(rest),
    };
    let root = prepare(&name, &source, &NamespacesOptions::default().cache_dir)?;
    println!("{} {} {}", root.tree.display(), root.digest, root.made_of);
    Ok(())
}
