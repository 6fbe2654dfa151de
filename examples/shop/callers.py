"""What reaches the shop without its database: reviews over HTTP, the carrier's calls, metrics.

Standard library only, as any program could do it; the addresses are those of `pipelines/outside.py`.
"""

import base64
import hashlib
import hmac
import http.client
import json
import os
import queue
import random
import socket
import time
import uuid

GOOD = ["lovely", "just right", "better than the old one", "my neighbour wants one too"]
BAD = ["broken on arrival", "came late", "returned it", "the colour is wrong"]
SECRET = "whsec_c2hvcC1hbmQtY2Fycmllci1vbmx5"
WAITING = 200


class Outside:
    """Says what happens; a thread of its own (`run`) passes it on, so that nobody waits for it."""

    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._calls: queue.Queue[tuple[str, str, dict[str, str], bytes]] = queue.Queue(WAITING)
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def review(self, product: int) -> None:
        good = self._dice.random() < 0.8
        stars = self._dice.randint(4, 5) if good else self._dice.randint(1, 3)
        value = {"product_id": product, "stars": stars, "text": self._dice.choice(GOOD if good else BAD)}  # fmt: skip
        body = json.dumps({"records": [{"key": str(product), "value": value}]}).encode()
        kind = {"Content-Type": "application/vnd.kafka.json.v2+json"}
        self._call(os.environ.get("SHOP_WEB", "127.0.0.1:9101"), "/topics/reviews", kind, body)

    def parcel(self, order: int, status: str) -> None:
        """A call of the carrier, signed by Standard Webhooks."""
        body = json.dumps({"order_id": order, "status": status}).encode()
        number, at = f"msg_{uuid.uuid4().hex}", str(int(time.time()))
        secret = os.environ.get("SHOP_CARRIER_SECRET", SECRET).removeprefix("whsec_")
        signed = hmac.new(
            base64.b64decode(secret), f"{number}.{at}.".encode() + body, hashlib.sha256
        )
        signature = f"v1,{base64.b64encode(signed.digest()).decode()}"
        headers = {
            "Content-Type": "application/json",
            "webhook-id": number,
            "webhook-timestamp": at,
            "webhook-signature": signature,
        }
        self._call(os.environ.get("SHOP_CARRIER", "127.0.0.1:9102"), "/carrier", headers, body)

    def measure(self, line: str) -> None:
        """A line of StatsD, such as `visits:1|c`."""
        host, _, port = os.environ.get("SHOP_METRICS", "127.0.0.1:9103").rpartition(":")
        self._udp.sendto(line.encode(), (host, int(port)))

    def _call(self, address: str, path: str, headers: dict[str, str], body: bytes) -> None:
        if not self._calls.full():  # the edge is away for long: reviews are written elsewhere
            self._calls.put((address, path, headers, body))

    def run(self) -> None:
        """Make the calls, each until it is taken or refused; for good."""
        open_calls: dict[str, http.client.HTTPConnection] = {}
        while True:
            address, path, headers, body = self._calls.get()
            for _ in range(5):
                connection = open_calls.setdefault(address, http.client.HTTPConnection(address, timeout=10))  # fmt: skip
                try:
                    connection.request("POST", path, body, headers)
                    answer = connection.getresponse()
                    answer.read()
                except (OSError, http.client.HTTPException):
                    connection.close()  # it is being started again, or it timed out
                    time.sleep(1)
                    continue
                if answer.status == 503:  # the log is away: providers call again
                    time.sleep(1)
                    continue
                break
