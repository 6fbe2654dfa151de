"""The subjects of the project's registry in the console."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Page, expect

import tailrace as tr
from servers.consoles import Console
from servers.sites import CHROMIUM, Site
from tailrace.client.schemas import Schemas
from tailrace.config import RegistrySettings
from tailrace.registry.serve import RegistryServer, Settings

FIELDS = [{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}]


def order(count: int) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": FIELDS[:count]})


@pytest.fixture
def schemas(console: Console) -> Iterator[Schemas]:
    """A registry, which the project of the console names."""
    served = console.served
    with (
        tr.connect(served.bootstrap) as log,
        RegistryServer(log, Settings("127.0.0.1:0")) as server,
    ):
        server.start()
        url = f"http://{server.address}"
        registry = RegistrySettings(url=url)
        served.project = replace(
            served.project, settings=replace(served.project.settings, registry=registry)
        )
        yield Schemas(url)


def fill(schemas: Schemas) -> None:
    schemas.register("orders-value", order(1))
    schemas.register("orders-value", order(2))
    refers = [{"name": "Order", "subject": "orders-value", "version": 2}]
    cart = '{"type": "record", "name": "Cart", "fields": [{"name": "of", "type": "Order"}]}'
    schemas.register("a/b", cart, references=refers)


def test_a_subject_tells_its_versions_and_what_changed(console: Console, schemas: Schemas) -> None:
    ask = console.client.get
    assert ask("/api/subjects").json() == {"registry": schemas.url, "subjects": []}
    fill(schemas)
    assert ask("/api/subjects").json()["subjects"] == ["a/b", "orders-value"]
    found = ask("/api/subjects/orders-value").json()
    assert (found["level"], found["before"], found["after"]) == ("BACKWARD", 1, 2)
    assert [one["version"] for one in found["versions"]] == [2, 1]
    assert len(found["versions"][0]["referenced_by"]) == 1
    assert '+      "name": "note",' in found["lines"]
    turned = ask("/api/subjects/orders-value?before=2&after=1").json()["lines"]
    assert '−      "name": "note",' in turned
    other = ask("/api/subjects/a%2Fb").json()
    assert (other["before"], other["lines"]) == (None, [])
    assert other["versions"][0]["references"][0]["subject"] == "orders-value"
    assert ask("/api/subjects/none").status_code == 404
    assert ask("/api/subjects/orders-value?before=7").status_code == 404
    assert ask("/api/subjects/orders-value?before=0").status_code == 422


def test_a_project_without_a_registry_has_no_subjects(console: Console) -> None:
    assert console.client.get("/api/subjects").json() == {"registry": None, "subjects": []}
    assert console.client.get("/api/subjects/x").status_code == 404


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium: make setup-browser")
def test_the_page_of_a_subject_compares_versions(page: Page, site: Site, schemas: Schemas) -> None:
    fill(schemas)
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Schemas").click()
    page.get_by_role("link", name="orders-value").click()
    changes = page.get_by_role("region", name="Changes")
    expect(changes.locator(".added").filter(has_text='"note"')).to_be_visible()
    changes.get_by_label("to version").select_option("1")
    expect(changes).to_contain_text("Their texts are the same.")
    changes.get_by_label("from version").select_option("2")
    expect(changes.locator(".dropped").filter(has_text='"note"')).to_be_visible()
