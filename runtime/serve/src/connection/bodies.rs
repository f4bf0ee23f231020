//! Bodies that tell a connection what it is doing.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Error, body::Body};
use hyper::body::{Body as _, Bytes, Frame, Incoming, SizeHint};

use super::activity::{Activity, Busy};

/// The body of a request.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    activity: Arc<Activity>,
}

impl RequestBody {
    pub(super) fn new(body: Incoming, activity: Arc<Activity>) -> Self {
        Self { body, activity }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if !self.body.is_end_stream() {
            self.activity.leave_unread();
        }
    }
}

impl hyper::body::Body for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer. The request ends with it.
#[derive(Debug)]
pub(super) struct AnswerBody {
    body: Body,
    _busy: Busy,
}

impl AnswerBody {
    pub(super) fn new(body: Body, busy: Busy) -> Self {
        Self { body, _busy: busy }
    }
}

impl hyper::body::Body for AnswerBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
