//! Requests over sockets of their own. HTTP/1.0 has no chunks: an answer goes on to the end of its connection.

use std::{
    io::{self, BufRead as _, BufReader, Error, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    time::Duration,
};

use serde_json::Value;

/// The longest silence of a server, whose streams have pings.
const SILENCE: Duration = Duration::from_secs(600);

/// The end of a stream that is whole.
const DONE: &str = "[DONE]";

/// An answer whose head was read.
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: Vec<String>,
    body: BufReader<TcpStream>,
}

/// An answer to a prompt.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Answer {
    pub(super) text: String,
    /// Why it ended.
    pub(super) finish: String,
    pub(super) tokens: u64,
}

/// Sends a request and reads the head of its answer.
pub(super) fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<Reply> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(SILENCE))?;
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.0\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut body = BufReader::with_capacity(1024, stream);
    let mut lines = vec![];
    loop {
        let line = line(&mut body)?.ok_or_else(|| Error::other("the connection ended in a head"))?;
        if line.is_empty() {
            break;
        }
        lines.push(line.to_lowercase());
    }
    let status = lines.first().and_then(|line| line.split(' ').nth(1)).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| Error::other(format!("found no status in {lines:?}")))?;
    lines.remove(0);
    Ok(Reply { status, headers: lines, body })
}

/// Asks for JSON, and returns the status and what came.
pub(super) fn get(address: SocketAddr, path: &str) -> io::Result<(u16, Value)> {
    let reply = ask(address, "GET", path, "")?;
    Ok((reply.status, reply.json()?))
}

/// Reads a line, without its end. `None` at the end of the connection.
fn line(body: &mut BufReader<TcpStream>) -> io::Result<Option<String>> {
    let mut line = String::new();
    if body.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    if !line.ends_with('\n') {
        return Err(Error::other(format!("the connection ended in the line {line:?}")));
    }
    line.truncate(line.trim_end().len());
    Ok(Some(line))
}

impl Reply {
    /// Returns the next event of a stream. `None` after its end, and an error if the connection ends before.
    fn event(&mut self) -> io::Result<Option<Value>> {
        loop {
            let line = line(&mut self.body)?.ok_or_else(|| Error::other("the stream broke off"))?;
            match line.strip_prefix("data: ") {
                Some(DONE) => return Ok(None),
                Some(data) => return Ok(Some(serde_json::from_str(data)?)),
                // The empty line after an event, or a ping.
                None => assert!(line.is_empty() || line.starts_with(':'), "{line}"),
            }
        }
    }

    /// Reads a stream to its end: all of its events, of which an error is the last.
    pub(super) fn events(mut self) -> io::Result<Vec<Value>> {
        let mut events = vec![];
        while let Some(event) = self.event()? {
            let is_last = event.get("error").is_some();
            events.push(event);
            if is_last {
                break;
            }
        }
        Ok(events)
    }

    /// Reads the whole of it as JSON.
    pub(super) fn json(mut self) -> io::Result<Value> {
        let mut text = String::new();
        self.body.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Reads an answer that is no stream.
    pub(super) fn whole(self) -> io::Result<Answer> {
        let found = self.json()?;
        let choice = &found["choices"][0];
        let text = choice.get("text").unwrap_or(&choice["message"]["content"]);
        let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let tokens = found["usage"]["completion_tokens"].as_u64().unwrap_or_default();
        Ok(Answer { text: of(text), finish: of(&choice["finish_reason"]), tokens })
    }

    /// Reads a stream to its end and returns what it says, or leaves it after so many events.
    pub(super) fn stream(mut self, leave: Option<usize>) -> io::Result<Option<Answer>> {
        let (mut answer, mut events) = (Answer::default(), 0);
        while leave != Some(events) {
            let Some(event) = self.event()? else { return Ok(Some(answer)) };
            events += 1;
            assert_eq!(event.get("error"), None, "{event}");
            let choice = &event["choices"][0];
            let more = choice.get("text").unwrap_or(&choice["delta"]["content"]);
            answer.text += more.as_str().unwrap_or_default();
            answer.finish += choice["finish_reason"].as_str().unwrap_or_default();
            answer.tokens += event["usage"]["completion_tokens"].as_u64().unwrap_or_default();
        }
        Ok(None)
    }
}
