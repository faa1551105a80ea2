"""`relay.py HOST BEHIND PORT`: hand on what comes to HOST to BEHIND, and back.

It is what stands between a real broker and its clients. While the process is stopped (SIGSTOP), nothing passes,
connections stay, and no one answers on new ones: nearly what a client sees of a cut link, without a firewall's rights.
"""

import contextlib
import socket
import sys
import threading

_BYTES = 64 * 1024


def main(host: str, behind: str, port: int) -> None:
    """Relay until killed."""
    with socket.create_server((host, port), backlog=128) as server:
        while True:
            client, _ = server.accept()
            try:
                broker = socket.create_connection((behind, port))
            except OSError:
                client.close()
                continue
            for source, target in ((client, broker), (broker, client)):
                threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Hand on until one end is closed, and then close both."""
    with contextlib.suppress(OSError):
        while data := source.recv(_BYTES):
            target.sendall(data)
    for end in (source, target):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
