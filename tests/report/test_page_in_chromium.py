"""The page in a browser: sorted, filtered and turned dark, by mouse and by keyboard alone."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline_lib.report.page import write_content, write_page

from .made_up import HOSTILE, TASK

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402  it may be missing
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.remote.webdriver import WebDriver  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium or chromedriver is not installed"),
]
TABLE = f"#task-{TASK} table"
ROWS = f"#task-{TASK}-list tbody tr"


@pytest.fixture(scope="module")
def address(content: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("page")
    write_page(folder / "index.html", content)
    write_content(folder / "report.json", content)
    return (folder / "index.html").as_uri()


FLAGS = """--headless=new --no-sandbox --disable-gpu --no-first-run --disable-extensions --disable-background-networking
--disable-component-update --disable-sync --force-prefers-reduced-motion --window-size=800,600"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebDriver]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    found = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield found
    found.quit()


@pytest.fixture
def page(browser: WebDriver, address: str) -> Iterator[WebDriver]:
    """Open the page anew; whatever is done on it, nothing is asked for and nothing goes wrong."""
    # From another page, so that nothing typed into the last one is restored.
    browser.get("about:blank")
    browser.get(address)
    WebDriverWait(browser, 30).until(shown)
    yield browser
    assert browser.get_log("browser") == []
    asked = set()
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        own = message["params"]
        # The browser's own first tab asks for pictures.
        if message["method"] == "Network.requestWillBeSent" and own["documentURL"] == address:
            asked.add(own["request"]["url"])
    assert asked == {address}


def shown(page: WebDriver) -> list[str]:
    rows = f"[...document.querySelectorAll('{ROWS}')].filter(row => !row.hidden)"
    return page.execute_script(f"return {rows}.map(row => row.cells[0].textContent)")


def column(page: WebDriver, number: int) -> list[str]:
    rows = f"[...document.querySelector('{TABLE}').tBodies[0].rows]"
    return page.execute_script(f"return {rows}.map(row => row.cells[{number}].textContent)")


def focused(page: WebDriver) -> str:
    return page.execute_script("return document.activeElement.textContent.trim()")


def press(page: WebDriver, *keys: str) -> None:
    for key in keys:
        page.switch_to.active_element.send_keys(key)


def test_clicks_sort_restore_and_lead_to_rows_and_json(page: WebDriver) -> None:
    # No hostile text became an element, or ran.
    assert page.find_elements(By.CSS_SELECTOR, "img, b, [onclick]") == []
    assert HOSTILE in page.find_element(By.TAG_NAME, "main").get_attribute("textContent")
    before = column(page, 0)
    head = page.find_elements(By.CSS_SELECTOR, f"{TABLE} thead th")[2]
    button = head.find_element(By.TAG_NAME, "button")
    button.click()
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, 2) == ["91.0", "90.0 ± 0.4", "88.0 ± 0.4", "52.0"]
    button.click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert column(page, 0) == ["always positive", "bilstm", "bilstm_kd_ts", "teacher minilm"]
    button.click()
    assert head.get_attribute("aria-sort") is None
    assert column(page, 0) == before
    json_link = page.find_element(By.LINK_TEXT, "report.json").get_attribute("href")
    assert json.loads(Path(json_link.removeprefix("file://")).read_text())["format"] == 2
    link = page.find_element(By.CSS_SELECTOR, "a[data-filter]")
    page.execute_script("arguments[0].click()", link)
    field = page.find_element(By.CSS_SELECTOR, "form.filter input")
    assert field.get_attribute("value") == link.get_attribute("data-filter")
    assert shown(page)


def test_the_keyboard_alone_reaches_everything(page: WebDriver) -> None:
    page.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert focused(page) == "Skip to the results"
    press(page, Keys.TAB)
    assert focused(page) == "Dark theme"
    outline = "return getComputedStyle(document.activeElement).outlineStyle"
    assert page.execute_script(outline) == "solid"
    press(page, Keys.ENTER)
    assert page.execute_script("return document.documentElement.dataset.theme") == "dark"
    button = page.find_element(By.CSS_SELECTOR, f"{TABLE} thead th button")
    page.execute_script("arguments[0].focus()", button)
    press(page, Keys.SPACE)
    assert column(page, 0)[0] == "teacher minilm"
    summary = page.find_element(By.CSS_SELECTOR, "figure summary")
    page.execute_script("arguments[0].focus()", summary)
    press(page, Keys.ENTER)
    assert page.find_element(By.CSS_SELECTOR, "figure details").get_attribute("open")
    field = page.find_element(By.CSS_SELECTOR, "form.filter input")
    page.execute_script("arguments[0].focus()", field)
    press(page, *"quiet")
    assert {"a quiet triumph"} == set(shown(page))
    press(page, Keys.TAB)
    choice = page.switch_to.active_element
    assert choice.tag_name == "select"
    press(page, Keys.TAB, Keys.ENTER)
    assert len(shown(page)) > 4


def test_rows_are_filtered_by_list_and_by_text(page: WebDriver) -> None:
    everything = shown(page)
    choice = page.find_element(By.CSS_SELECTOR, "form.filter select")
    choice.find_element(By.CSS_SELECTOR, "option[value=augmentation]").click()
    made = shown(page)
    assert 0 < len(made) < len(everything) and all("from: " in text for text in made)
    field = page.find_element(By.CSS_SELECTOR, "form.filter input")
    field.send_keys("rule:mask MASK")
    assert 0 < len(shown(page)) < len(made)
    said = page.find_element(By.CSS_SELECTOR, "form.filter output").text
    assert said == f"{len(shown(page))} of {len(everything)} rows"
    field.clear()
    field.send_keys("</script>")
    choice.find_element(By.CSS_SELECTOR, "option[value='']").click()
    assert shown(page) and all("</script>" in text for text in shown(page))
    page.find_element(By.CSS_SELECTOR, "form.filter button").click()
    assert shown(page) == everything


def test_both_themes_every_width_and_paper(page: WebDriver) -> None:
    colours = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    light = page.execute_script(colours)
    page.find_element(By.ID, "theme").click()
    dark = page.execute_script(colours)
    assert light != dark and dark[1] == "rgb(22, 24, 28)"
    assert page.find_element(By.ID, "theme").text == "Light theme"
    for width in (360, 1100, 1400):
        size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        first = "document.querySelector('.scroll')"
        widths = page.execute_script(f"return [{first}.scrollWidth, {first}.clientWidth]")
        assert width < 1100 or widths[0] <= widths[1]
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    box = page.find_element(By.CSS_SELECTOR, ".tall")
    assert box.value_of_css_property("max-height") == "none"
    assert not page.find_element(By.CSS_SELECTOR, "form.filter").is_displayed()
    assert page.execute_script(colours) == light
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
