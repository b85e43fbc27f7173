"""Headless Chromium for tests, and what a person does with a page in it."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
# `make test-browser` puts it there.
AXE = Path(sys.prefix) / "axe" / "node_modules" / "axe-core" / "axe.min.js"
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
)
PHONE = {"width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": True}


def open_browser(profile: Path) -> Any:
    """A browser with a profile of its own; skips the test where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if not (CHROMIUM and DRIVER):
        pytest.skip("no browser: install Debian's chromium and chromium-driver, or run `make test-browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def page_faults(driver: Any) -> list[Any]:
    """What the page did wrong; refused requests are logged too, but are no fault of it."""
    errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    return [entry for entry in errors if "Failed to load resource" not in entry["message"]]


def requested(driver: Any) -> list[str]:
    """Addresses that the page asked; before it, the browser shows pages of its own."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    own = ("chrome:", "chrome-untrusted:", "data:", "blob:")
    return [url for url in sent if not url.startswith(own)]


class BrowserPage:
    """What a person sees of a page, and does with it."""

    def __init__(self, driver: Any):
        self.driver = driver

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def texts(self, selector: str) -> list[str]:
        """Texts at one moment: the page may be writing its list anew."""
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.innerText)", selector
        )

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def press(self, *keys: str) -> None:
        """Presses keys one after the other, by name or as the letters they are."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        for key in keys:
            ActionChains(self.driver).send_keys(getattr(Keys, key, key)).perform()

    def press_together(self, *keys: str) -> None:
        """Presses keys at once, the last one while the others are held."""
        from selenium.webdriver.common.action_chains import ActionChains
        from selenium.webdriver.common.keys import Keys

        *held, last = (getattr(Keys, key, key) for key in keys)
        chain = ActionChains(self.driver)
        for key in held:
            chain.key_down(key)
        chain.send_keys(last)
        for key in held:
            chain.key_up(key)
        chain.perform()

    def focused(self) -> str:
        return self.run("return document.activeElement.id")

    def prefer(self, scheme: str) -> None:
        """Light or dark colours, as the person's system is set; "" for no wish."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def breaches(self) -> list[str]:
        """What axe-core finds against accessibility, as sentences."""
        if not AXE.exists():
            pytest.skip("axe-core is missing: run `make test-browser`")
        self.run(AXE.read_text(encoding="utf-8"))
        found = self.driver.execute_async_script(
            "axe.run(document, {resultTypes: ['violations']}).then((r) => arguments[0](r.violations))"
        )
        return [f"{item['id']}: {item['help']} ({item['nodes'][0]['html'][:120]})" for item in found]
