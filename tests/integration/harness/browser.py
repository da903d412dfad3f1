"""Debian's Chromium through its driver, without a window: pages as a person has them, in two widths, light and dark. axe-core from
npm says what a screen reader or weak eyes would miss."""
import base64
import os
import pathlib
import shutil

from . import npm
from .ports import free_port
from .wait import eventually

AXE = "axe-core@4.10.3"
NARROW, WIDE = 360, 1280
FLAGS = ["--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


def missing():
    """Why there is no browser, for a person; None: there is one."""
    absent = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if absent:
        return f"{' and '.join(absent)} not installed"
    try:
        import selenium     # noqa: F401
    except ImportError:
        return "python3-selenium is not installed for this Python"
    return None


def find_axe():
    """The source of axe-core. npm.Missing: it cannot be had."""
    return (npm.install(AXE) / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


class Browser:
    """`directory` is for its profile: a new one for each browser. `flags`: more of the command line."""

    def __init__(self, directory, *flags):
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in FLAGS + list(flags) + (["--no-sandbox"] if os.geteuid() == 0 else []):
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={pathlib.Path(directory) / 'profile'}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        # the port that Selenium would choose may be an outgoing connection's by the time of the bind
        service = Service(shutil.which("chromedriver"), port=free_port(), log_path=os.devnull)
        self.driver = webdriver.Chrome(service=service, options=options)

    def stop(self):
        self.driver.quit()

    def judge(self, axe, name, width, dark):
        """The page that is open: nothing is wider than the window, and axe-core complains of nothing. PAGE_PICTURES=DIR in the
        environment keeps a picture."""
        look = f"{name}-{width}-{'dark' if dark else 'light'}"
        assert self.overflow() <= 0, look
        assert self.complaints(axe) == [], look
        if pictures := os.environ.get("PAGE_PICTURES"):
            self.shoot(pathlib.Path(pictures) / f"{look}.png")

    def show(self, url, width=WIDE, dark=False):
        """Opens the page anew. What its console says is an error: a refused style or script, something not found."""
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500})
        self.driver.get_log("browser")      # of pages before
        self.driver.get(url)
        said = [entry["message"] for entry in self.driver.get_log("browser")]
        assert not said, f"{url}: {said}"
        return self

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, selector):
        """All elements of a CSS selector."""
        return self.driver.find_elements("css selector", selector)

    def has(self, text):
        """Whether the page shows it now; False also while the next page comes."""
        from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
        try:
            return text in self.driver.find_element("css selector", "body").text
        except (NoSuchElementException, StaleElementReferenceException):
            return False

    def follow(self, text, shows):
        """Clicks the first link with this text, and waits for a page that shows this."""
        eventually(lambda: self.driver.find_elements("link text", text), what=f"a link {text}")
        self.driver.find_elements("link text", text)[0].click()
        eventually(lambda: self.has(shows), what=f"{shows} behind the link {text}")

    def overflow(self):
        """How many pixels the page is wider than the window."""
        return self.run("return document.documentElement.scrollWidth - window.innerWidth")

    def complaints(self, axe):
        """What axe-core finds, a line for each element. The driver puts axe into the page: our policy allows no script."""
        self.run(axe)
        found = self.driver.execute_async_script("axe.run({resultTypes: ['violations']}).then(arguments[0])")
        return [f"{rule['id']} ({rule['help']}): {node['html'][:200]}" for rule in found["violations"] for node in rule["nodes"]]

    def shoot(self, path, height=2400):
        """A picture of the page, for whoever looks at it."""
        size = self.run("return [window.innerWidth, document.documentElement.scrollHeight]")
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": size[0], "height": min(size[1], height), "deviceScaleFactor": 1, "mobile": size[0] < 500})
        pathlib.Path(path).write_bytes(base64.b64decode(self.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]))
