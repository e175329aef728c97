// SPDX-License-Identifier: Apache-2.0
//! One stream of quinn, encrypted as QUIC always is.
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use quinn::{ClientConfig, Endpoint, ServerConfig};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};

use crate::{Outcome, stdin_ends};

/// The server reads so many bytes at a time, the client writes so many.
const CHUNK: usize = 1 << 20;

/// The server: takes what comes, and answers each stream's end by one byte.
pub async fn serve() -> Outcome {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()])?;
    let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
    let config = ServerConfig::with_single_cert(vec![cert.der().clone()], key)?;
    let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
    println!("{}", endpoint.local_addr()?.port());
    let accept = async {
        while let Some(incoming) = endpoint.accept().await {
            let connection = incoming.await?;
            let (mut send, mut receive) = connection.accept_bi().await?;
            while receive.read_chunk(CHUNK, true).await?.is_some() {}
            send.write_all(&[1]).await?;
            send.finish()?;
            connection.closed().await;
        }
        Outcome::Ok(())
    };
    tokio::select! {
        result = accept => result,
        () = stdin_ends() => Ok(()),
    }
}

/// The client: sends, and waits for the answer.
pub async fn measure(port: u16, bytes: usize) -> Outcome {
    let provider = Arc::new(ring::default_provider());
    let crypto = rustls::ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    let crypto = quinn::crypto::rustls::QuicClientConfig::try_from(crypto)?;
    let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    endpoint.set_default_client_config(ClientConfig::new(Arc::new(crypto)));
    let connection = endpoint.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), "localhost")?.await?;
    let (mut send, mut receive) = connection.open_bi().await?;
    let chunk = vec![0; CHUNK];
    let begin = Instant::now();
    let mut left = bytes;
    while left > 0 {
        let now = left.min(CHUNK);
        send.write_all(&chunk[..now]).await?;
        left -= now;
    }
    send.finish()?;
    receive.read_to_end(1).await?;
    println!("{}", begin.elapsed().as_secs_f64());
    connection.close(0u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// Takes any certificate: the server made its own a moment ago.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
