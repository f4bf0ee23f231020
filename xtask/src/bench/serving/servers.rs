//! The two servers.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail};

use crate::{shell, workspace::Workspace};

/// The longest time until a server is ready.
const PATIENCE: Duration = Duration::from_secs(120);

/// The longest time of a question whether a server is ready: one that takes a connection may never answer.
const QUESTION: Duration = Duration::from_secs(1);

/// A server on this machine. It is killed when it is dropped.
pub(super) struct Server {
    child: Child,
    pub(super) address: SocketAddr,
    /// The model that requests name.
    pub(super) model: String,
}

impl Server {
    /// Starts mlxcel-serve.
    pub(super) fn ours(workspace: &Workspace, bundle: &Path, threads: &str) -> Result<Self> {
        let address = free_address()?;
        let mut command = workspace.command(workspace.release_binary("mlxcel-serve")?);
        command.arg(bundle).args(["--device", "local-task", "--listen", &address.to_string(), "-t", threads]);
        let model = bundle.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Self::start(command, address, "/health/ready", model, bundle.with_extension("serve.log"))
    }

    /// Starts llama-server with so many slots, each with a context.
    pub(super) fn theirs(
        workspace: &Workspace,
        tools: &Path,
        gguf: &Path,
        threads: &str,
        slots: usize,
        context: usize,
    ) -> Result<Self> {
        let address = free_address()?;
        let mut command = workspace.command(tools.join("llama-server"));
        command.arg("-m").arg(gguf).args(["--host", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(["--parallel", &slots.to_string(), "-c", &(slots * context).to_string()]);
        command.args(["-t", threads, "-tb", threads, "--no-ui"]);
        Self::start(command, address, "/health", "model".to_owned(), gguf.with_extension("serve.log"))
    }

    /// Starts a server and waits until it is ready. What it writes goes to a file.
    fn start(
        mut command: Command,
        address: SocketAddr,
        health: &str,
        model: String,
        log: PathBuf,
    ) -> Result<Self> {
        let file = File::create(&log).with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| shell::command_line(&command))?;
        let mut server = Self { child, address, model };
        let start = Instant::now();
        while !is_healthy(address, health) {
            let ended = server.child.try_wait()?;
            if ended.is_some() || start.elapsed() > PATIENCE {
                let what = ended.map_or("is not ready".to_owned(), |status| format!("ended with {status}"));
                bail!("{} {what}\nhint: cat {}", shell::command_line(&command), log.display());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Returns an address that nothing listens on.
fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Returns whether a path is answered with 200.
fn is_healthy(address: SocketAddr, path: &str) -> bool {
    let ask = || {
        let mut stream = TcpStream::connect_timeout(&address, QUESTION)?;
        stream.set_read_timeout(Some(QUESTION))?;
        stream.set_write_timeout(Some(QUESTION))?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n\r\n").as_bytes())?;
        let mut head = [0; 12];
        stream.read_exact(&mut head).map(|()| head.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_answer_is_not_waited_for() {
        // The system takes connections for a socket that listens, and nobody reads.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let start = Instant::now();
        assert!(!is_healthy(silent.local_addr().unwrap(), "/health"));
        assert!(start.elapsed() < 10 * QUESTION, "{:?}", start.elapsed());
    }
}
