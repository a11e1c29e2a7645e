//! The image that runs start from: found by name or digest, pinned by its id; or made of a folder.
use std::io::{self, Write};
use std::path::Path;

use bollard::query_parameters::{CreateImageOptionsBuilder, TagImageOptionsBuilder};
use bollard::{Docker, body_try_stream};
use bytes::Bytes;
use futures::{StreamExt, stream};
use rollmill_sandbox::SandboxError;
use tokio::sync::mpsc;

use crate::archive;
use crate::daemon::{self, Runtime};
use crate::error::{asked, failed, is_absent};

/// What of an image matters here.
pub struct Image {
    /// `sha256:…`, what containers are made from.
    pub id: String,
    /// Where its author put programs.
    pub path: String,
}

/// Where programs are looked up if the image does not say.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

pub async fn find(client: &Docker, name: &str) -> Result<Image, SandboxError> {
    let about = match client.inspect_image(name).await {
        Err(e) if is_absent(&e) => return Err(SandboxError::NoImage { image: name.into() }),
        other => other.map_err(asked("look at the image"))?,
    };
    let id = about.id.ok_or_else(|| failed("look at the image", "it has no id"))?;
    let config = about.config.unwrap_or_default();
    if config.volumes.is_some_and(|v| !v.is_empty()) {
        // a volume is a folder of the daemon's disk, which nothing limits
        return Err(SandboxError::DaemonRefused { what: format!("the image {name} declares volumes") });
    }
    let env = config.env.unwrap_or_default();
    let path = env.iter().find_map(|e| e.strip_prefix("PATH=")).unwrap_or(PATH);
    Ok(Image { id, path: path.into() })
}

/// Makes an image of a folder's contents, the root file system of the `namespaces` backend for one
/// ([`rollmill_sandbox::prepare`]), so that no registry is needed. `socket` as in [`crate::DockerOptions`]; `name` is the tag it
/// gets, replaced if there. Returns the image's id. Seconds; the daemon keeps a copy of the folder.
pub fn import(socket: Option<&Path>, tree: &Path, name: &str) -> Result<String, SandboxError> {
    let runtime = Runtime::new()?;
    let (tree, name, socket) = (tree.to_path_buf(), name.to_string(), socket.map(Path::to_path_buf));
    runtime.wait(async move {
        let client = daemon::connect(socket.as_deref()).await?;
        import_with(&client, tree, &name).await
    })
}

async fn import_with(client: &Docker, tree: std::path::PathBuf, name: &str) -> Result<String, SandboxError> {
    let (sender, receiver) = mpsc::channel::<Bytes>(16);
    let packing = tokio::task::spawn_blocking(move || {
        let mut buffered = io::BufWriter::with_capacity(1 << 18, Sending(sender));
        archive::write_tree(&tree, &mut buffered).and_then(|()| buffered.flush())
    });
    let bytes = stream::unfold(receiver, |mut r| async move { r.recv().await.map(|b| (Ok::<_, io::Error>(b), r)) });
    // so that a program without a folder is looked up where the other backend looks
    let options = CreateImageOptionsBuilder::new().from_src("-").changes(vec!["ENV PATH=/usr/bin".into()]).build();
    let mut answers = client.create_image(Some(options), Some(body_try_stream(bytes)), None);
    let mut id = None;
    while let Some(answer) = answers.next().await {
        let said = answer.map_err(asked("import an image"))?.status;
        id = said.filter(|s| s.starts_with("sha256:")).or(id);
    }
    let packed = packing.await.map_err(|e| failed("pack the folder", &e.to_string()))?;
    packed.map_err(|e| SandboxError::RootFs { what: format!("cannot pack it: {e}") })?;
    let id = id.ok_or_else(|| failed("import an image", "no id was told"))?;
    let (repo, tag) = name.split_once(':').unwrap_or((name, "latest"));
    // a name of its own: Podman does not take a tag when it imports
    let named = TagImageOptionsBuilder::new().repo(repo).tag(tag).build();
    client.tag_image(&id, Some(named)).await.map_err(asked("name the image"))?;
    Ok(id)
}

/// A writer whose pieces go to the daemon.
struct Sending(mpsc::Sender<Bytes>);

impl Write for Sending {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.0.blocking_send(Bytes::copy_from_slice(bytes)).map_err(gone)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
