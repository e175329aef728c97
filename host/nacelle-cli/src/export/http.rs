// SPDX-License-Identifier: Apache-2.0
//! One page by HTTP/1.1, with bounds on what a client may send, how long it may take, and how many there are.

use std::io::{self, ErrorKind};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread;
use std::time::{Duration, Instant};

use nacelle_ipbus::tcp::{self, Place};

/// Clients at once; further ones are disconnected.
const MAX_CLIENTS: usize = 16;
/// Longest head of a request, in bytes. There is no body.
const MAX_HEAD: usize = 8 << 10;
/// Most header fields of a request.
const MAX_FIELDS: usize = 64;
/// How long a client may take to send its request, and to take the response.
const PATIENCE: Duration = Duration::from_secs(5);

/// Makes the page, or says why it cannot.
pub(super) trait Page: Fn() -> Result<String, String> + Sync {}
impl<P: Fn() -> Result<String, String> + Sync> Page for P {}

/// Status and text of a response that is not the page.
type Refusal = (&'static str, String);

/// Serves `page` as `/metrics`, with a thread for each client, until the process ends.
///
/// # Errors
/// If the socket fails.
pub(super) fn serve(listener: &TcpListener, page: &impl Page) -> io::Result<()> {
    let clients = Arc::new(AtomicUsize::new(0));
    thread::scope(|scope| {
        loop {
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                // The client is gone already.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
                Err(error) => return Err(error),
            };
            let Some(place) = Place::take(&clients, MAX_CLIENTS) else { continue };
            scope.spawn(move || {
                let _place = place;
                // A client that has gone needs no response.
                let _ = client(stream, page, PATIENCE);
            });
        }
    })
}

/// Reads one request, and answers it.
fn client(mut stream: TcpStream, page: &impl Page, patience: Duration) -> io::Result<()> {
    let request = read(&mut stream, Instant::now() + patience)?;
    let (status, kind, body, whole) = match request.and_then(|whole| Ok((whole, page().map_err(failed)?))) {
        Ok((whole, body)) => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", body, whole),
        Err((status, why)) => (status, "text/plain; charset=utf-8", format!("{why}\n"), true),
    };
    let length = body.len();
    let mut response = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nAllow: GET, HEAD\r\nConnection: close\r\n\r\n"
    );
    if whole {
        response += &body;
    }
    tcp::write_all(&mut stream, response.as_bytes(), patience)
}

fn failed(why: String) -> Refusal {
    ("500 Internal Server Error", why)
}

/// Reads the head of a request: whether the page is wanted, not only its head, or why there is none.
fn read(stream: &mut TcpStream, deadline: Instant) -> io::Result<Result<bool, Refusal>> {
    let mut head = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let length = tcp::read_some(stream, &mut buffer, deadline)?;
        head.extend_from_slice(&buffer[..length]);
        if let Some(answer) = wanted(&head) {
            return Ok(answer);
        }
        if head.len() > MAX_HEAD {
            return Ok(Err(("431 Request Header Fields Too Large", format!("at most {MAX_HEAD} bytes"))));
        }
    }
}

/// What a request asks for; `None` until all of it is there.
fn wanted(head: &[u8]) -> Option<Result<bool, Refusal>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(error) => return Some(Err(("400 Bad Request", error.to_string()))),
    }
    let path = request.path.unwrap_or_default().split('?').next();
    Some(match (path, request.method) {
        (Some("/metrics"), Some("GET")) => Ok(true),
        (Some("/metrics"), Some("HEAD")) => Ok(false),
        (Some("/metrics"), _) => Err(("405 Method Not Allowed", "GET it".into())),
        _ => Err(("404 Not Found", "there is /metrics".into())),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::SocketAddr;

    use super::*;

    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || serve(&listener, &|| Ok("nacelle_up 1\n".to_owned())));
        address
    }

    /// What comes back until the end.
    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(request).unwrap();
        let mut response = Vec::new();
        // A server that closes with input unread resets the connection behind its response.
        let _ = stream.read_to_end(&mut response);
        String::from_utf8(response).unwrap()
    }

    #[test]
    fn only_the_page_is_served() {
        let server = server();
        let good = ask(server, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n");
        assert!(good.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4"), "{good}");
        assert!(good.ends_with("\r\n\r\nnacelle_up 1\n"), "{good}");
        let head = ask(server, b"HEAD /metrics HTTP/1.0\r\n\r\n");
        assert!(head.contains("Content-Length: 13\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        for (request, status) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
            (b"GET /metrics/../x HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "405"),
            (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", "400"),
            (&[b'A'; MAX_HEAD + 2000], "431"),
        ] {
            let response = ask(server, request);
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {response}");
        }
    }

    #[test]
    fn clients_that_stall_are_given_up_and_their_number_is_bounded() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut slow = TcpStream::connect(address).unwrap();
        let (stream, _) = listener.accept().unwrap();
        // A byte now and then makes a request that never ends.
        let writer = thread::spawn(move || {
            while slow.write_all(b"G").is_ok() {
                thread::sleep(Duration::from_millis(20))
            }
        });
        let begin = Instant::now();
        let page = || Ok(String::new());
        let error = client(stream, &page, Duration::from_millis(300)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(3));
        writer.join().unwrap();

        let server = server();
        let held: Vec<_> = (0..MAX_CLIENTS).map(|_| TcpStream::connect(server).unwrap()).collect();
        assert_eq!(ask(server, b""), "", "there is no room for one more");
        drop(held);
        // Room is made once the threads of the others have seen that they are gone.
        let request = b"GET /metrics HTTP/1.1\r\n\r\n";
        assert!((0..200).any(|_| {
            thread::sleep(Duration::from_millis(10));
            ask(server, request).contains("200 OK")
        }));
    }
}
