"""Searches that are saved, listings that come, and owners who listen.

python people.py 127.0.0.1:9092 60     for a minute
"""

import http.server
import json
import random
import sys
import threading
import time

import tailrace as tr

WORDS = ["red", "blue", "old", "new", "boat", "house", "bicycle", "sailing", "small", "fast"]


class Owners(http.server.BaseHTTPRequestHandler):
    """Where owners are told."""

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["row"]
        print(f"{told['owner']}: search {told['query_id']} found {told['event']['title']!r}")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def main(address: str, seconds: float) -> None:
    rng = random.Random()
    owners = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Owners)
    threading.Thread(target=owners.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{owners.server_port}/"
    ends_at, number = time.monotonic() + seconds, 0
    with tr.connect(address) as log, log.producer() as producer:
        while time.monotonic() < ends_at:
            number += 1
            if number % 20 == 1:
                search = rng.randrange(50)
                query = f"{rng.choice(WORDS)} {rng.choice(WORDS)} price:<{rng.randrange(1000)}"
                row = {"id": search, "owner": f"owner {search}", "query": query, "url": url}
                producer.send("saved_searches", key=as_json({"id": search}), value=as_json(row))
            title = " ".join(rng.sample(WORDS, 4))
            row = {"id": number, "title": title, "price": f"{rng.randrange(1000)}.00"}
            producer.send("listings", key=as_json({"id": number}), value=as_json(row))
            producer.flush()
            time.sleep(0.05)


def as_json(row: dict) -> bytes:
    return json.dumps(row).encode()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
