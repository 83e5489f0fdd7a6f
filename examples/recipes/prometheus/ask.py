"""Runs every query of a Grafana dashboard on a Prometheus, and checks that the alert LocksLost fires: the recipe loses locks on
purpose. Usage: ask.py URL DASHBOARD."""

import json
import sys
import time
import urllib.parse
import urllib.request

# Long enough for the first rates: two scrapes of every series, one of which the recipe makes only
# after some seconds.
PATIENCE = 90


def ask(url, path, **arguments):
    address = f"{url}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
    with urllib.request.urlopen(address, timeout=10) as answer:
        return json.load(answer)["data"]


def queries(dashboard):
    for panel in dashboard["panels"]:
        for target in panel["targets"]:
            query = target["expr"].replace("$__rate_interval", "30s")
            # What Grafana puts there when everything is selected.
            query = query.replace("$job", ".*").replace("$kind", ".*")
            yield f"{panel['title']} / {target['legendFormat']}", query


def is_number(sample):
    return sample["value"][1] != "NaN"


def empty(url, asked):
    return [name for name, query in asked if not any(map(is_number, ask(url, "query", query=query)["result"]))]


def firing(url):
    alerts = ask(url, "alerts")["alerts"]
    return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}


def main(url, dashboard):
    with open(dashboard, encoding="utf-8") as file:
        asked = list(queries(json.load(file)))
    until = time.monotonic() + PATIENCE
    while True:
        try:
            without = empty(url, asked)
            if not without and "LocksLost" in firing(url):
                break
            problem = f"no data: {without}; firing: {firing(url)}"
        except OSError as error:
            problem = str(error)
        if time.monotonic() > until:
            sys.exit(problem)
        time.sleep(0.5)
    for name, query in asked:
        print(f"{name}: {len(ask(url, 'query', query=query)['result'])} series")
    print("the alert LocksLost fires, because the recipe loses locks on purpose")


main(*sys.argv[1:])
