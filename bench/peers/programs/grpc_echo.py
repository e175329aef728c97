# SPDX-License-Identifier: Apache-2.0
"""A gRPC call that returns its bytes.

grpc_echo.py server               prints its port, and ends with its standard input
grpc_echo.py client PORT CALLS    prints the time of each call, in seconds, as JSON
"""

from __future__ import annotations

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import grpc

METHOD = "/bench.Echo/Call"
SECONDS = 30


class Echo(grpc.GenericRpcHandler):
    """The service. Messages are bytes as they are."""

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
        """The handler of the one method."""
        return grpc.unary_unary_rpc_method_handler(lambda request, _: request) if details.method == METHOD else None


def serve() -> None:
    """The server."""
    server = grpc.server(ThreadPoolExecutor(1), handlers=[Echo()])
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None)


def measure(port: str, calls: int) -> None:
    """The client."""
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        call = channel.unary_unary(METHOD)
        call(bytes(8), timeout=SECONDS)
        times = []
        for _ in range(calls):
            begin = time.perf_counter()
            call(bytes(8), timeout=SECONDS)
            times.append(time.perf_counter() - begin)
    print(json.dumps(times))


if __name__ == "__main__":
    if sys.argv[1:] == ["server"]:
        serve()
    else:
        measure(sys.argv[2], int(sys.argv[3]))
