// SPDX-License-Identifier: Apache-2.0
//! A unary call that returns its bytes, by tonic. Messages are bytes as they are: the least that gRPC can cost.
use std::convert::Infallible;
use std::future::{Future, Ready, ready};
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::{Buf, BufMut, Bytes};
use tokio::net::TcpListener;
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{NamedService, UnaryService};
use tonic::transport::{Endpoint, Server};
use tonic::{Request, Response, Status};

use crate::{Outcome, stdin_ends};

/// Bytes of a message.
const BYTES: usize = 8;

/// Bytes as they are.
#[derive(Default, Clone, Copy)]
struct Plain;

impl Codec for Plain {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put(item);
        Ok(())
    }
}

impl Decoder for Plain {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Returns what it gets.
#[derive(Clone)]
struct Echo;

impl UnaryService<Bytes> for Echo {
    type Response = Bytes;
    type Future = Ready<Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl tower_service::Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async { Ok(tonic::server::Grpc::new(Plain).unary(Self, request).await) })
    }
}

/// The server.
pub async fn serve() -> Outcome {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    println!("{}", listener.local_addr()?.port());
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    Ok(Server::builder().add_service(Echo).serve_with_incoming_shutdown(incoming, stdin_ends()).await?)
}

/// The client: so many calls, one after the other.
pub async fn measure(port: u16, calls: usize) -> Outcome {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let channel = Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true).connect().await?;
    let mut client = Grpc::new(channel);
    let path = http::uri::PathAndQuery::from_static("/bench.Echo/Call");
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let begin = Instant::now();
        client.ready().await?;
        let request = Request::new(Bytes::from_static(&[0; BYTES]));
        let answer: Response<Bytes> = client.unary(request, path.clone(), Plain).await?;
        times.push(begin.elapsed().as_secs_f64());
        if answer.get_ref().len() != BYTES {
            return Err("the answer has another length".into());
        }
    }
    println!("{times:?}");
    Ok(())
}
